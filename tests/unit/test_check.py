"""What `check` says of brokers that lack requests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands_check import _requests
from app.kafka import metadata


@pytest.mark.parametrize(
    ("versions", "lost"),
    [
        ({10: (0, 6), 3: (0, 13)}, []),
        ({10: (0, 4), 3: (0, 11)}, ["3.1"]),
        ({10: (0, 3), 3: (0, 9)}, ["3.0", "3.1"]),
        ({}, ["3.0", "3.1"]),
    ],
)
async def test_a_kafka_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch, versions: Any, lost: list[str]) -> None:
    async def connection(_: int) -> Any:
        return SimpleNamespace(_versions=versions)

    @asynccontextmanager
    async def connected(*_: Any) -> Any:
        yield SimpleNamespace(_get_conn=connection, get_random_node=lambda: 1)

    monkeypatch.setattr(metadata, "connected", connected)
    found = await metadata.too_old({}, 1)
    assert [next(kafka for kafka in ("3.0", "3.1") if f"Kafka {kafka}" in line) for line in found] == lost
    finding = _requests("a", found)
    assert finding.level == ("warning" if lost else "ok")
    assert bool(finding.fix) == bool(lost)
