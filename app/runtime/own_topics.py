"""The topics that the replicator keeps on a target, each as it has to be: one list for whoever makes or checks them."""

from __future__ import annotations

from collections.abc import Iterable

from app.config import FlowConfig, RuntimeConfig, Settings
from app.core.dead_letters import SETTINGS, TIMESTAMP_SETTINGS, dead_letter_topic
from app.core.naming import HEARTBEATS, Naming
from app.core.runs import RUNS_TOPIC
from app.core.tasks import POSITION_SLOTS, tasks_topic
from app.kafka.admin import Admin, TopicWish
from app.kafka.rights import ACLS_TOPIC
from app.runtime.rules import flow_rules
from app.runtime.task import POSITIONS_TOPIC
from tables.controls import controls_topic

COMPACTED = {"cleanup.policy": "compact"}

#: Compaction looks at closed segments only; small ones keep the topics small that are read at each start.
SMALL = COMPACTED | {"segment.bytes": str(8 << 20)}


def of_flow(config: FlowConfig, naming: Naming, runtime: RuntimeConfig) -> list[TopicWish]:
    """Return what a flow needs before its first record."""
    return [
        _wish(POSITIONS_TOPIC, POSITION_SLOTS, runtime, SMALL),
        _wish(RUNS_TOPIC, POSITION_SLOTS, runtime, SMALL),
        _wish(naming.syncs_topic, 1, runtime, SMALL),
        _wish(tasks_topic(config.name), config.tasks, runtime, {"cleanup.policy": "delete"}),
    ]


def of_rejected(config: FlowConfig, runtime: RuntimeConfig) -> list[TopicWish]:
    """Return the dead-letter topic of a flow in two ways, none if it wants none; old brokers know but the second."""
    if config.on_rejected != "dead-letter":
        return []
    name = dead_letter_topic(config.name)
    return [_wish(name, 1, runtime, settings) for settings in (SETTINGS | TIMESTAMP_SETTINGS, SETTINGS)]


def of_target(target: str, settings: Settings) -> list[TopicWish]:
    """Return what the flows to a target share, and what their leader needs."""
    flows, runtime = settings.flows_to(target), settings.runtime
    names = [HEARTBEATS, controls_topic(target)]
    names += [ACLS_TOPIC] if any(flow.sync.acls for flow in flows) else []
    names += [flow_rules(flow, settings).naming.checkpoints_topic for flow in flows]
    return [_wish(name, 1, runtime, COMPACTED) for name in dict.fromkeys(names)]


async def ensure(target: str, settings: Settings, wishes: Iterable[TopicWish]) -> None:
    """Create those of the topics on a target that do not exist. Raises `ReplicatorError`."""
    admin = Admin(target, settings.clusters[target], settings.runtime)
    try:
        for wish in wishes:
            await admin.ensure_topic(wish)
    finally:
        admin.close()


def _wish(name: str, partitions: int, runtime: RuntimeConfig, config: dict[str, str]) -> TopicWish:
    factor = runtime.internal_topic_replication_factor
    return TopicWish(name=name, partitions=partitions, replication_factor=factor, config=config)
