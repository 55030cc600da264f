"""How old the last heartbeat is that a target took."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agents import heartbeats
from agents.heartbeats import Heartbeats
from app.core.formats import Heartbeat


class Topic:
    """A topic that is told later whether it took what was sent."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[None]] = []
        self.records: list[Heartbeat] = []

    async def send(self, *, key: bytes, value: bytes, **_: Any) -> asyncio.Future[None]:
        self.records.append(Heartbeat.decode(key, value))
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


async def test_the_age_counts_from_the_last_one_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(heartbeats, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 1.0))
    topic = Topic()
    beats = Heartbeats(topic, "b", ["a"])
    assert beats.age("a") is None
    await beats.beat()
    clock.now = 110.0
    assert beats.age("a") == 10.0, "since the first try, as long as none was taken"
    await beats.beat()
    topic.sent[1].set_result(None)
    clock.now = 112.0
    await asyncio.sleep(0)
    assert beats.age("a") == 2.0
    topic.sent[0].set_result(None)  # an older one, taken late
    await beats.beat()
    topic.sent[2].set_exception(OSError("no leader"))
    clock.now = 115.0
    await asyncio.sleep(0)
    assert beats.age("a") == 5.0
    assert [(one.source, one.target) for one in topic.records] == [("a", "b")] * 3
