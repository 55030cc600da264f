"""A flow's plan: what differs between source and target now, as steps. Looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.config import FlowConfig, Settings
from app.core.dead_letters import dead_letter_topic
from app.core.flow_rules import FlowRules, Selected, select
from app.core.rights import AddAcls, RemoveAcls, carried, plan_acls
from app.core.selection import Pattern
from app.core.tasks import POSITION_SLOTS, tasks_topic
from app.core.topics import (
    AlterConfigs,
    CreateTopic,
    DeleteTopic,
    OwnTopic,
    Refused,
    TopicState,
    TopicStep,
    differences,
    plan_topic,
)
from app.kafka.admin import Admin, TopicInfo, TopicWish
from app.kafka.positions import read_to_end
from app.kafka.rights import added_by, topic_acls
from app.runtime import own_topics
from app.runtime.catalog import Catalog, survey
from app.runtime.ports import positions_of
from app.runtime.task import POSITIONS_TOPIC

Step = TopicStep | DeleteTopic | AddAcls | RemoveAcls


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a flow would do, what it cannot do, and why it takes each topic of the source or leaves it."""

    flow: str
    steps: tuple[Step, ...]
    refused: tuple[Refused, ...]
    taken: Mapping[str, str]
    left: Mapping[str, str]
    warnings: tuple[str, ...]


class Planner:
    """Draws the plans of one flow."""

    def __init__(self, config: FlowConfig, settings: Settings, rules: FlowRules) -> None:
        self.config = config
        self.settings = settings
        self.rules = rules
        self.source = Admin(config.source, settings.clusters[config.source], settings.runtime)
        self.target = Admin(config.target, settings.clusters[config.target], settings.runtime)

    def close(self) -> None:
        """Let go of both clusters."""
        self.source.close()
        self.target.close()

    async def draw(self) -> Plan:
        """Look at both clusters. Raises ClusterUnavailable."""
        catalog = survey(await self.source.topics(), self.rules)
        steps = await self._topic_steps(catalog)
        refused = await self._refusals(catalog, steps)
        held = {refusal.topic for refusal in refused}
        rights, warnings = await self._rights(catalog)
        return Plan(
            flow=self.config.name,
            steps=(*(s for s in steps if s.topic not in held), *await self._deletions(catalog), *rights),
            refused=tuple(refused),
            taken={topic: self._why(topic) for topic in sorted(catalog.selected)},
            left=dict(sorted(catalog.left.items())),
            warnings=(*await self._own_topics(), *warnings),
        )

    async def _topic_steps(self, catalog: Catalog) -> list[TopicStep]:
        remote = {topic: choice.remote_topic for topic, choice in catalog.selected.items()}
        present = await self.target.describe(remote.values())
        sources = await self._states(self.source, catalog.topics, remote)
        targets = await self._states(self.target, present, present)
        rules = self.config.sync.core_rules()
        steps = [
            step
            for topic, name in sorted(remote.items())
            for step in plan_topic(sources[topic], name, targets.get(name), rules)
        ]
        return [step for step in steps if self.config.sync.topic_configs or not isinstance(step, AlterConfigs)]

    async def _states(
        self, admin: Admin, topics: Mapping[str, TopicInfo], names: Iterable[str]
    ) -> dict[str, TopicState]:
        wanted = list(names)
        settings = await admin.topic_settings(wanted)
        return {
            name: TopicState(name=name, partitions=topics[name].partitions, settings=settings.get(name))
            for name in wanted
        }

    async def _refusals(self, catalog: Catalog, steps: Iterable[TopicStep]) -> list[Refused]:
        """Return what the flow's own rules, and the target itself, would refuse."""
        name = self.rules.naming.remote_topic
        refused = [Refused(topic=topic, remote_topic=name(topic), reason=why) for topic, why in catalog.refused.items()]
        creations = {step.remote_topic: step for step in steps if isinstance(step, CreateTopic)}
        factor = self.settings.runtime.data_topic_replication_factor
        wishes = [
            TopicWish(name=s.remote_topic, partitions=s.partitions, replication_factor=factor, config=s.config)
            for s in creations.values()
        ]
        for remote, why in (await self.target.create_topics(wishes, validate_only=True)).items():
            refused.append(Refused(topic=creations[remote].topic, remote_topic=remote, reason=why))
        return refused

    async def _deletions(self, catalog: Catalog) -> list[DeleteTopic]:
        """Return copies whose source topic is gone; none when nothing is left to carry, which tells of another mishap.

        That a copy is the flow's is known by its positions, not by its name.
        """
        if not self.config.sync.deletions or not catalog.selected:
            return []
        if POSITIONS_TOPIC not in await self.target.describe([POSITIONS_TOPIC]):
            return []
        cluster, runtime = self.settings.clusters[self.config.target], self.settings.runtime
        slots = range(POSITION_SLOTS)
        records = await read_to_end(self.target, cluster, runtime, POSITIONS_TOPIC, slots, decided=False)
        known = {tp.topic for tp in positions_of(self.config.name, records)} - set(catalog.topics)
        choices = [select(topic, self.rules) for topic in await self.source.gone(sorted(known))]
        copies = {choice.remote_topic: choice.topic for choice in choices if isinstance(choice, Selected)}
        taken = {choice.remote_topic for choice in catalog.selected.values()}
        present = await self.target.describe(copies)
        return [DeleteTopic(topic=copies[name], remote_topic=name) for name in sorted(present) if name not in taken]

    async def _rights(self, catalog: Catalog) -> tuple[list[AddAcls | RemoveAcls], list[str]]:
        if not self.config.sync.acls:
            return [], []
        found, present = await topic_acls(self.source), await topic_acls(self.target)
        if found is None or present is None:
            alias = self.source.alias if found is None else self.target.alias
            return [], [f"{alias} has no authorizer: rights are not carried (sync.acls)"]
        selected = {topic: choice.remote_topic for topic, choice in catalog.selected.items()}
        cluster, runtime = self.settings.clusters[self.config.target], self.settings.runtime
        ours = await added_by(self.config.name, self.target, cluster, runtime)
        steps, _ = plan_acls(carried(found, selected, self.rules.naming), present, ours)
        return steps, []

    async def _own_topics(self) -> list[str]:
        config, settings = self.config, self.settings
        wishes = [
            *own_topics.of_flow(config, self.rules.naming, settings.runtime),
            *own_topics.of_rejected(config, settings.runtime)[:1],
            *own_topics.of_target(config.target, settings),
        ]
        growing = (tasks_topic(config.name), dead_letter_topic(config.name))
        own = [OwnTopic(w.name, w.partitions, w.config["cleanup.policy"], w.name in growing) for w in wishes]
        present = await self.target.describe(topic.name for topic in own)
        return differences(own, await self._states(self.target, present, present))

    def _why(self, topic: str) -> str:
        remote = self.rules.naming.remote_topic(topic)
        if self.rules.naming.is_heartbeats(topic):
            return f"as {remote}: heartbeats tell the target that the flow is alive"
        entry = next(entry for entry in self.rules.selector.include if Pattern(entry).matches(topic))
        return f"as {remote}: included by {entry!r}"
