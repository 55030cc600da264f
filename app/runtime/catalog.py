"""What there is to replicate: the source's selected topics, and the topics on the target that receive them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.config import RuntimeConfig
from app.core.flow_rules import FlowRules, Selected, needs_provenance, select
from app.core.naming import collides
from app.core.records import TopicPartition
from app.kafka.admin import Admin, TopicInfo, TopicWish
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
    catalog: Catalog, needed: frozenset[str], target: Admin, runtime: RuntimeConfig
) -> dict[str, str]:
    """Make sure that the target topics of the `needed` source topics exist with at least as many partitions.

    Return the refusals, source topic to reason; those topics must not be carried before a later call succeeds.
    """
    wanted = {catalog.selected[topic].remote_topic: topic for topic in needed}
    present = await target.describe(wanted)
    missing = {remote: catalog.topics[topic] for remote, topic in wanted.items() if remote not in present}
    refusals = await target.create_topics(
        TopicWish(
            name=remote,
            partitions=info.partitions,
            replication_factor=runtime.data_topic_replication_factor,
            config={},
        )
        for remote, info in missing.items()
    )
    grown = {
        remote: catalog.topics[topic].partitions
        for remote, topic in wanted.items()
        if remote in present and present[remote].partitions < catalog.topics[topic].partitions
    }
    refusals |= await target.create_partitions(grown)
    for remote in (*missing, *grown):
        if remote not in refusals:
            log.info("%s: topic %s has %d partitions", target.alias, remote, catalog.topics[wanted[remote]].partitions)
    return {wanted[remote]: f"{remote} cannot be made on {target.alias}: {why}" for remote, why in refusals.items()}
