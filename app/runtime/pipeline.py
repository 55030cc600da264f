"""One incarnation of a flow's data plane: from joining its workers until it stops or fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from app.config import FlowConfig, RuntimeConfig
from app.core.flow_rules import FlowRules
from app.core.records import TopicPartition
from app.core.tasks import POSITION_SLOTS, tasks_topic, workers_group
from app.errors import ReplicatorError, TopicNotCreated, WorkersDisagree
from app.jobs import end_all
from app.kafka.batches import SourceBatch
from app.kafka.formats import NO_EPOCH
from app.kafka.group_api import Committed
from app.kafka.source import PositionsOutOfRange, TopicDenied
from app.runtime import own_topics
from app.runtime.pace import Pace
from app.runtime.partitions import Partitions
from app.runtime.ports import Ports
from app.runtime.roster import Roster
from app.runtime.task import Task

log = logging.getLogger(__name__)

Deliver = Callable[[Sequence[SourceBatch]], Awaitable[None]]

#: Committing the source group's offsets is for people's lag tools; once in this many seconds is enough for them.
GROUP_COMMIT_INTERVAL = 2.0

#: A batch that was read and not written for one to two of these, seconds, is read again.
LOSS_INTERVAL = 5.0


class Pipeline:
    """A flow at work: reads the source partitions of the tasks it owns and commits what the agent wrote.

    Nothing is read while `resumed` is not set. `deliver` hands a poll's batches to the flow's agent and returns when
    there is room for more.
    """

    def __init__(
        self,
        config: FlowConfig,
        runtime: RuntimeConfig,
        rules: FlowRules,
        ports: Ports,
        deliver: Deliver,
        resumed: asyncio.Event | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.config = config
        self.runtime = runtime
        self.group = workers_group(config.name)
        self.reader = ports.reader
        self.pace = pace or Pace(config.limits.bytes_per_second)
        self.partitions = Partitions(config, runtime, rules, ports, self.pace)
        self.share = self.partitions.share
        self.roster = Roster(ports.target_admin, self.group, tasks_topic(config.name))
        self._ports = ports
        self._deliver = deliver
        self._naming = rules.naming
        self._membership = ports.make_membership(self.share.revoked, self.share.assigned)
        self._commit_now = asyncio.Event()
        self._waiting: list[SourceBatch] = []
        self._committing: dict[int, asyncio.Task[None]] = {}
        self.ends: dict[TopicPartition, int] = {}
        self._resumed = resumed or asyncio.Event()
        if resumed is None:
            self._resumed.set()

    async def build(self) -> None:
        """Reach both clusters and make what the flow needs on the target. Raises `ReplicatorError`."""
        await self._ports.source_admin.cluster_id()
        used = await self._used_tasks()
        for wish in own_topics.of_flow(self.config, self._naming, self.runtime):
            found = await self._ports.target_admin.ensure_topic(wish)
            if found.partitions < wish.partitions:
                await self._ports.target_admin.create_partitions({wish.name: wish.partitions})
        await self._ensure_dead_letters()
        await self.partitions.look()
        await self._agree_on_tasks(used)
        await self.reader.start()

    async def _used_tasks(self) -> int:
        """Return the highest number of tasks that this flow ever had; its tasks topic never shrinks."""
        topic = tasks_topic(self.config.name)
        found = await self._ports.target_admin.describe([topic])
        return found[topic].partitions if topic in found else 0

    async def _ensure_dead_letters(self) -> None:
        """Have the topic for refused records, if the flow wants one, also after somebody deleted it."""
        refusal: TopicNotCreated | None = None
        for wish in own_topics.of_rejected(self.config, self.runtime):
            try:
                await self._ports.target_admin.ensure_topic(wish)
            except TopicNotCreated as error:  # perhaps by a Kafka that does not know all of the settings yet
                refusal = error
            else:
                return
        if refusal is not None:
            raise refusal

    async def _agree_on_tasks(self, used: int) -> None:
        """Fence the tasks of former numbers of tasks; refuse while workers with another number are at work.

        Their owners may only sleep. What is stored tells of those that committed, `used` of all others.
        """
        stored = await self._ports.read_positions(range(POSITION_SLOTS), decided=False)
        tasks = self.config.tasks
        if not stored:
            self.partitions.beginnings.first_run(self.partitions.catalog)
        former = {position.tasks for position in stored.values()} - {tasks}
        if not former and stored and used <= tasks:
            return
        members = await self._ports.target_admin.groups.members(self.group)
        if members and former and not any(position.tasks == tasks for position in stored.values()):
            raise WorkersDisagree(flow=self.config.name, tasks=tasks, running=max(former))
        self.share.former = frozenset(former)
        if not members and self.config.delivery == "exactly-once":
            first = 0 if former or not stored else tasks
            await self._fence(range(first, max(used, *former, 0)))

    async def _fence(self, numbers: Iterable[int]) -> None:
        writers = [self._ports.make_writer(number, lambda *_: None) for number in numbers]
        try:
            await asyncio.gather(*(writer.start() for writer in writers))
        finally:
            await asyncio.gather(*(writer.close() for writer in writers))

    async def run(self) -> None:
        """Work until cancelled; raises what makes the whole flow fail."""
        work = (
            self._membership.run,
            self.share.follow,
            self._read,
            self._catch_losses,
            self._commit,
            self._discover,
            self._show_lag,
            self._watch_ends,
            self.roster.keep,
        )
        jobs = [asyncio.create_task(job(), name=f"{self.config.name} {job.__name__}") for job in work]
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
        finally:
            await end_all(jobs)

    async def close(self, *, drain: bool) -> None:
        """Commit what is written (when `drain`), leave the group, let go of everything; in bounded time."""
        if drain:
            await self.share.finish(list(self.share.tasks.values()))
        await end_all(list(self._committing.values()))
        parts = (self._membership.stop(), self.share.close(), self.reader.stop())
        for problem in await asyncio.gather(*parts, return_exceptions=True):
            if problem is not None:  # one that cannot be closed leaves the others to be
                log.warning("%s: a client failed when it was closed: %r", self.config.name, problem)
        self._ports.source_admin.close()
        self._ports.target_admin.close()

    async def _read(self) -> None:
        while True:
            await self._resumed.wait()
            if not self.reader.partitions:
                await asyncio.sleep(0.1)
                continue
            try:
                batches = await self.reader.read()
            except PositionsOutOfRange as error:
                await self.partitions.out_of_range(error.positions)
                continue
            except TopicDenied as error:
                self.partitions.deny(error.topic)
                continue
            if batches and not self._resumed.is_set():
                # Paused while the fetch waited for them: nothing of a paused flow is written.
                self.reader.seek({batch.tp: batch.start for batch in reversed(batches)})
            elif batches := await self._of_one_log(batches):
                await self._hand_on(batches)

    async def _hand_on(self, batches: Sequence[SourceBatch]) -> None:
        """Deliver what was read as fast as the flow's limit and its tasks allow.

        No task is held, and none has begun a transaction for what waits here. While the flow is paused, it waits on.
        """
        self._waiting = self.pace.order(batches)
        while self._waiting:
            ready = self.pace.ready(self._waiting)
            now, self._waiting = self._waiting[:ready], self._waiting[ready:]
            if now:
                await self._deliver(sorted(now, key=lambda batch: batch.tp) if self._waiting else now)
            if self._waiting:
                await self.pace.wait(self._waiting[0])
            await self._resumed.wait()
            self._waiting = [batch for batch in self._waiting if self.reader.is_current(batch)]

    async def _of_one_log(self, batches: list[SourceBatch]) -> list[SourceBatch]:
        """Leave out what does not continue the log that was read before; have those tasks made anew.

        Under a new leader a log can be shorter than it was (unclean election) and have grown again, with other records
        at the offsets that were copied.
        """
        turns = {batch.tp: batch for batch in reversed(batches) if batch.follows_epoch != NO_EPOCH}
        if not turns:
            return batches
        try:
            ends = await self._ports.source_admin.epoch_ends({tp: batch.follows_epoch for tp, batch in turns.items()})
        except ReplicatorError as error:
            log.warning("%s: whether the source's log is whole is not known, asking again: %s", self.config.name, error)
            ends = {}
            self.reader.seek(
                {tp: batch.start for tp, batch in turns.items()},
                {tp: batch.follows_epoch for tp, batch in turns.items()},
            )
        for tp in [tp for tp, end in ends.items() if end < turns[tp].start]:
            self.partitions.cut_off(tp)
        whole = {tp for tp, end in ends.items() if end >= turns[tp].start}
        return [batch for batch in batches if batch.tp not in turns or batch.tp in whole]

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

    async def _catch_losses(self) -> None:
        """Read again what was read but never written: `expected` sees a lost batch only when another one follows it."""
        before: dict[TopicPartition, int] = {}
        while True:
            await asyncio.sleep(LOSS_INTERVAL)
            waiting = {batch.tp for batch in self._waiting}
            behind = {
                tp: task.expected[tp]
                for task in self.share.tasks.values()
                for tp in task.routes
                if task.error is None and task.expected[tp] != self.reader.position(tp) and tp not in waiting
            }
            lost = {tp: offset for tp, offset in behind.items() if before.get(tp) == offset}
            if lost:
                log.warning("%s: nothing was written of what was read; reading again: %s", self.config.name, lost)
                self.reader.seek(lost)
            before = behind

    def forwarded(self, *, more: bool) -> None:
        """Note that the agent is done with an event; commit at once when the source is drained or much is written."""
        bound = self.runtime.connect_max_batch_records
        nothing_left = not more and not self._waiting and self.reader.caught_up()
        drained = self.config.delivery == "exactly-once" and nothing_left
        if drained or any(task.uncommitted_records >= bound for task in self.share.tasks.values()):
            self._commit_now.set()

    async def _commit(self) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._commit_now.wait(), self.runtime.connect_commit_interval)
            self._commit_now.clear()
            for task in self.share.tasks.values():
                # Not before the last commit of a former incarnation: it would put an older position behind a newer one.
                if task.dirty and task.error is None and task.number not in self._committing:
                    self._committing[task.number] = asyncio.create_task(self._commit_task(task))

    async def _commit_task(self, task: Task) -> None:
        """Commit beside the other tasks: one whose partitions have no leader holds up none of them.

        The end of `run` does not cut it short: `close` waits for it.
        """
        try:
            self._ports.counters.commits += bool(await task.commit())
        except Exception as error:  # noqa: BLE001 - whatever it is: the task goes on from its last commit
            self.share.task_failed(task, error)
        finally:
            del self._committing[task.number]

    async def _discover(self) -> None:
        while True:
            await asyncio.sleep(self.runtime.topic_refresh_interval)
            await self._ensure_dead_letters()
            await self.partitions.discover()

    async def _watch_ends(self) -> None:
        """While little or nothing is read, no fetch tells how the source grows: ask for it, so that the lag is seen."""
        while True:
            await asyncio.sleep(GROUP_COMMIT_INTERVAL)
            reading = self._resumed.is_set() and not self.pace.held_back
            self.ends = {} if reading else await self._look_at_ends()

    async def _look_at_ends(self) -> dict[TopicPartition, int]:
        try:
            return await self._ports.source_admin.stable_offsets(self.reader.partitions)
        except ReplicatorError:
            return self.ends

    async def _show_lag(self) -> None:
        """Keep the group's offsets on the source in step, for people's tools; the flow never depends on them."""
        shown: dict[TopicPartition, int] = {}
        refused = False
        while True:
            await asyncio.sleep(GROUP_COMMIT_INTERVAL)
            now = {tp: task.committed[tp] for task in self.share.tasks.values() for tp in task.routes}
            moved = {tp: offset for tp, offset in now.items() if shown.get(tp) != offset}
            if not moved:
                continue
            try:
                offsets = {tp: Committed(offset=offset) for tp, offset in moved.items()}
                refusal = await self._ports.source_admin.groups.commit(self.group, offsets)
            except ReplicatorError as error:
                refusal = str(error)
            if refusal and not refused:
                log.warning("%s: group %s on the source is not updated: %s", self.config.name, self.group, refusal)
            shown, refused = shown if refusal else now, bool(refusal)
