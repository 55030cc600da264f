"""A task: the unit of ownership, of fencing and of commits. It carries a fixed share of a flow's source partitions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.formats import Position, position_key
from app.core.records import TopicPartition
from app.core.tasks import slot_of
from app.kafka.batches import SourceBatch, Stretch, TargetBatch
from app.kafka.convert import MAX_BATCH_BYTES
from app.kafka.formats import NO_EPOCH
from app.kafka.writer import PositionRecord, TargetWriter
from app.runtime.counters import FlowCounters
from app.runtime.ledger import Ledger

POSITIONS_TOPIC = "krabka-replicator-offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where the records of a source partition go, and what the topic there takes."""

    source: TopicPartition
    target: TopicPartition
    topic_id: str | None
    filter_origins: bool
    target_id: str | None = None
    compacted: bool = False
    max_batch: int = MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class Copies:
    """What is remembered of a batch until its acknowledgement; `newest` in seconds."""

    stretches: Sequence[Stretch]
    records: int
    size: int
    newest: float

    @classmethod
    def of(cls, batch: TargetBatch) -> Copies:
        """Take it from a filled batch, which its producer empties."""
        return cls(batch.stretches(), batch.record_count(), batch.full_size, batch.newest / 1000)


class Task:
    """One task owned by this worker.

    Invariants:
        A. `expected[tp]` is the source offset after the last one handed to the writer; only a batch that starts there
           is taken. What starts elsewhere is stale (dropped) or tells of a lost batch (dropped and sought again), so
           nothing is copied twice or skipped within the life of a task.
        B. A commit covers exactly the records written before it: writing a run of batches with its advance, and taking
           what a commit covers, exclude each other (`turn`).
        C. `committed[tp]` is durable on the target; after any failure the task is made anew and goes on from there.
    """

    def __init__(
        self,
        flow: str,
        number: int,
        tasks: int,
        writer: TargetWriter,
        ledger: Ledger | None = None,
        counters: FlowCounters | None = None,
    ) -> None:
        self.flow = flow
        self.number = number
        self.tasks = tasks
        self.writer = writer
        self.ledger = ledger
        self.counters = counters or FlowCounters()
        self.turn = asyncio.Lock()
        self.routes: dict[TopicPartition, Route] = {}
        self.expected: dict[TopicPartition, int] = {}
        self.leader_epochs: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.stored: dict[TopicPartition, Position] = {}
        self.uncommitted_records = 0
        self.error: Exception | None = None
        self.commits = 0
        self._dirty: set[TopicPartition] = set()
        self._one_commit = asyncio.Lock()

    def restore(self, stored: Mapping[TopicPartition, Position]) -> None:
        """Remember the durable positions of this task's partitions, read after fencing, also of those not known yet.

        Positions written under another number of tasks are written again with the next commit: as long as one is left,
        every start fences the tasks of that time.
        """
        self.stored = dict(stored)
        for tp, position in stored.items():
            self.committed[tp] = position.offset
            if position.leader_epoch is not None:
                self.leader_epochs[tp] = position.leader_epoch
            if position.tasks != self.tasks:
                self.advance(tp, position.offset)

    def add(self, route: Route, offset: int) -> None:
        """Take up a partition at a source offset."""
        self.routes[route.source] = route
        self.expected[route.source] = offset
        self.committed[route.source] = offset

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Give up partitions; what was written of them is committed with the rest."""
        for tp in partitions:
            self.routes.pop(tp, None)

    def continues(self, batch: SourceBatch) -> bool:
        """Invariant A."""
        return batch.tp in self.routes and self.expected[batch.tp] == batch.start

    def advance(self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Note that everything before `offset` was handed to the writer. The caller holds `turn`.

        `leader_epoch` is that of the last record before `offset`, or of a later one that was read in the same log.
        """
        if leader_epoch != NO_EPOCH:
            self.leader_epochs[tp] = leader_epoch
        self.expected[tp] = offset
        self._dirty.add(tp)

    def begins_index(self, route: Route) -> bool:
        """Tell whether nothing that is known of earlier copies counts for this partition, as before the first."""
        if self.ledger is None:
            return False
        stored = self.stored.get(route.source)
        recreated = (
            stored is not None and None not in (stored.topic_id, route.topic_id) and (stored.topic_id != route.topic_id)
        )
        return recreated or not (self.ledger.atomic or self.ledger.knows(route.source))

    async def begin_indexes(self, starts: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Have the offset indexes begin at these offsets of source and target. Raises as `TargetWriter.write`."""
        if self.ledger is not None:
            for tp, (upstream, downstream) in starts.items():
                self.ledger.begin(tp, upstream, downstream)
            await self.writer.prepare(self.ledger.take)

    async def write(self, route: Route, batch: TargetBatch) -> None:
        """Hand a batch to the writer. The caller holds `turn`. Raises as `TargetWriter.write`."""
        self.uncommitted_records += batch.record_count()
        if self.ledger is None:
            await self.writer.write(route.target, batch)
            return
        copies = Copies.of(batch)
        written = await self.writer.write(route.target, batch, self._places(route.source))
        written.add_done_callback(lambda done: self._acknowledged(route.source, copies, done))

    async def offer(self, route: Route, batch: TargetBatch) -> None:
        """As `write`, one batch after the other. Raises as `TargetWriter.offer`."""
        self.uncommitted_records += batch.record_count()
        copies = Copies.of(batch)
        self._copied(route.source, copies, (await self.writer.offer(route.target, batch)).offset)

    async def set_aside(self, target: TopicPartition, batch: TargetBatch) -> None:
        """Hand over records that are no copies, one batch after the other. Raises as `TargetWriter.offer`."""
        self.uncommitted_records += batch.record_count()
        await self.writer.offer(target, batch)

    def _places(self, tp: TopicPartition) -> list[TopicPartition]:
        """Return where the next commit will write what belongs to the partition."""
        kept = [] if self.ledger is None else self.ledger.places(tp)
        return [TopicPartition(POSITIONS_TOPIC, slot_of(self.flow, *tp)), *kept]

    def _acknowledged(self, tp: TopicPartition, copies: Copies, done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            self._copied(tp, copies, done.result().offset)

    def _copied(self, tp: TopicPartition, copies: Copies, base: int) -> None:
        if self.ledger is not None:
            self.ledger.copied(tp, copies.stretches, base)
            self.counters.acknowledged(
                tp, records=copies.records, size=copies.size, newest=copies.newest, now=time.time()
            )

    def reassert(self) -> None:
        """Have all positions written again with the next commit.

        At least once, a worker that was frozen and replaced may wake and write older positions before it learns so. It
        rejoins then, and the rebalance lets every owner put its own back.
        """
        self._dirty.update(self.routes)

    @property
    def dirty(self) -> bool:
        """Whether anything waits for a commit."""
        return bool(self._dirty)

    async def commit(self) -> dict[TopicPartition, int]:
        """Make everything written so far durable, positions included; return the positions that moved.

        Raises:
            TaskFenced, TaskFailed: nothing is known of what was written since the last commit.
        """
        async with self._one_commit:
            return await self._commit()

    async def _commit(self) -> dict[TopicPartition, int]:
        async with self.turn:
            moved, self._dirty = {tp: self.expected[tp] for tp in self._dirty}, set()
            self.uncommitted_records = 0
            if self.writer.transactional:
                await self._make_durable(moved)
        if not self.writer.transactional:
            # At least once, batches of the next commit may be under way while this one waits for acknowledgements.
            await self._make_durable(moved)
        return moved

    async def _make_durable(self, moved: Mapping[TopicPartition, int]) -> None:
        if moved:
            records = [self._record(tp, offset) for tp, offset in moved.items()]
            if self.ledger is None:
                await self.writer.commit(records)
            else:
                await self.writer.commit(records, self.ledger.take)
            self.commits += 1
            self.committed |= moved
            self.stored |= {tp: self._position(tp, offset) for tp, offset in moved.items()}

    def _record(self, tp: TopicPartition, offset: int) -> PositionRecord:
        return PositionRecord(
            topic=POSITIONS_TOPIC,
            slot=slot_of(self.flow, *tp),
            key=position_key(self.flow, *tp),
            value=self._position(tp, offset).value(),
        )

    def _position(self, tp: TopicPartition, offset: int) -> Position:
        route, stored = self.routes.get(tp), self.stored.get(tp)
        known = route or stored
        topic_id, target_id = (known.topic_id, known.target_id) if known else (None, None)
        return Position(
            offset=offset,
            tasks=self.tasks,
            topic_id=topic_id,
            target_id=target_id,
            leader_epoch=self.leader_epochs.get(tp),
        )
