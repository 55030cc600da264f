"""What one flow's translation is built on, kept in step with both clusters by readers of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.config import FlowConfig, Settings
from app.core.runs import RUNS_TOPIC
from app.kafka.admin import Admin
from app.kafka.follow import Follower
from app.runtime.rules import flow_rules
from app.runtime.translator import Translator
from tables.checkpoints import Checkpoints
from tables.offset_runs import OffsetRuns, OffsetSyncs


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The translator of a flow, its checkpoints, and what reads the topics beneath."""

    translator: Translator
    checkpoints: Checkpoints
    followers: tuple[Follower, ...]
    source_follower: Follower

    @property
    def target_complete(self) -> bool:
        """Whether every topic of the target was read to its end."""
        return all(follower.loaded for follower in self.followers)

    @property
    def complete(self) -> bool:
        """Whether every topic was read to its end."""
        return self.target_complete and self.source_follower.loaded

    @property
    def missing(self) -> str:
        """Name the topics that are not read to their ends."""
        followers = (*self.followers, self.source_follower)
        return ", ".join(follower.place for follower in followers if not follower.loaded)

    async def keep(self) -> None:
        """Read until cancelled."""
        await asyncio.gather(*(follower.run() for follower in (*self.followers, self.source_follower)))


def knowledge(config: FlowConfig, settings: Settings, source: Admin, target: Admin) -> Knowledge:
    """Return what is known of a flow; nothing until it is kept."""
    rules = flow_rules(config, settings)
    runs, home_runs, syncs, checkpoints = OffsetRuns(), OffsetRuns(), OffsetSyncs(), Checkpoints()
    here = (target, settings.clusters[config.target], settings.runtime)
    there = (source, settings.clusters[config.source], settings.runtime)
    return Knowledge(
        translator=Translator(rules, runs=runs, syncs=syncs, home_runs=home_runs),
        checkpoints=checkpoints,
        followers=(
            Follower(*here, RUNS_TOPIC, runs.learn),
            Follower(*here, rules.naming.syncs_topic, syncs.learn),
            Follower(*here, rules.naming.checkpoints_topic, checkpoints.learn),
        ),
        source_follower=Follower(*there, RUNS_TOPIC, home_runs.learn),
    )
