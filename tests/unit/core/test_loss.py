"""What was lost, by what the clusters say, and where copying goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.core.formats import Position
from app.core.loss import Seen, judge
from app.core.runs import Run

POSITION = Position(offset=100, tasks=8, topic_id="one", target_id="copy")
SEEN = Seen(
    topic_id="one", target_id="copy", start=0, end=100, target_end=80, newest=Run(upstream=60, downstream=40, count=40)
)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"end": 500},
        {"start": 100},
        {"topic_id": None},
        {"target_id": None},
        {"epoch_end": 100},
        {"epoch_end": 400, "end": 500},
        {"target_end": 90},
        {"newest": None, "target_end": 0},
        {"newest": Run(upstream=0, downstream=0, count=0), "target_end": 0},
    ],
)
def test_nothing_is_lost(change: dict[str, Any]) -> None:
    assert judge("t", 0, POSITION, replace(SEEN, **change)) is None


@pytest.mark.parametrize(
    ("change", "kind", "first", "last", "resume"),
    [
        ({"start": 130, "end": 200}, "expired", 100, 129, 130),
        ({"end": 70}, "truncated", 70, 99, 0),
        ({"start": 20, "end": 70}, "truncated", 70, 99, 20),
        ({"topic_id": "two", "end": 5}, "recreated", 100, None, 0),
        ({"topic_id": "two", "end": 900, "start": 7}, "recreated", 100, None, 7),
        ({"target_end": 0}, "target-emptied", 0, 99, 0),
        ({"target_end": 0, "start": 30}, "target-emptied", 30, 99, 30),
        ({"target_end": 75}, "target-emptied", 95, 99, 95),
        ({"target_end": 40}, "target-emptied", 60, 99, 60),
        ({"target_end": 39}, "target-emptied", 0, 99, 0),
        ({"target_id": "other"}, "target-emptied", 0, 99, 0),
        ({"epoch_end": 60, "end": 900}, "truncated", 60, 99, 60),
        ({"epoch_end": 60, "end": 70}, "truncated", 60, 99, 60),
        ({"epoch_end": 60, "start": 80, "end": 900}, "truncated", 60, 99, 80),
        ({"epoch_end": 60, "end": 900, "target_end": 75}, "truncated", 60, 99, 60),
        ({"epoch_end": 97, "end": 900, "target_end": 75}, "target-emptied", 95, 99, 95),
        ({"target_id": "other", "target_end": 900, "start": 30}, "target-emptied", 30, 99, 30),
        ({"target_id": "other", "start": 100, "end": 100}, "target-emptied", 100, 99, 100),
    ],
)
def test_losses_are_told_apart(change: dict[str, Any], kind: str, first: int, last: int | None, resume: int) -> None:
    loss = judge("t", 3, POSITION, replace(SEEN, **change))
    assert loss is not None
    assert (loss.kind, loss.first, loss.last, loss.resume) == (kind, first, last, resume)
    assert str(loss).startswith("t-3: ")
    assert str(loss).endswith(f"it goes on at offset {resume}")
