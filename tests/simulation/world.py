"""Two clusters and a consumer group in memory, behind the ports that a pipeline uses, with faults at every call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch

from app.core.formats import Position
from app.core.records import TopicPartition
from app.errors import ClusterUnavailable, RecordsRefused, ReplicatorError, TaskFailed, TaskFenced
from app.kafka.admin import TopicInfo
from app.kafka.batches import SourceBatch, TargetBatch
from app.kafka.source import SourceEnd
from app.kafka.writer import PositionRecord
from app.runtime.ports import Ports, positions_of

SESSION = 10.0
HEARTBEAT = 1.0


@dataclass(slots=True)
class Transaction:
    """Records and positions that become visible together."""

    state: str = "open"
    positions: list[PositionRecord] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A record in a target log."""

    value: bytes
    transaction: Transaction | None


class Group:
    """A group coordinator: eager rebalances, session time-outs, sticky assignment."""

    def __init__(self, world: World, tasks: int) -> None:
        self.world = world
        self.tasks = tasks
        self.generation = 0
        self.seen: dict[int, float] = {}
        self.joined: set[int] | None = None
        self.deadline = 0.0
        self.assignment: dict[int, frozenset[int]] = {}

    def add(self, member: int) -> None:
        self.seen[member] = self.world.now
        self._rebalance()
        self.join(member)

    def leave(self, member: int) -> None:
        if self.seen.pop(member, None) is not None:
            self._rebalance()

    def join(self, member: int) -> None:
        if self.joined is not None:
            self.joined.add(member)
        self._settle()

    def heartbeat(self, member: int) -> str:
        self.tick()
        if member not in self.seen:
            return "unknown"
        self.seen[member] = self.world.now
        if self.joined is not None:
            return "wait" if member in self.joined else "rejoin"
        return "stable"

    def tick(self) -> None:
        silent = [member for member, seen in self.seen.items() if seen < self.world.now - SESSION]
        for member in silent:
            del self.seen[member]
        if silent:
            self._rebalance()
        self._settle()

    def _rebalance(self) -> None:
        self.generation += 1
        self.joined = set()
        self.deadline = self.world.now + SESSION

    def _settle(self) -> None:
        if self.joined is None:
            return
        if self.world.now >= self.deadline:
            for member in set(self.seen) - self.joined:
                del self.seen[member]
        if self.seen and self.joined >= set(self.seen):
            self._assign()
            self.joined = None

    def _assign(self) -> None:
        members = sorted(self.seen)
        share = -(-self.tasks // len(members))
        kept = {m: sorted(self.assignment.get(m, frozenset()))[:share] for m in members}
        free = [t for t in range(self.tasks) if not any(t in tasks for tasks in kept.values())]
        self.world.rng.shuffle(free)
        for task in free:
            kept[min(members, key=lambda m: (len(kept[m]), m))].append(task)
        self.assignment = {m: frozenset(tasks) for m, tasks in kept.items()}


class World:
    """The source's and the target's logs, and the dice."""

    def __init__(self, seed: int, partitions: int, tasks: int, faults: float) -> None:
        self.rng = random.Random(seed)
        self.faults = faults
        self.topics = {"t": TopicInfo(name="t", partitions=partitions, topic_id="id")}
        self.source: dict[TopicPartition, list[bytes | None]] = {TopicPartition("t", p): [] for p in range(partitions)}
        self.target: dict[TopicPartition, list[Entry]] = {}
        self.targets: dict[str, int] = {}
        self.positions: list[tuple[PositionRecord, Transaction | None]] = []
        self.epochs: dict[int, int] = {}
        self.open: dict[int, Transaction] = {}
        self.group = Group(self, tasks)
        self.refused: set[bytes] = set()
        self.events: list[str] = []

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def chance(self) -> bool:
        return self.rng.random() < self.faults

    def append(self, tp: TopicPartition, value: bytes) -> None:
        """Append a record, now and then behind an offset that holds none (a control record, compaction)."""
        if self.rng.random() < 0.1:
            self.source[tp].append(None)
        self.source[tp].append(value)

    def committed(self, tp: TopicPartition) -> list[bytes]:
        """Return what a read_committed reader sees."""
        entries = self.target.get(tp, [])
        return [e.value for e in entries if e.transaction is None or e.transaction.state == "committed"]

    def committed_positions(self, flow: str) -> dict[TopicPartition, Position]:
        visible = [p for p, transaction in self.positions if transaction is None or transaction.state == "committed"]
        return positions_of(flow, [(p.key, p.value) for p in visible])


class Process:
    """A worker process as the world sees it: alive, frozen or dead. Every call to the world goes through it."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.dead = False
        self.frozen_until = 0.0

    async def call(self, *, fail: bool = True, slowest: float = 0.02) -> None:
        """The way to a broker: takes time, may fail, stops while frozen, never ends for the dead."""
        world = self.world
        await asyncio.sleep(world.rng.uniform(0.0005, slowest))
        while world.now < self.frozen_until:
            await asyncio.sleep(self.frozen_until - world.now)
        if self.dead:
            await asyncio.Event().wait()
        if fail and world.chance():
            world.events.append(f"{world.now:.3f} process {self.number}: a call failed")
            raise ClusterUnavailable(alias="simulated", detail="no answer")

    def ports(self, flow: str, delivery: str) -> Ports:
        world = self.world

        async def read_positions(slots: Iterable[int], *, decided: bool) -> dict[TopicPartition, Position]:
            await self.call()
            wanted = frozenset(slots)
            held = [t for p, t in world.positions if p.slot in wanted and t is not None and t.state == "open"]
            while decided and any(transaction.state == "open" for transaction in held):
                await asyncio.sleep(0.05)
            stored = world.committed_positions(flow)
            await self.call()
            return stored

        return Ports(
            source_admin=SimulatedAdmin(self),  # type: ignore[arg-type]
            target_admin=SimulatedAdmin(self),  # type: ignore[arg-type]
            reader=SimulatedReader(self),
            make_writer=lambda number, fail: SimulatedWriter(self, flow, number, delivery, fail),  # type: ignore[arg-type, return-value]
            make_membership=lambda revoked, assigned: SimulatedMembership(self, revoked, assigned),
            read_positions=read_positions,
        )


class SimulatedAdmin:
    """See `app.kafka.admin.Admin`."""

    alias = "simulated"

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world

    async def cluster_id(self) -> str:
        await self._process.call()
        return "id"

    async def topics(self) -> dict[str, TopicInfo]:
        await self._process.call()
        return dict(self._world.topics)

    async def describe(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        await self._process.call()
        return {n: TopicInfo(name=n, partitions=self._world.targets[n]) for n in names if n in self._world.targets}

    async def denied(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset()

    async def topic_settings(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {name: {} for name in names}

    async def create_topics(self, wishes: Iterable[Any]) -> dict[str, str]:
        await self._process.call()
        for wish in wishes:
            self._world.targets.setdefault(wish.name, wish.partitions)
        return {}

    async def alter_settings(self, changes: Iterable[Any]) -> dict[str, str]:
        return {}

    async def create_partitions(self, counts: Mapping[str, int]) -> dict[str, str]:
        self._world.targets |= counts
        return {}

    async def ensure_topic(self, wish: Any) -> TopicInfo:
        await self._process.call()
        return TopicInfo(name=wish.name, partitions=wish.partitions)

    async def log_starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        await self._process.call()
        return dict.fromkeys(partitions, 0)

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {}

    async def stable_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.high_watermarks(partitions)

    async def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        await self._process.call()
        world = self._world
        return {tp: len(world.source[tp] if tp in world.source else world.target.get(tp, ())) for tp in partitions}

    @property
    def groups(self) -> SimulatedAdmin:
        return self

    async def members(self, group: str) -> int:
        await self._process.call()
        return len(self._world.group.seen)

    async def assignments(self, group: str) -> None:
        return None

    async def commit(self, group: str, offsets: Mapping[TopicPartition, Any]) -> str | None:
        await self._process.call()
        return None

    def close(self) -> None: ...


class SimulatedBatch:
    """A record batch as `convert.merge` sees one; iterable once."""

    magic = 2
    compression_type = 0

    def __init__(self, records: list[Any]) -> None:
        self._records = iter(records)

    def __iter__(self) -> SimulatedBatch:
        return self

    def __next__(self) -> Any:
        return next(self._records)


class SimulatedReader:
    """See `app.kafka.source.SourceReader`; now and then it loses a batch that it counted as read."""

    _epochs = 0

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world
        self._next: dict[TopicPartition, int] = {}
        self._epoch: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        await self._process.call()

    async def stop(self) -> None: ...

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._next)

    def seek(self, offsets: Mapping[TopicPartition, int], leader_epochs: Any = None) -> None:
        SimulatedReader._epochs += 1
        self._next |= offsets
        self._epoch |= dict.fromkeys(offsets, SimulatedReader._epochs)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._next.pop(tp, None)
            self._epoch.pop(tp, None)

    def is_current(self, batch: SourceBatch) -> bool:
        return self._epoch.get(batch.tp) == batch.epoch

    async def read(self) -> list[SourceBatch]:
        await self._process.call(fail=False)
        batches: list[SourceBatch] = []
        for tp in list(self._next):
            if self._world.rng.random() < 0.7:
                batches += self._read(tp)
        if not batches:
            await asyncio.sleep(0.1)
        return batches

    def _read(self, tp: TopicPartition) -> list[SourceBatch]:
        log, batches = self._world.source[tp], []
        for _ in range(self._world.rng.randrange(1, 4)):
            start = self._next[tp]
            end = min(len(log), start + self._world.rng.randrange(1, 8))
            if end == start:
                break
            records = [
                SimpleNamespace(offset=o, timestamp=1, key=None, value=log[o], headers=[])
                for o in range(start, end)
                if log[o] is not None
            ]
            batch = SourceBatch(tp, start, end, SimulatedBatch(records) if records else None, 4096, size=4096)
            batch.epoch = self._epoch[tp]
            self._next[tp] = end
            if self._world.rng.random() >= self._world.faults:
                batches.append(batch)
        return batches

    def position(self, tp: TopicPartition) -> int | None:
        return self._next.get(tp)

    def end(self, tp: TopicPartition) -> SourceEnd:
        length = len(self._world.source[tp])
        return SourceEnd(readable=length, written=length)

    def caught_up(self) -> bool:
        return all(offset >= len(self._world.source[tp]) for tp, offset in self._next.items())


class SimulatedWriter:
    """See `app.kafka.writer.TargetWriter`: lost acknowledgements, fencing by epoch, transactions."""

    def __init__(
        self, process: Process, flow: str, task: int, delivery: str, on_failure: Callable[[int, ReplicatorError], None]
    ) -> None:
        self.transactional = delivery == "exactly-once"
        self.records = self.bytes = 0
        self._process = process
        self._world = process.world
        self._flow = flow
        self._task = task
        self._on_failure = on_failure
        self._epoch = -1
        self._failure: ReplicatorError | None = None
        self._acknowledgements: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()

    async def start(self) -> None:
        await self._process.call()
        if self.transactional:
            world = self._world
            self._epoch = world.epochs[self._task] = world.epochs.get(self._task, -1) + 1
            if former := world.open.pop(self._task, None):
                former.state = "aborted"
        await self._process.call(fail=False)

    def _fail(self, error: ReplicatorError) -> ReplicatorError:
        if self._failure is None:
            self._failure = error
            self._on_failure(self._task, error)
        return self._failure

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _transaction(self) -> Transaction | None:
        """Return the open transaction. The broker refuses one whose owner was fenced."""
        if not self.transactional:
            return None
        if self._world.epochs[self._task] != self._epoch:
            raise self._fail(TaskFenced(flow=self._flow, task=self._task))
        return self._world.open.setdefault(self._task, Transaction())

    async def write(self, tp: TopicPartition, batch: TargetBatch) -> None:
        self._check()
        self._acknowledgements.add(asyncio.ensure_future(self._send(tp, batch)))
        await asyncio.sleep(0)

    async def offer(self, tp: TopicPartition, batch: TargetBatch) -> Any:
        self._check()
        async with self._order:
            await self._append(tp, batch)
        return SimpleNamespace(offset=-1)

    async def _send(self, tp: TopicPartition, batch: TargetBatch) -> None:
        async with self._order:
            try:
                await self._append(tp, batch)
            except ReplicatorError as error:
                self._fail(error)

    async def _append(self, tp: TopicPartition, batch: TargetBatch) -> None:
        await self._process.call(fail=False)
        self._check()
        values = [bytes(record.value) for record in DefaultRecordBatch(bytes(batch._build()))]
        if tp.topic in self._world.targets and not self._world.refused.isdisjoint(values):
            why = {"reason": "refused", "remedy": "none", "kind": "record"}
            raise RecordsRefused(flow=self._flow, task=self._task, **tp._asdict(), **why)
        entries = [Entry(value, self._transaction()) for value in values]
        lost_before, lost_after = self._world.chance(), self._world.chance()
        if not lost_before:
            self._world.target.setdefault(tp, []).extend(entries)
        await self._process.call(fail=False)
        if lost_before or lost_after:
            raise self._fail(TaskFailed(flow=self._flow, task=self._task, reason="no acknowledgement"))
        self.records += len(entries)

    async def commit(self, positions: Iterable[PositionRecord]) -> None:
        await self._flush()
        transaction = self._transaction()
        await self._process.call(fail=False)
        if transaction is not None and self._transaction() is not transaction:
            raise self._fail(TaskFenced(flow=self._flow, task=self._task))
        self._world.positions += [(position, transaction) for position in positions]
        if transaction is not None:
            await self._process.call(fail=False)
            if self._transaction() is not transaction:
                raise self._fail(TaskFenced(flow=self._flow, task=self._task))
            if self._world.chance():
                raise self._fail(TaskFailed(flow=self._flow, task=self._task, reason="the commit was lost"))
            transaction.state = "committed"
            del self._world.open[self._task]
        await self._process.call(fail=False)
        if self._world.chance():
            raise self._fail(TaskFailed(flow=self._flow, task=self._task, reason="the answer to a commit was lost"))

    async def _flush(self) -> None:
        if self._acknowledgements:
            await asyncio.wait(self._acknowledgements)
        self._acknowledgements = {a for a in self._acknowledgements if not a.done()}
        self._check()

    async def close(self) -> None:
        self._failure = self._failure or TaskFailed(flow=self._flow, task=self._task, reason="closed")


class SimulatedMembership:
    """See `app.kafka.membership.TaskMembership`."""

    def __init__(
        self,
        process: Process,
        on_revoked: Callable[[], Awaitable[None]],
        on_assigned: Callable[[frozenset[int]], Awaitable[None]],
    ) -> None:
        self._process = process
        self._group = process.world.group
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned

    async def run(self) -> None:
        me, followed = self._process.number, -1
        await self._process.call(fail=False)
        self._group.add(me)
        while True:
            await self._process.call(fail=False)
            match self._group.heartbeat(me):
                case "unknown":
                    await self._on_revoked()
                    self._group.add(me)
                case "rejoin":
                    await self._on_revoked()
                    await self._process.call(fail=False)
                    if me in self._group.seen:
                        self._group.join(me)
                case "stable" if followed != self._group.generation:
                    followed = self._group.generation
                    await self._on_assigned(self._group.assignment[me])
                case "stable":
                    await asyncio.sleep(HEARTBEAT)
                case "wait":
                    await asyncio.sleep(0.1)

    async def stop(self) -> None:
        if not self._process.dead:
            self._group.leave(self._process.number)
