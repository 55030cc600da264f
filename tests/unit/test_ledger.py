"""What a task keeps of the target's acknowledgements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.core.formats import OffsetSync
from app.core.offset_index import BeforeIndex, Exact, OffsetIndex
from app.core.records import TopicPartition
from app.core.runs import RUNS_TOPIC
from app.kafka.batches import TargetBatch
from app.runtime.ledger import Ledger, runs_of

ORIGIN = ("__krabka_origin", b"a")
TP = TopicPartition("t", 3)
SYNCS = "mm2-offset-syncs.a.internal"


def records(*offsets: int, size: int = 10) -> list[Any]:
    return [SimpleNamespace(offset=o, timestamp=1, key=None, value=b"x" * size, headers=[]) for o in offsets]


def batch(capacity: int = 10_000) -> TargetBatch:
    return TargetBatch(capacity, 0, transactional=False)


def test_a_batch_knows_the_source_offsets_of_its_records() -> None:
    filled = batch()
    filled.fill(records(3, 4, 5), 4, ORIGIN)
    filled.fill(records(6, 9, 10), 6, ORIGIN)
    filled.fill(records(12), 12, ORIGIN)
    assert filled.stretches() == [(4, 0, 3), (9, 3, 2), (12, 5, 1)]
    assert batch().stretches() == []


def test_a_record_that_does_not_fit_is_not_counted() -> None:
    filled = batch(300)
    rejected = filled.fill(records(7, 8, 9, size=120), 7, ORIGIN)
    assert rejected is not None
    assert filled.stretches() == [(7, 0, rejected.offset - 7)]


def ledger(*, atomic: bool = True) -> Ledger:
    return Ledger("a__b", SYNCS, atomic=atomic)


def index(taken: list[Any]) -> OffsetIndex:
    rings = runs_of("a__b", [(r.key, r.value) for r in taken if r.topic == RUNS_TOPIC])
    return OffsetIndex(1024, rings[TP], atomic=True)


def test_what_is_taken_rebuilds_the_index_and_goes_on() -> None:
    first = ledger()
    first.copied(TP, [(0, 0, 5), (7, 5, 3)], 100)
    taken = first.take()
    assert first.take() == []
    assert [index(taken).translate(g) for g in (2, 5, 7, 9)] == [Exact(o) for o in (102, 105, 105, 107)]

    second = ledger()
    second.restore(runs_of("a__b", [(r.key, r.value) for r in taken if r.topic == RUNS_TOPIC]))
    assert second.knows(TP)
    second.copied(TP, [(10, 0, 2)], 108)
    taken += second.take()
    assert index(taken).translate(11) == Exact(109)
    assert len(index(taken).runs()) == 2  # it went on with the run, not with a new one


@pytest.mark.parametrize("base", [-1, -2])
def test_a_batch_whose_place_is_unknown_leaves_a_gap(base: int) -> None:
    kept = ledger()
    kept.copied(TP, [(0, 0, 5)], 0)
    kept.copied(TP, [(5, 0, 5)], base)
    kept.copied(TP, [(10, 0, 5)], 10)
    known = index(kept.take())
    assert known.translate(7) == Exact(5)
    assert known.translate(12) == Exact(12)


def test_syncs_are_sparse_and_a_quiet_partition_converges() -> None:
    kept = ledger()
    kept.copied(TP, [(0, 0, 1000)], 0)
    syncs = [r for r in kept.take() if r.topic == SYNCS]
    assert [OffsetSync.decode(r.key, r.value) for r in syncs] == [
        OffsetSync(topic="t", partition=3, upstream=999, downstream=999)
    ]
    assert {r.slot for r in syncs} == {0}


def test_an_index_that_begins_anew_forgets() -> None:
    kept = ledger(atomic=False)
    kept.copied(TP, [(0, 0, 50)], 0)
    kept.begin(TP, 40, 70)
    kept.copied(TP, [(41, 0, 2)], 70)
    known = index(kept.take())
    assert known.translate(42) == Exact(71)
    assert known.translate(10) == BeforeIndex(41)
