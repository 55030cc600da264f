"""Pause, resume and restart: written to the target once, followed by every worker through a Faust table."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import faust

from app.config import FlowConfig, Settings
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin, TopicWish
from app.kafka.follow import Publisher
from tables.controls import TABLE, Control, controls_of, controls_topic, stored_controls

Action = Literal["pause", "resume", "restart"]
Obey = Callable[[Mapping[str, Control]], None]


async def ensure_topic(target: str, settings: Settings) -> None:
    """Create the table's changelog on the target unless it exists. Raises `ReplicatorError`."""
    wish = TopicWish(
        name=controls_topic(target),
        partitions=1,
        replication_factor=settings.runtime.internal_topic_replication_factor,
        config={"cleanup.policy": "compact"},
    )
    admin = Admin(target, settings.clusters[target], settings.runtime)
    try:
        await admin.ensure_topic(wish)
    finally:
        admin.close()


def register(app: faust.App, target: str, obey: Obey) -> None:
    """Give the Faust app of a target the table; what comes in is handed on at once.

    Every worker follows the changelog of a GlobalTable as a standby. The table itself is not asked: in memory, Faust
    drops a standby's keys at every rebalance and fills it a thousand records late.
    """

    async def follow(event: Any) -> None:
        obey(controls_of([(event.message.key, event.message.value)]))

    table = app.GlobalTable(
        TABLE,
        partitions=1,
        recovery_buffer_size=1,
        use_partitioner=True,
        key_type=bytes,
        value_type=bytes,
        on_changelog_event=follow,
        help="What operators want of each flow.",
    )
    # Else JSON is expected, and one record that is none would end the recovery, heartbeats and all.
    table.key_serializer = table.value_serializer = "raw"


def changed(control: Control, action: Action) -> Control:
    """Return the wish after an action, newer than the one before."""
    at = max(time.time(), control.at + 0.001)
    if action == "restart":
        return replace(control, at=at, restart=uuid.uuid4().hex)
    return replace(control, at=at, paused=action == "pause")


async def order(flow: FlowConfig, settings: Settings, action: Action) -> Control:
    """Write the wish to the flow's target; return it when it is durable. Raises `ReplicatorError`."""
    await ensure_topic(flow.target, settings)
    now = (await stored_controls(flow.target, settings)).get(flow.name, Control())
    wanted = changed(now, action)
    publisher = Publisher(settings.clusters[flow.target], settings.runtime)
    try:
        await publisher.publish(controls_topic(flow.target), [(flow.name.encode(), wanted.value())])
    except Exception as error:  # of the client, whose errors are at home in app.kafka
        raise ClusterUnavailable(alias=flow.target, detail=str(error) or type(error).__name__) from error
    finally:
        await publisher.close()
    return wanted
