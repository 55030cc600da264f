"""Flows of their own for each test: fresh aliases, so that no test sees another's groups, positions or heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.worker import Worker, write_config


@dataclass
class Scene:
    """One flow between the two brokers, and the workers that a test starts for it."""

    source: str
    target: str
    source_alias: str
    target_alias: str
    folder: Path
    config: Path
    workers: list[Worker] = field(default_factory=list)

    @property
    def flow(self) -> str:
        return f"{self.source_alias}__{self.target_alias}"

    def remote(self, topic: str) -> str:
        return f"{self.source_alias}.{topic}"

    def start(self, name: str = "worker", **environment: str) -> Worker:
        worker = Worker(self.config, self.folder, name, **environment)
        self.workers.append(worker)
        return worker


@pytest.fixture
def scene(clusters: Any, unique: str, tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Return a function that makes a flow over the session's brokers (or over `source` and `target` given)."""
    made: list[Scene] = []

    def make(
        topics: list[str], *, source: str | None = None, target: str | None = None, more: Any = None, **flow: Any
    ) -> Scene:
        a, b = f"a-{unique}", f"b-{unique}"
        source, target = source or clusters.source.bootstrap, target or clusters.target.bootstrap
        entry = {"from": a, "to": b, "topics": {"include": topics}, **flow}
        config = write_config(tmp_path, {a: source, b: target}, [entry], **(more or {}))
        made.append(Scene(source, target, a, b, tmp_path, config))
        return made[-1]

    yield make
    for one in made:
        for worker in one.workers:
            worker.kill()
