"""Rights cover what a flow touches, and nothing that one right less would do without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.naming import HEARTBEATS, Naming, RenameMap, RenameTemplate
from app.core.needed_rights import CLUSTER, Right, Wants, is_covered, needed_rights
from app.core.runs import RUNS_TOPIC
from app.core.selection import Selector

PLAIN = Naming(source="a", target="b")


def of(rights: list[Right], cluster: str, resource: str) -> dict[tuple[str, str], tuple[str, ...]]:
    chosen = [right for right in rights if (right.cluster, right.resource) == (cluster, resource)]
    assert len({(right.pattern, right.name) for right in chosen}) == len(chosen)
    return {(right.pattern, right.name): right.operations for right in chosen}


def covers(patterns: dict[tuple[str, str], tuple[str, ...]], name: str) -> bool:
    return any(is_covered(name, *pattern) for pattern in patterns)


def test_the_usual_flow() -> None:
    rights = needed_rights(Wants(naming=PLAIN, topics=("orders", "pay*"), groups=("billing",), exactly_once=True))
    assert of(rights, "a", "topic") == {
        ("LITERAL", "orders"): ("READ", "DESCRIBE_CONFIGS"),
        ("PREFIXED", "pay"): ("READ", "DESCRIBE_CONFIGS"),
        ("LITERAL", HEARTBEATS): ("READ", "DESCRIBE_CONFIGS"),
        ("LITERAL", "krabka-replicator-offset-runs"): ("READ",),
    }
    assert of(rights, "a", "group") == {
        ("LITERAL", "billing"): ("DESCRIBE",),
        ("PREFIXED", "krabka-replicator"): ("READ",),
    }
    assert of(rights, "b", "topic").keys() == {
        ("PREFIXED", "krabka-replicator"),
        ("LITERAL", HEARTBEATS),
        ("LITERAL", "mm2-offset-syncs.a.internal"),
        ("LITERAL", "a.checkpoints.internal"),
        ("PREFIXED", "a."),
    }
    assert of(rights, "b", "group") == {("PREFIXED", "krabka-replicator"): ("READ",)}
    assert of(rights, "b", "transactional-id") == {("PREFIXED", "krabka-replicator"): ("WRITE",)}
    assert not of(rights, "a", "cluster")
    assert not of(rights, "b", "cluster")


def test_what_is_not_wanted_needs_no_right() -> None:
    few = needed_rights(Wants(naming=PLAIN, topics=("orders",), groups=(), topic_configs=False))
    assert not of(few, "b", "transactional-id")
    assert of(few, "b", "topic")["PREFIXED", "a."] == ("READ", "WRITE", "CREATE", "ALTER", "DESCRIBE_CONFIGS")
    many = needed_rights(
        Wants(naming=PLAIN, topics=("orders",), groups=("g",), acls=True, group_offsets=True, deletions=True)
    )
    assert of(many, "b", "topic")["PREFIXED", "a."][-2:] == ("ALTER_CONFIGS", "DELETE")
    assert of(many, "b", "group")["LITERAL", "g"] == ("READ",)
    assert of(many, "a", "cluster") == {("LITERAL", CLUSTER): ("DESCRIBE",)}
    assert of(many, "b", "cluster") == {("LITERAL", CLUSTER): ("DESCRIBE", "ALTER")}


@pytest.mark.parametrize("entry", ["*", "re:orders", "*-eu"])
def test_an_entry_that_no_pattern_of_kafka_can_tell_needs_every_topic(entry: str) -> None:
    rights = needed_rights(Wants(naming=PLAIN, topics=("orders", entry), groups=(entry,)))
    assert of(rights, "a", "topic").keys() == {("LITERAL", "*")}
    assert ("LITERAL", "*") in of(rights, "a", "group")


LETTERS = st.text("ab.*", min_size=1, max_size=6)
NAMINGS = st.sampled_from(
    [
        PLAIN,
        Naming(source="a", target="b", separator="_"),
        Naming(source="a", target="b", style="identity"),
        Naming(source="a", target="b", renames=RenameMap(names={"ab": "x", "b": "y"})),
        Naming(source="a", target="b", style="identity", renames=RenameMap(names={"ab": "x"})),
        Naming(source="a", target="b", renames=RenameTemplate(text="{topic}.eu")),
    ]
)


@given(NAMINGS, st.lists(LETTERS, max_size=4), st.lists(st.text("ab.", min_size=1, max_size=6), max_size=8))
def test_every_topic_that_is_taken_and_its_copy_are_covered(naming: Naming, include: list[str], topics: list[str]):
    selector = Selector(include=tuple(include))
    rights = needed_rights(Wants(naming=naming, topics=tuple(include), groups=tuple(include)))
    read, groups, write = of(rights, "a", "topic"), of(rights, "a", "group"), of(rights, "b", "topic")
    for topic in filter(selector.matches, topics):
        assert covers(read, topic)
        assert covers(groups, topic)
        assert covers(write, naming.remote_topic(topic))
    assert covers(read, HEARTBEATS)
    assert covers(read, RUNS_TOPIC)
    assert covers(write, naming.remote_topic(HEARTBEATS))
