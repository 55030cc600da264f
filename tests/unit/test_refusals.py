"""A refused partition is held, tried again ever more rarely, and let go when it has moved on."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from app.core.records import TopicPartition
from app.errors import RecordsRefused
from app.kafka.convert import MAX_BATCH_BYTES, batch_limit
from app.runtime.refusals import Refusals
from app.runtime.task import Route

TP = TopicPartition("orders", 3)
ROUTE = Route(source=TP, target=TopicPartition("us.orders", 3), topic_id="id", filter_origins=False)
ERROR = RecordsRefused(
    flow="us__eu", task=1, topic="us.orders", partition=3, reason="too large", remedy="raise max.message.bytes"
)


@dataclass
class FakeTask:
    """What a task shows of itself."""

    routes: dict[TopicPartition, Route] = field(default_factory=lambda: {TP: ROUTE})
    committed: dict[TopicPartition, int] = field(default_factory=lambda: {TP: 7})
    error: Exception | None = None


def test_a_refused_partition_is_tried_again_ever_more_rarely() -> None:
    refusals, task = Refusals("us__eu", 10.0), FakeTask()
    pauses = []
    now = 0.0
    for _ in range(6):
        refusals.note(task, ERROR, now)
        begun = now
        while refusals.holds(TP, now):
            now += 1.0
        pauses.append(now - begun)
    assert pauses == [10.0, 20.0, 40.0, 80.0, 80.0, 80.0]
    assert refusals.reasons[TP] == f"held at offset 7: {ERROR}"


def test_another_refused_record_further_on_begins_anew() -> None:
    refusals, task = Refusals("us__eu", 10.0), FakeTask()
    refusals.note(task, ERROR, 0.0)
    refusals.note(task, ERROR, 10.0)
    task.committed[TP] = 8
    refusals.note(task, ERROR, 30.0)
    assert refusals.holds(TP, 39.0)
    assert not refusals.holds(TP, 40.0)


def test_a_partition_is_let_go_only_when_it_has_moved_on() -> None:
    refusals, task = Refusals("us__eu", 10.0), FakeTask()
    refusals.note(task, ERROR, 0.0)
    refusals.settle({1: task})
    assert TP in refusals.reasons
    task.committed[TP] = 9
    refusals.settle({1: task})
    assert not refusals.reasons


def test_others_are_never_held() -> None:
    refusals = Refusals("us__eu", 10.0)
    refusals.note(FakeTask(routes={}), ERROR, 0.0)
    assert not refusals.reasons
    assert not refusals.holds(TP, 0.0)


@pytest.mark.parametrize(("allowed", "limit"), [(1_048_588, 996_158), (3_000_000, MAX_BATCH_BYTES), (10_000, 9_500)])
def test_batches_are_no_larger_than_the_topic_takes(allowed: int, limit: int) -> None:
    assert batch_limit(allowed) == limit
