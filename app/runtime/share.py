"""A worker's share of a flow: the tasks it owns, as the membership gives and takes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from app.config import FlowConfig, RuntimeConfig
from app.core.formats import Position
from app.core.records import TopicPartition
from app.core.runs import StoredRun
from app.core.tasks import slots_of_task, task_of
from app.errors import RecordsRefused, ReplicatorError, TaskFenced, TransientError, WorkersDisagree
from app.runtime.ports import Ports
from app.runtime.refusals import Refusals
from app.runtime.task import Task

log = logging.getLogger(__name__)

TakeUp = Callable[[frozenset[int]], Awaitable[None]]


class Share:
    """Starts, stops and restarts tasks.

    Invariants:
        A. A task is started in this order: its producer (fences the former owner), its positions to the high watermark,
           then its partitions (`take_up`). Reading positions before fencing could miss the former owner's last commit.
        B. A task that stays through a change keeps its writer, its transaction and its place in the source.
        C. At least once nothing fences, so between `revoked` and the end of the change that follows `assigned` nothing
           is written (`open` is clear) and everything written before is committed.
    """

    def __init__(self, config: FlowConfig, runtime: RuntimeConfig, ports: Ports, take_up: TakeUp) -> None:
        self.config = config
        self.runtime = runtime
        self.tasks: dict[int, Task] = {}
        self.joined = False
        self.changing = asyncio.Lock()
        self.open = asyncio.Event()
        self.records = 0
        self.bytes = 0
        self._ports = ports
        self._take_up = take_up
        self._settled = False
        self._wanted: frozenset[int] = frozenset()
        self.former: frozenset[int] = frozenset()
        self._change = asyncio.Event()
        self.refusals = Refusals(
            config.name, runtime.topic_refresh_interval, dead_letters=config.on_rejected == "dead-letter"
        )
        self._incomplete: str | None = None
        self._failing: tuple[float, str] | None = None
        self._failures: dict[int, int] = {}
        self._due: set[Task] = set()

    async def revoked(self) -> None:
        """Prepare for a rebalance (invariant C). Exactly once, fencing decides, and work goes on."""
        if self.config.delivery == "at-least-once":
            self._settled = False
            self.open.clear()
            await self.finish(list(self.tasks.values()))

    async def assigned(self, tasks: frozenset[int]) -> None:
        """Note what this worker is to own; `follow` makes it so. The topic may have more partitions than tasks."""
        self.joined = self._settled = True
        self._ports.counters.rebalances += 1
        self._wanted = frozenset(task for task in tasks if task < self.config.tasks)
        if self.idle:
            log.info("%s: idle: %s", self.config.name, self.idle)
        self._change.set()

    @property
    def wanted(self) -> frozenset[int]:
        """The tasks that the membership gave this worker last."""
        return self._wanted

    @property
    def idle(self) -> str | None:
        """Why this worker has nothing to do, once it is a member and no task is left for it."""
        if not self.joined or self._wanted:
            return None
        return f"all {self.config.tasks} tasks of the flow are other workers'"

    @property
    def problem(self) -> str | None:
        """Why tasks do not work: they cannot be started, or one fails again and again without a commit between."""
        if self._incomplete is not None or self._failing is None:
            return self._incomplete
        at, reason = self._failing
        fresh = 2 * self.runtime.worker_build_max_backoff
        return reason if asyncio.get_running_loop().time() < at + fresh else None

    async def follow(self) -> None:
        """Bring the share in step with the membership, and restart what failed, until cancelled."""
        delay = self.runtime.worker_build_initial_backoff
        while True:
            await self._change.wait()
            self._change.clear()
            try:
                async with self.changing:
                    await self._become()
                delay = self.runtime.worker_build_initial_backoff
                self._incomplete = None
                if self._settled:
                    self.open.set()
            except TransientError as error:
                self._incomplete = str(error)
                log.warning("%s: tasks are not complete, again in %g s: %s", self.config.name, delay, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, self.runtime.worker_build_max_backoff)
                self._change.set()

    async def _become(self) -> None:
        due, self._due = self._due, set()
        failed = [task.number for task in due if self.tasks.get(task.number) is task]
        if any(isinstance(task.error, TaskFenced) for task in self.tasks.values()):
            # Who is fenced may have lost the task without knowing yet. Two heartbeats tell; to fence the new owner
            # back would only move the fight.
            await asyncio.sleep(2 * self.runtime.group_heartbeat_interval)
        wanted = self._wanted
        await self._drop([number for number in self.tasks if number not in wanted])
        await self._drop([number for number in failed if number in self.tasks])
        if self.config.delivery == "at-least-once":
            for task in self.tasks.values():
                task.reassert()
        if missing := [number for number in wanted if number not in self.tasks]:
            self.tasks |= await self._start(missing)
        await self._take_up(frozenset(self.tasks))

    async def _drop(self, numbers: Iterable[int]) -> None:
        dropped = [self.tasks[number] for number in numbers]
        self._ports.reader.drop([tp for task in dropped for tp in task.routes])
        await self.finish(dropped)
        for task in dropped:
            self.records += task.writer.records
            self.bytes += task.writer.bytes
            del self.tasks[task.number]
        await asyncio.gather(*(task.writer.close() for task in dropped))

    async def _start(self, numbers: Sequence[int]) -> dict[int, Task]:
        """Return started tasks (invariant A, up to the positions); on failure none is left open."""
        tasks = {number: self._new_task(number) for number in numbers}
        try:
            await asyncio.gather(*(task.writer.start() for task in tasks.values()))
            await self._restore(tasks)
        except BaseException:
            await asyncio.gather(*(task.writer.close() for task in tasks.values()))
            raise
        return tasks

    async def _restore(self, tasks: Mapping[int, Task]) -> None:
        """Give started tasks what is stored of their partitions."""
        flow, total = self.config.name, self.config.tasks
        slots = frozenset[int]().union(*(slots_of_task(flow, number, total) for number in tasks))
        stored, runs = await asyncio.gather(self._ports.read_positions(slots, decided=True), self._read_runs(slots))
        self._refuse_other_tasks(stored)
        for number, task in tasks.items():
            task.restore({tp: position for tp, position in stored.items() if task_of(*tp, total) == number})
            if task.ledger is not None:
                task.ledger.restore({tp: ring for tp, ring in runs.items() if task_of(*tp, total) == number})
        # Positions of another number of tasks are made ours before anything is copied.
        await asyncio.gather(*(task.commit() for task in tasks.values() if task.dirty))

    def _refuse_other_tasks(self, stored: Mapping[TopicPartition, Position]) -> None:
        """Stop when others work with another number of tasks: the same partition has another task there.

        Numbers that the positions had when this flow was built are of workers that are gone and fenced.
        """
        known = {self.config.tasks, *self.former}
        if other := {position.tasks for position in stored.values()} - known:
            raise WorkersDisagree(flow=self.config.name, tasks=self.config.tasks, running=max(other))

    async def _read_runs(self, slots: frozenset[int]) -> Mapping[TopicPartition, Sequence[StoredRun]]:
        books = self._ports.bookkeeping
        return {} if books is None else await books.read_runs(slots)

    def _new_task(self, number: int) -> Task:
        writer = self._ports.make_writer(number, self._writer_failed)
        books = self._ports.bookkeeping
        return Task(
            self.config.name,
            number,
            self.config.tasks,
            writer,
            books.make_ledger() if books else None,
            self._ports.counters,
        )

    def _writer_failed(self, number: int, error: Exception) -> None:
        task = self.tasks.get(number)
        if task is not None:
            self.task_failed(task, error)

    def task_failed(self, task: Task, error: Exception) -> None:
        """Have a task made anew from its stored positions; the others go on. Repeated failures wait longer."""
        if task.error is not None or self.tasks.get(task.number) is not task:
            return
        task.error = error
        self._ports.counters.failed(error)
        now = asyncio.get_running_loop().time()
        # A held partition paces its own tries. Were the task made anew as rarely, several holds would run out before it
        # is back, and records that nobody refuses would wait for ever.
        held = isinstance(error, RecordsRefused) and self.refusals.note(task, error, now)
        failures = 1 if task.commits or held else self._failures.get(task.number, 0) + 1
        self._failures[task.number] = failures
        if failures > 1:
            self._failing = now, str(error)
        backoff = self.runtime.worker_build_initial_backoff * 2 ** min(failures - 1, 16)
        delay = min(backoff, self.runtime.worker_build_max_backoff)
        unexpected = None if isinstance(error, ReplicatorError) else error
        log.warning(
            "%s: task %d again in %g s: %s",
            *(task.flow, task.number, delay, error),
            exc_info=unexpected,
            extra={"kind": _kind(error)},
        )
        asyncio.get_running_loop().call_later(delay, self._retry, task)

    def _retry(self, task: Task) -> None:
        self._due.add(task)
        self._change.set()

    async def owner(self, tp: TopicPartition) -> Task | None:
        """Return the task of a partition if this worker owns it and it works; wait while that is being settled."""
        await self.open.wait()
        task = self.tasks.get(task_of(*tp, self.config.tasks))
        return task if task is not None and task.error is None and tp in task.routes else None

    async def finish(self, tasks: Iterable[Task]) -> None:
        """Commit what tasks have written, or leave it to be read again by their next owners."""
        await asyncio.gather(*(self._finish(task) for task in tasks if task.error is None))

    async def _finish(self, task: Task) -> None:
        try:
            await asyncio.wait_for(task.commit(), self.runtime.drain_timeout)
        except (ReplicatorError, asyncio.TimeoutError) as error:
            log.warning("%s: task %d was not committed, its next owner reads again: %r", task.flow, task.number, error)

    async def close(self) -> None:
        """Let go of all writers. What waits for `open` goes on and finds no task."""
        tasks, self.tasks = self.tasks, {}
        self.open.set()
        for task in tasks.values():
            self.records += task.writer.records
            self.bytes += task.writer.bytes
        await asyncio.gather(*(task.writer.close() for task in tasks.values()))

    def carried(self) -> tuple[int, int]:
        """Return records and bytes that the target acknowledged."""
        writers = [task.writer for task in self.tasks.values()]
        return self.records + sum(w.records for w in writers), self.bytes + sum(w.bytes for w in writers)


def _kind(error: Exception) -> str:
    if isinstance(error, TaskFenced):
        return "fenced"
    return "refused" if isinstance(error, RecordsRefused) else "failed"
