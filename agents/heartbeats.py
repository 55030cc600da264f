"""Signs of life: the leader writes one heartbeat for each flow to the target, in MM2's topic and bytes."""

from __future__ import annotations

import time

import faust

from app.config import Settings
from app.core.formats import Heartbeat
from app.core.naming import HEARTBEATS


def register(app: faust.App, target: str, settings: Settings) -> None:
    """Give the Faust app of a target the timer that beats."""
    topic = app.topic(HEARTBEATS, key_serializer="raw", value_serializer="raw", partitions=1)
    sources = [flow.source for flow in settings.flows_to(target) if flow.heartbeats]

    @app.timer(interval=settings.runtime.heartbeat_interval, on_leader=True, name=f"heartbeats to {target}")
    async def beat() -> None:
        """Write a heartbeat for each flow to this target."""
        now = int(time.time() * 1000)
        for source in sources:
            heartbeat = Heartbeat(source=source, target=target, timestamp=now)
            await topic.send(key=heartbeat.key(), value=heartbeat.value(), partition=0, timestamp=now / 1000)
