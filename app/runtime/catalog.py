"""What there is to replicate: the source's selected topics, and the topics on the target that receive them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.config import RuntimeConfig
from app.core.flow_rules import FlowRules, Selected, needs_provenance, select
from app.core.naming import collides
from app.core.records import TopicPartition
from app.core.topics import (
    AlterConfigs,
    ConfigRules,
    CreateTopic,
    GrowTopic,
    Setting,
    TopicState,
    TopicStep,
    described,
    plan_topic,
)
from app.kafka.admin import Admin, TopicInfo, TopicWish
from app.kafka.convert import batch_limit
from app.runtime.task import Route

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """One look at the source, sorted by what the flow does with each topic.

    `refused` maps topics that are selected but cannot be carried (yet) to the reason; `left` maps the others that are
    not carried to theirs.
    """

    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    selected: Mapping[str, Selected] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def routes(self, rules: FlowRules) -> dict[TopicPartition, Route]:
        """Return where each partition of each carried topic goes."""
        return {
            TopicPartition(topic, partition): Route(
                source=TopicPartition(topic, partition),
                target=TopicPartition(choice.remote_topic, partition),
                topic_id=self.topics[topic].topic_id,
                filter_origins=needs_provenance(topic, rules),
            )
            for topic, choice in self.selected.items()
            for partition in range(self.topics[topic].partitions)
        }


def survey(topics: Mapping[str, TopicInfo], rules: FlowRules) -> Catalog:
    """Sort the source's topics by the flow's rules; of topics that would meet under one name none is taken."""
    choices = {topic: select(topic, rules) for topic in topics}
    selected = {topic: choice for topic, choice in choices.items() if isinstance(choice, Selected)}
    left = {topic: choice.reason for topic, choice in choices.items() if not isinstance(choice, Selected)}
    refused = _collisions(selected)
    return Catalog(
        topics=topics,
        selected={topic: choice for topic, choice in selected.items() if topic not in refused},
        left=left,
        refused=refused,
    )


def _collisions(selected: Mapping[str, Selected]) -> dict[str, str]:
    refused: dict[str, str] = {}
    by_remote: dict[str, list[str]] = {}
    for choice in selected.values():
        by_remote.setdefault(choice.remote_topic, []).append(choice.topic)
    for one, other in collides([choice.remote_topic for choice in selected.values()]):
        meeting = sorted({*by_remote[one], *by_remote[other]})
        for topic in meeting:
            refused[topic] = (
                f"{' and '.join(meeting)} would meet on the target as {one!r} and {other!r}; exclude all but one"
            )
    return refused


async def ensure_targets(
    catalog: Catalog,
    needed: frozenset[str],
    source: Admin,
    target: Admin,
    runtime: RuntimeConfig,
    rules: ConfigRules | None = None,
) -> dict[str, str]:
    """Make sure that the target topics of the `needed` source topics exist with at least as many partitions.

    What is missing is created with the settings of its source topic that `rules` let through. Return the refusals,
    source topic to reason; those topics must not be carried before a later call succeeds.
    """
    wanted = {catalog.selected[topic].remote_topic: topic for topic in needed}
    present = await target.describe(wanted)
    settings = await source.topic_settings([topic for remote, topic in wanted.items() if remote not in present])
    steps = [
        step
        for remote, topic in wanted.items()
        for step in plan_topic(
            _state(catalog.topics[topic], settings.get(topic)),
            remote,
            _state(present[remote], None) if remote in present else None,
            rules or ConfigRules(),
        )
    ]
    refusals = await apply(steps, target, runtime)
    for topic in (topic for topic, seen in settings.items() if seen is None):
        log.warning(
            "%s: the settings of %s may not be seen, its copy gets the target's defaults; grant DESCRIBE_CONFIGS",
            source.alias,
            topic,
        )
    return {topic: f"{why[0]} cannot be made on {target.alias}: {why[1]}" for topic, why in refusals.items()}


async def apply(steps: Sequence[TopicStep], target: Admin, runtime: RuntimeConfig) -> dict[str, tuple[str, str]]:
    """Do what was planned, log it, and return what the target refused: source topic to (remote topic, reason)."""
    creations = [step for step in steps if isinstance(step, CreateTopic)]
    refusals = await target.create_topics(
        TopicWish(
            name=step.remote_topic,
            partitions=step.partitions,
            replication_factor=runtime.data_topic_replication_factor,
            config=step.config,
        )
        for step in creations
    )
    growth = {step.remote_topic: step.partitions for step in steps if isinstance(step, GrowTopic)}
    refusals |= await target.create_partitions(growth)
    refusals |= await target.alter_settings([step for step in steps if isinstance(step, AlterConfigs)])
    for step in steps:
        if step.remote_topic not in refusals:
            log.info("%s: %s", target.alias, described(step))
    return {
        step.topic: (step.remote_topic, refusals[step.remote_topic]) for step in steps if step.remote_topic in refusals
    }


def _state(info: TopicInfo, settings: Mapping[str, Setting] | None) -> TopicState:
    return TopicState(name=info.name, partitions=info.partitions, settings=settings)


async def with_targets(routes: Mapping[TopicPartition, Route], target: Admin) -> dict[TopicPartition, Route]:
    """Return the routes with what their target topics are: their ids, the size of batches, whether they want keys."""
    names = {route.target.topic for route in routes.values()}
    present, settings = await target.describe(names), await target.topic_settings(names)
    return {tp: _completed(route, present, settings) for tp, route in routes.items()}


def _completed(
    route: Route, present: Mapping[str, TopicInfo], settings: Mapping[str, Mapping[str, Setting] | None]
) -> Route:
    topic = route.target.topic
    known = {name: seen.value for name, seen in (settings.get(topic) or {}).items() if seen.value is not None}
    limit = known.get("max.message.bytes")
    return replace(
        route,
        target_id=present[topic].topic_id if topic in present else None,
        max_batch=batch_limit(int(limit)) if limit else route.max_batch,
        compacted="compact" in known.get("cleanup.policy", "").split(","),
    )


def lost_targets(routes: Iterable[Route], present: Mapping[str, TopicInfo]) -> dict[TopicPartition, str]:
    """Return the source partitions whose copies are not where they were, each with the remote topic's name."""
    lost = {}
    for route in routes:
        found = present.get(route.target.topic)
        if route.target_id is not None and (found is None or found.topic_id not in (None, route.target_id)):
            lost[route.source] = route.target.topic
    return lost
