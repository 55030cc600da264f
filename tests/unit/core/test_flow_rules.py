"""The decision about a topic, all rules together."""

import pytest

from app.core.flow_rules import FlowRules, NotSelected, Selected, select
from app.core.naming import Naming, RenameMap
from app.core.residency import Policy
from app.core.selection import Selector

GDPR = Policy(name="gdpr", topics=("customers*",), allow_zones=frozenset({"gdpr"}))


def rules(include: tuple[str, ...] = ("*",), exclude: tuple[str, ...] = (), **names: object) -> FlowRules:
    naming = Naming(source="A", target="B", aliases=frozenset({"C"}), **names)  # type: ignore[arg-type]
    selector = Selector(include=include, exclude=exclude)
    return FlowRules(naming=naming, selector=selector, policies=(GDPR,), target_zones=frozenset({"us"}))


def why_not(topic: str, flow: FlowRules) -> str:
    decision = select(topic, flow)
    assert isinstance(decision, NotSelected), decision
    assert decision.topic == topic
    return decision.reason


def test_a_topic_is_taken_under_its_name_on_the_target() -> None:
    assert select("orders", rules()) == Selected(topic="orders", remote_topic="A.orders")
    assert select("C.orders", rules(style="identity")) == Selected(topic="C.orders", remote_topic="C.orders")


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("__consumer_offsets", "internal to Kafka"),
        ("B.orders", "came from B"),
        ("C.B.orders", "came from B"),
        ("tmp-1", "excluded by 'tmp*'"),
        ("payments", "no include entry matches it"),
        ("customers", "allows only gdpr"),
        ("C.customers", "allows only gdpr"),
        ("o" * 249, "251 characters"),
        ("o.checkpoints.internal", "internal topic of MirrorMaker 2"),
    ],
)
def test_a_topic_is_left_alone_with_a_reason(topic: str, reason: str) -> None:
    flow = rules(include=("o*", "*.o*", "*customers"), exclude=("tmp*",))
    assert reason in why_not(topic, flow)


def test_the_list_of_what_is_copied_when_everything_is_selected() -> None:
    topics = (
        "a x-__y heartbeats billing.internal notes-internal mm2x mm2-offset-syncs.A.internal A.checkpoints.internal"
    )
    topics += " krabka-replicator-offsets f-__assignor-__leader __consumer_offsets B.heartbeats"
    taken = [d.remote_topic for d in (select(t, rules()) for t in topics.split()) if isinstance(d, Selected)]
    assert taken == ["A.a", "A.x-__y", "A.heartbeats", "A.billing.internal", "A.notes-internal", "A.mm2x"]


def test_heartbeats_come_without_being_included_but_not_against_exclude_or_policy() -> None:
    assert select("heartbeats", rules(include=())) == Selected(topic="heartbeats", remote_topic="A.heartbeats")
    identity = rules(include=(), style="identity")
    assert select("C.heartbeats", identity) == Selected(topic="C.heartbeats", remote_topic="A.C.heartbeats")
    assert "excluded by 'heart*'" in why_not("heartbeats", rules(exclude=("heart*",)))
    everything = Policy(name="all", topics=("*",), deny_zones=frozenset({"us"}))
    flow = rules()
    held = FlowRules(naming=flow.naming, selector=flow.selector, policies=(everything,), target_zones=flow.target_zones)
    assert "policy 'all'" in why_not("heartbeats", held)


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("checkpoints.internal", {}),
        ("orders", {"renames": RenameMap(names={"orders": "heartbeats"})}),
        ("orders", {"renames": RenameMap(names={"orders": "krabka-replicator-offsets"})}),
        ("orders", {"renames": RenameMap(names={"orders": "__consumer_offsets"})}),
    ],
)
def test_no_user_topic_is_written_into_a_working_topic_of_the_target(topic: str, names: dict[str, object]) -> None:
    assert "on the target it would be named" in why_not(topic, rules(**names))
