"""Signs of life: the leader writes one heartbeat for each flow to the target, in MM2's topic and bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import faust

from app.config import Settings
from app.core.formats import Heartbeat
from app.core.naming import HEARTBEATS


class Heartbeats:
    """Writes the heartbeats of a target's sources, and knows when the target took the last ones."""

    def __init__(self, topic: Any, target: str, sources: Iterable[str]) -> None:
        self._topic = topic
        self._target = target
        self._sources = tuple(sources)
        self._taken: dict[str, float] = {}

    def age(self, source: str) -> float | None:
        """Return the seconds since the last one that the target took, or since the first try; None before it."""
        taken = self._taken.get(source)
        return None if taken is None else time.monotonic() - taken

    async def beat(self) -> None:
        """Write a heartbeat for each source; returns before the target has them."""
        now = int(time.time() * 1000)
        for source in self._sources:
            self._taken.setdefault(source, time.monotonic())
            heartbeat = Heartbeat(source=source, target=self._target, timestamp=now)
            sent = await self._topic.send(
                key=heartbeat.key(), value=heartbeat.value(), partition=0, timestamp=now / 1000
            )
            sent.add_done_callback(partial(self._done, source, time.monotonic()))

    def _done(self, source: str, at: float, sent: asyncio.Future[Any]) -> None:
        if not sent.cancelled() and sent.exception() is None:
            self._taken[source] = max(at, self._taken[source])


def register(app: faust.App, target: str, settings: Settings) -> Heartbeats:
    """Give the Faust app of a target the timer that beats; return what does it."""
    topic = app.topic(HEARTBEATS, key_serializer="raw", value_serializer="raw", partitions=1)
    heartbeats = Heartbeats(topic, target, (flow.source for flow in settings.flows_to(target) if flow.heartbeats))

    @app.timer(interval=settings.runtime.heartbeat_interval, on_leader=True, name=f"heartbeats to {target}")
    async def beat() -> None:
        """Write a heartbeat for each flow to this target."""
        await heartbeats.beat()

    return heartbeats
