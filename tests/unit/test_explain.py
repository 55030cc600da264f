"""Why a group's partition is, or is not, translated and written back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.config import FlowConfig
from app.core.records import TopicPartition
from app.explain_command import GroupFacts, translation_answer, why_left_out, write_back_answer
from app.failover_commands import Row
from app.kafka.group_api import Committed
from app.runtime.translator import Translated, Untranslated

PLACE = TopicPartition("a.t", 0)
EXACT = Row(
    source=TopicPartition("t", 0),
    at=Committed(offset=50),
    answer=Translated(target=PLACE, offset=40),
    there=None,
    end=100,
)
FACTS = GroupFacts(left_out=None, state_on_source="STABLE", state_on_target="ABSENT", write_back=True)


@pytest.mark.parametrize(
    ("group", "lists", "reason"),
    [
        ("g", {}, None),
        ("krabka-replicator-x", {}, "replicator's own"),
        ("g", {"exclude": ["g*"]}, "excluded by 'g*'"),
        ("g", {"include": ["h"]}, "no include entry matches it"),
        ("g", {"include": []}, "the include list is empty"),
    ],
)
def test_groups_that_a_flow_leaves_alone(group: str, lists: Any, reason: str | None) -> None:
    config = FlowConfig.model_validate({"from": "a", "to": "b", "topics": {"include": ["*"]}, "groups": lists})
    found = why_left_out(group, config)
    assert found is None if reason is None else found is not None and reason in found


def test_how_well_a_partition_is_translated() -> None:
    assert translation_answer(FACTS, EXACT) == "exact"
    bounded = replace(EXACT, answer=Translated(target=PLACE, offset=40, repeats=7))
    assert translation_answer(FACTS, bounded).startswith("at most 7 records come again")
    unknown = replace(EXACT, answer=Untranslated(why="no include entry matches it"))
    assert translation_answer(FACTS, unknown) == "no: no include entry matches it"
    assert translation_answer(replace(FACTS, left_out="why"), EXACT) == "no: why"


def test_what_becomes_of_the_offset_on_the_target() -> None:
    assert write_back_answer(FACTS, EXACT).startswith("due")
    assert write_back_answer(replace(FACTS, state_on_target="EMPTY"), EXACT).startswith("due")
    assert write_back_answer(replace(FACTS, state_on_target="STABLE"), EXACT).startswith("waits: the group is STABLE")
    assert write_back_answer(replace(FACTS, write_back=False), EXACT).startswith("no: sync.group_offsets is off")
    assert write_back_answer(FACTS, replace(EXACT, there=40)).startswith("not needed: 40")
    assert write_back_answer(FACTS, replace(EXACT, answer=Untranslated(why="x"))) == "no: not translated"
    assert write_back_answer(replace(FACTS, left_out="why"), EXACT) == "no: why"
