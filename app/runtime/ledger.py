"""What a task learns of where its copies lie, and the records that keep it on the target."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.formats import OffsetSync
from app.core.mm2_store import Sync, SyncEmitter
from app.core.offset_index import OffsetIndex
from app.core.records import TopicPartition
from app.core.runs import RUNS_TOPIC, Run, StoredRun, parse_run_key, run_key
from app.core.tasks import slot_of
from app.kafka.batches import Stretch
from app.kafka.writer import PositionRecord

#: Runs kept per partition. A transactional source gives one run for each of its transactions.
RING = 1024

#: MM2's default: how many copies at most lie between two of its sparse syncs.
OFFSET_LAG_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeping:
    """How a flow's tasks get their ledgers, and read from the target what earlier ones stored in given slots."""

    make_ledger: Callable[[], Ledger]
    read_runs: Callable[[Iterable[int]], Awaitable[Mapping[TopicPartition, Sequence[StoredRun]]]]


class Ledger:
    """The offset indexes and MM2's syncs of one task's partitions.

    Store what `take` gives before the positions that cover it, or in one transaction with them. Copies whose offset on
    the target the broker did not tell are left out: the index takes them for a gap, which is safe.
    """

    def __init__(self, flow: str, syncs_topic: str, *, atomic: bool) -> None:
        self.atomic = atomic
        self._flow = flow
        self._syncs_topic = syncs_topic
        self._indexes: dict[TopicPartition, OffsetIndex] = {}
        self._emitters: dict[TopicPartition, SyncEmitter] = {}
        self._due: dict[TopicPartition, Sync] = {}
        self._touched: set[TopicPartition] = set()

    def restore(self, stored: Mapping[TopicPartition, Iterable[StoredRun]]) -> None:
        """Go on from the newest run of each partition; writing needs no older ones."""
        for tp, runs in stored.items():
            newest = max(runs, key=lambda entry: entry.number)
            self._indexes[tp] = OffsetIndex(RING, [newest], atomic=self.atomic)

    def knows(self, tp: TopicPartition) -> bool:
        """Tell whether anything was ever stored of the partition."""
        return tp in self._indexes

    def newest(self, tp: TopicPartition) -> Run | None:
        """Return the last run of copies of a partition."""
        index = self._indexes.get(tp)
        return index.newest if index else None

    def begin(self, tp: TopicPartition, upstream: int, downstream: int) -> None:
        """As `OffsetIndex.begin`."""
        self._index(tp).begin(upstream, downstream)
        self._emitters.pop(tp, None)
        self._touched.add(tp)

    def copied(self, tp: TopicPartition, stretches: Sequence[Stretch], base: int) -> None:
        """Learn that the target acknowledged a batch at offset `base`; below 0 it did not say where."""
        if base < 0:
            return
        index = self._index(tp)
        emitter = self._emitters.get(tp)
        if emitter is None:
            emitter = self._emitters[tp] = SyncEmitter(OFFSET_LAG_MAX)
        for upstream, before, count in stretches:
            index.observe(upstream, base + before, count)
            if due := emitter.observe(upstream, base + before, count):
                self._due[tp] = due[-1]  # MM2's rule: the newest replaces the one that waits
        self._touched.add(tp)

    def places(self, tp: TopicPartition) -> list[TopicPartition]:
        """Return the partitions of our topics in which a copy of the source partition leaves a trace."""
        return [TopicPartition(RUNS_TOPIC, slot_of(self._flow, *tp)), TopicPartition(self._syncs_topic, 0)]

    def _index(self, tp: TopicPartition) -> OffsetIndex:
        index = self._indexes.get(tp)
        if index is None:
            index = self._indexes[tp] = OffsetIndex(RING, atomic=self.atomic)
        return index

    def take(self) -> list[PositionRecord]:
        """Return what was learnt since the last time; it counts as stored from now on."""
        touched, self._touched = self._touched, set()
        due, self._due = self._due, {}
        records = []
        for tp in touched:
            records += [self._run(tp, slot, run) for slot, run in self._indexes[tp].take_changed()]
            emitter = self._emitters.get(tp)
            late = emitter.commit() if emitter else None  # so that a quiet partition converges too
            if sync := late or due.get(tp):
                records.append(self._sync(tp, sync))
        return records

    def _run(self, tp: TopicPartition, slot: int, run: StoredRun) -> PositionRecord:
        key = run_key(self._flow, *tp, slot)
        return PositionRecord(topic=RUNS_TOPIC, slot=slot_of(self._flow, *tp), key=key, value=run.value())

    def _sync(self, tp: TopicPartition, sync: Sync) -> PositionRecord:
        record = OffsetSync(topic=tp.topic, partition=tp.partition, upstream=sync.upstream, downstream=sync.downstream)
        return PositionRecord(topic=self._syncs_topic, slot=0, key=record.key(), value=record.value())


def runs_of(flow: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[TopicPartition, list[StoredRun]]:
    """Return the rings of a flow's partitions, the last entry of each slot."""
    rings: dict[TopicPartition, dict[int, StoredRun]] = {}
    for key, value in {key: value for key, value in records if key is not None}.items():
        owner, topic, partition, slot = parse_run_key(key)
        if owner == flow and value is not None:
            rings.setdefault(TopicPartition(topic, partition), {})[slot] = StoredRun.decode(value)
    return {tp: list(ring.values()) for tp, ring in rings.items()}
