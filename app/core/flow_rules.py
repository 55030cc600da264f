"""What a flow does with a topic of its source: take it, under which name, or leave it, and why."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.naming import HEARTBEATS, Naming, problems
from app.core.residency import Policy, blocked
from app.core.selection import Selector, never_selected


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRules:
    """All that decides about a flow's topics; `target_zones` are the zones of the target cluster.

    `origins_hidden` says that some flow into the source keeps or changes names, so that a topic's name there does not
    tell where its records came from. `target_in_front` and `leads_back`: see `Naming.cycle`.
    """

    naming: Naming
    selector: Selector
    policies: tuple[Policy, ...] = ()
    target_zones: frozenset[str] = frozenset()
    origins_hidden: bool = False
    target_in_front: bool = False
    leads_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """A topic to be replicated as `remote_topic`."""

    topic: str
    remote_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSelected:
    """A topic to be left alone; `reason` completes "`topic` is not replicated: …"."""

    topic: str
    reason: str


def needs_provenance(topic: str, rules: FlowRules) -> bool:
    """Tell whether records of `topic` must be checked one by one for having been at the target before."""
    return rules.origins_hidden or not rules.naming.names_origin(topic)


def kept_back(topic: str, rules: FlowRules) -> str | None:
    """Say which residency policy forbids `topic` on the target; None when it may go there."""
    return blocked(topic, rules.target_zones, rules.policies, earlier=rules.naming.names(topic))


def select(topic: str, rules: FlowRules) -> Selected | NotSelected:
    """Decide about a topic of the source.

    What no list can change comes first, then the operator's lists, then the law (residency), then what Kafka allows.
    """
    remote_topic = rules.naming.remote_topic(topic)
    reason = (
        never_selected(topic)
        or rules.naming.cycle(topic, target_in_front=rules.target_in_front, leads_back=rules.leads_back)
        or _not_listed(topic, rules)
        or kept_back(topic, rules)
        or problems(remote_topic)
        or _reserved(remote_topic)
    )
    return NotSelected(topic=topic, reason=reason) if reason else Selected(topic=topic, remote_topic=remote_topic)


def _not_listed(topic: str, rules: FlowRules) -> str | None:
    """Heartbeats need no include entry: they tell the target that the flow is alive. Exclude wins over them too."""
    if rules.naming.is_heartbeats(topic):
        return rules.selector.why_excluded(topic)
    return rules.selector.why_not(topic)


def _reserved(remote_topic: str) -> str | None:
    """Keep users' data out of the target's own topics: `checkpoints.internal` is one as soon as it has a prefix."""
    if remote_topic == HEARTBEATS:
        return f"on the target it would be named {remote_topic!r}, the topic of the target's own heartbeats"
    if reason := never_selected(remote_topic):
        return f"on the target it would be named {remote_topic!r}, but {reason}"
    return None
