"""One incarnation of a flow's data plane: from joining its workers until it stops or fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from app.config import FlowConfig, Settings
from app.core.flow_rules import FlowRules
from app.core.formats import Position, parse_position_key
from app.core.records import TopicPartition
from app.core.tasks import POSITION_SLOTS, slots_of_task, task_of
from app.errors import ReplicatorError, TaskFenced, TransientError, WorkersDisagree
from app.kafka.admin import Admin, TopicWish
from app.kafka.batches import SourceBatch
from app.kafka.membership import TaskMembership
from app.kafka.positions import read_to_end
from app.kafka.source import PositionsOutOfRange, SourceReader
from app.kafka.writer import AtLeastOnceWriter, ExactlyOnceWriter, TargetWriter
from app.runtime.catalog import Catalog, ensure_targets, survey
from app.runtime.task import POSITIONS_TOPIC, Route, Task

log = logging.getLogger(__name__)

Deliver = Callable[[Sequence[SourceBatch]], Awaitable[None]]

#: Committing the source group's offsets is for people's lag tools; once in this many seconds is enough for them.
GROUP_COMMIT_INTERVAL = 2.0
COMPACT_SEGMENT_BYTES = str(8 << 20)


class Pipeline:
    """A flow at work: reads the source partitions of the tasks it owns and commits what the agent wrote.

    `deliver` hands a poll's batches to the flow's agent and returns when there is room for more.
    """

    def __init__(self, config: FlowConfig, settings: Settings, rules: FlowRules, deliver: Deliver) -> None:
        self.config = config
        self.rules = rules
        self.runtime = settings.runtime
        self.group = f"krabka-replicator-{config.name}"
        self.tasks_topic = f"{self.group}-tasks"
        self.tasks: dict[int, Task] = {}
        self.catalog = Catalog()
        self.refused: dict[str, str] = {}
        self.joined = False
        self.records = 0
        self.bytes = 0
        self._target_cluster = settings.clusters[config.target]
        self._source_admin = Admin(config.source, settings.clusters[config.source], self.runtime)
        self._target_admin = Admin(config.target, self._target_cluster, self.runtime)
        self.reader = SourceReader(config.source, settings.clusters[config.source], self.runtime)
        self._membership = TaskMembership(
            alias=config.target,
            cluster=self._target_cluster,
            runtime=self.runtime,
            group=self.group,
            topic=self.tasks_topic,
            instance_id=settings.group_instance_id,
            on_revoked=self._revoked,
            on_assigned=self._assigned,
        )
        self._deliver = deliver
        self._wanted: frozenset[int] = frozenset()
        self._change = asyncio.Event()
        self._failures: dict[int, int] = {}
        self._due: set[Task] = set()
        self._commit_now = asyncio.Event()
        self._settled = False
        self._open = asyncio.Event()
        self._owning = asyncio.Lock()
        self._group_offsets: dict[TopicPartition, int] = {}

    # -- life ---------------------------------------------------------------------------------------------------------

    async def build(self) -> None:
        """Reach both clusters and make what the flow needs on the target. Raises `ReplicatorError`."""
        await self._source_admin.cluster_id()
        runtime = self.runtime
        compacted = {"cleanup.policy": "compact", "segment.bytes": COMPACT_SEGMENT_BYTES}
        wishes = [
            TopicWish(
                name=POSITIONS_TOPIC,
                partitions=POSITION_SLOTS,
                replication_factor=runtime.internal_topic_replication_factor,
                config=compacted,
            ),
            TopicWish(
                name=self.tasks_topic,
                partitions=self.config.tasks,
                replication_factor=runtime.internal_topic_replication_factor,
                config={"cleanup.policy": "delete"},
            ),
        ]
        for wish in wishes:
            found = await self._target_admin.ensure_topic(wish)
            if found.partitions < wish.partitions:
                await self._target_admin.create_partitions({wish.name: wish.partitions})
        self.catalog = survey(await self._source_admin.topics(), self.rules)
        await self._agree_on_tasks()
        await self.reader.start()

    async def run(self) -> None:
        """Work until cancelled; raises what makes the whole flow fail."""
        jobs = [
            asyncio.create_task(job(), name=f"{self.config.name} {job.__name__}")
            for job in (self._membership.run, self._own, self._read, self._commit, self._discover, self._show_lag)
        ]
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

    async def close(self, *, drain: bool) -> None:
        """Commit what is written (when `drain`), leave the group, let go of everything."""
        if drain:
            await asyncio.gather(*(self._finish(task) for task in self.tasks.values()))
        await self._membership.stop()
        await asyncio.gather(*(task.writer.close() for task in self.tasks.values()))
        self.tasks = {}
        self._open.set()
        await self.reader.stop()
        self._source_admin.close()
        self._target_admin.close()

    # -- ownership ----------------------------------------------------------------------------------------------------

    async def _agree_on_tasks(self) -> None:
        """Fence the tasks of a former number of tasks; refuse while workers with another number are at work."""
        stored = await self._positions(range(POSITION_SLOTS), decided=False)
        former = {position.tasks for position in stored.values()} - {self.config.tasks}
        if not former:
            return
        members = await self._target_admin.group_members(self.group)
        if members and not any(position.tasks == self.config.tasks for position in stored.values()):
            raise WorkersDisagree(flow=self.config.name, tasks=self.config.tasks, running=max(former), members=members)
        if self.config.delivery == "exactly-once" and not members:
            writers = [self._writer(number) for number in range(max(former))]
            await asyncio.gather(*(writer.start() for writer in writers))
            await asyncio.gather(*(writer.close() for writer in writers))

    async def _revoked(self) -> None:
        """Before a rebalance: at least once, what is written is committed and nothing more is, since nothing fences."""
        if self.config.delivery == "at-least-once":
            self._settled = False
            self._open.clear()
            await asyncio.gather(*(self._finish(task) for task in list(self.tasks.values())))

    async def _assigned(self, tasks: frozenset[int]) -> None:
        self.joined = self._settled = True
        self._wanted = frozenset(task for task in tasks if task < self.config.tasks)
        self._change.set()

    async def _own(self) -> None:
        """Follow the membership: stop what left, start what came, keep what stayed; rebuild what failed."""
        delay = self.runtime.worker_build_initial_backoff
        while True:
            await self._change.wait()
            self._change.clear()
            try:
                async with self._owning:
                    await self._become(self._wanted)
                delay = self.runtime.worker_build_initial_backoff
                if self._settled:
                    self._open.set()
            except (TaskFenced, TransientError) as error:
                log.warning("%s: tasks are not complete, again in %.2f s: %s", self.config.name, delay, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, self.runtime.worker_build_max_backoff)
                self._change.set()

    async def _become(self, wanted: frozenset[int]) -> None:
        failed = [number for number, task in self.tasks.items() if task in self._due]
        self._due.clear()
        if any(isinstance(self.tasks[number].error, TaskFenced) for number in failed):
            # Who is fenced may have lost the task without knowing yet. Two heartbeats tell; to fence the new owner
            # back would only move the fight.
            await asyncio.sleep(2 * self.runtime.group_heartbeat_interval)
            wanted = self._wanted
        await self._drop([number for number in self.tasks if number not in wanted], finish=True)
        await self._drop([number for number in failed if number in self.tasks], finish=False)
        started = await self._start([number for number in wanted if number not in self.tasks])
        self.tasks |= started
        await self._take_up(frozenset(started))

    async def _drop(self, numbers: Iterable[int], *, finish: bool) -> None:
        dropped = [self.tasks[number] for number in numbers]
        self.reader.drop([tp for task in dropped for tp in task.routes])
        if finish:
            await asyncio.gather(*(self._finish(task) for task in dropped))
        for task in dropped:
            self._count(task)
            del self.tasks[task.number]
        await asyncio.gather(*(task.writer.close() for task in dropped))

    async def _start(self, numbers: Sequence[int]) -> dict[int, Task]:
        """Start tasks by the order that exactly-once rests on: fence first, then read positions, then (later) seek."""
        flow, total = self.config.name, self.config.tasks
        tasks = {number: Task(flow, number, total, self._writer(number)) for number in numbers}
        if not tasks:
            return {}
        try:
            await asyncio.gather(*(task.writer.start() for task in tasks.values()))
            slots = frozenset[int]().union(*(slots_of_task(flow, number, total) for number in numbers))
            stored = await self._positions(slots, decided=True)
        except BaseException:
            await asyncio.gather(*(task.writer.close() for task in tasks.values()))
            raise
        for number, task in tasks.items():
            task.restore({tp: position for tp, position in stored.items() if task_of(*tp, total) == number})
        return tasks

    async def _positions(self, slots: Iterable[int], *, decided: bool) -> dict[TopicPartition, Position]:
        records = await read_to_end(
            self._target_admin, self._target_cluster, self.runtime, POSITIONS_TOPIC, slots, decided=decided
        )
        positions: dict[TopicPartition, Position] = {}
        for key, value in records:
            if key is None:
                continue
            flow, topic, partition = parse_position_key(key)
            if flow != self.config.name:
                continue
            if value is None:
                positions.pop(TopicPartition(topic, partition), None)
            else:
                positions[TopicPartition(topic, partition)] = Position.decode(value)
        return positions

    def _writer(self, number: int) -> TargetWriter:
        kind = ExactlyOnceWriter if self.config.delivery == "exactly-once" else AtLeastOnceWriter
        return kind(self.config.name, number, self._target_cluster, self.runtime, on_failure=self._change_after)

    def _change_after(self, number: int, error: Exception) -> None:
        task = self.tasks.get(number)
        if task is not None:
            self.task_failed(task, error)

    def task_failed(self, task: Task, error: Exception) -> None:
        """Have a task made anew from its stored positions; the others go on. Repeated failures wait longer."""
        if task.error is not None or self.tasks.get(task.number) is not task:
            return
        task.error = error
        failures = self._failures[task.number] = 1 if task.commits else self._failures.get(task.number, 0) + 1
        delay = min(
            self.runtime.worker_build_initial_backoff * 2 ** (failures - 1), self.runtime.worker_build_max_backoff
        )
        unexpected = None if isinstance(error, ReplicatorError) else error
        log.warning("%s: task %d again in %g s: %s", task.flow, task.number, delay, error, exc_info=unexpected)
        asyncio.get_running_loop().call_later(delay, self._retry, task)

    def _retry(self, task: Task) -> None:
        self._due.add(task)
        self._change.set()

    async def _finish(self, task: Task) -> None:
        """Commit what a task has written, or leave it to be read again by the task's next owner."""
        if task.error is not None:
            return
        try:
            self._group_offsets |= await asyncio.wait_for(task.commit(), self.runtime.drain_timeout)
        except (ReplicatorError, asyncio.TimeoutError) as error:
            log.warning("%s: task %d was not committed, its next owner reads again: %r", task.flow, task.number, error)

    # -- partitions ---------------------------------------------------------------------------------------------------

    async def _discover(self) -> None:
        while True:
            await asyncio.sleep(self.runtime.topic_refresh_interval)
            await self.discover()

    async def discover(self) -> None:
        """Look at the source again and take up, or give up, partitions of the owned tasks without touching others."""
        catalog = survey(await self._source_admin.topics(), self.rules)
        async with self._owning:
            self.catalog = catalog
            await self._take_up(frozenset(self.tasks))

    async def _take_up(self, numbers: frozenset[int]) -> None:
        """Bring the partitions of these tasks in step with the catalog: topics on the target first, then reading."""
        total = self.config.tasks
        routes = {tp: route for tp, route in self.catalog.routes(self.rules).items() if task_of(*tp, total) in numbers}
        await self._give_up(numbers, routes)
        needed = frozenset(tp.topic for tp in routes)
        self.refused = await ensure_targets(self.catalog, needed, self._target_admin, self.runtime)
        for topic, reason in self.refused.items():
            log.error("%s: topic %s is held: %s", self.config.name, topic, reason)
        new = {
            tp: route
            for tp, route in routes.items()
            if tp.topic not in self.refused and tp not in self.tasks[task_of(*tp, total)].routes
        }
        offsets = await self._starting_offsets(new)
        for tp, offset in offsets.items():
            self.tasks[task_of(*tp, total)].add(new[tp], offset)
        if offsets:
            self.reader.seek(offsets)

    async def _give_up(self, numbers: frozenset[int], routes: dict[TopicPartition, Route]) -> None:
        for number in numbers:
            gone = [tp for tp in self.tasks[number].routes if tp not in routes]
            self.reader.drop(gone)
            self.tasks[number].remove(gone)

    async def _starting_offsets(self, routes: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        total = self.config.tasks
        stored = {tp: self.tasks[task_of(*tp, total)].stored.get(tp) for tp in routes}
        unknown = [tp for tp, position in stored.items() if position is None]
        starts = await self._source_admin.log_starts(unknown)
        return {tp: starts[tp] if position is None else position.offset for tp, position in stored.items()}

    # -- data ---------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            if not self.reader.partitions:
                await asyncio.sleep(0.1)
                continue
            try:
                batches = await self.reader.read()
            except PositionsOutOfRange as error:
                await self._out_of_range(error.positions)
                continue
            if batches:
                await self._deliver(batches)

    async def _out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on from the first record that a source still has, after saying which are gone."""
        starts = await self._source_admin.log_starts(positions)
        for tp, position in positions.items():
            task = self.tasks.get(task_of(*tp, self.config.tasks))
            while task is not None and task.error is None and task.expected.get(tp, position) < position:
                await asyncio.sleep(0.02)  # what was read before is still on its way to the target
            if task is None or tp not in task.routes:
                continue
            start = starts[tp]
            gone = f"offsets {position} to {start - 1} are gone" if start > position else "the partition ends before it"
            log.error(
                "%s: %s-%d: position %d is not on the source: %s; going on at %d",
                *(self.config.name, *tp, position, gone, start),
            )
            task.advance(tp, start)
            self.reader.seek({tp: start})

    async def owner(self, tp: TopicPartition) -> Task | None:
        """Return the task of a partition if this worker owns it and it works; wait while that is being settled."""
        await self._open.wait()
        task = self.tasks.get(task_of(*tp, self.config.tasks))
        return task if task is not None and task.error is None and tp in task.routes else None

    def expected(self, task: Task, tp: TopicPartition, batches: Iterable[SourceBatch]) -> list[SourceBatch]:
        """Return those batches that continue the partition (invariant A of `Task`), seeking again after a gap."""
        run: list[SourceBatch] = []
        offset = task.expected[tp]
        for batch in batches:
            if not self.reader.is_current(batch):
                continue  # read before a seek; what it holds is read again
            if batch.start != offset:
                log.error(
                    "%s: %s-%d: read offset %d where %d follows; reading again", task.flow, *tp, batch.start, offset
                )
                self.reader.seek({tp: offset})
                break
            run.append(batch)
            offset = batch.next_offset
        return run

    def forwarded(self, *, more: bool) -> None:
        """Note that the agent is done with an event; commit at once when the source is drained or much is written."""
        bound = self.runtime.connect_max_batch_records
        drained = self.config.delivery == "exactly-once" and not more and self.reader.caught_up()
        if drained or any(task.uncommitted_records >= bound for task in self.tasks.values()):
            self._commit_now.set()

    async def _commit(self) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._commit_now.wait(), self.runtime.connect_commit_interval)
            self._commit_now.clear()
            tasks = [task for task in self.tasks.values() if task.dirty and task.error is None]
            await asyncio.gather(*(self._commit_task(task) for task in tasks))

    async def _commit_task(self, task: Task) -> None:
        try:
            self._group_offsets |= await task.commit()
        except ReplicatorError as error:
            self.task_failed(task, error)

    async def _show_lag(self) -> None:
        """Keep the group's offsets on the source in step, for people's tools; the flow never depends on them."""
        refused = False
        while True:
            await asyncio.sleep(GROUP_COMMIT_INTERVAL)
            offsets, self._group_offsets = self._group_offsets, {}
            if not offsets:
                continue
            try:
                await self._source_admin.commit_group(self.group, offsets)
                refused = False
            except ReplicatorError as error:
                if not refused:
                    log.warning("%s: group %s on the source is not updated: %s", self.config.name, self.group, error)
                refused = True

    def _count(self, task: Task) -> None:
        self.records += task.writer.records
        self.bytes += task.writer.bytes

    def carried(self) -> tuple[int, int]:
        """Return records and bytes that the target acknowledged since this pipeline was built."""
        writers = [task.writer for task in self.tasks.values()]
        return self.records + sum(w.records for w in writers), self.bytes + sum(w.bytes for w in writers)
