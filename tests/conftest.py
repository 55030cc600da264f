"""Real brokers for every test that asks for them; nothing has to run beforehand and nothing is left running."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from dev.kafka import Broker, start_all

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile("replicator", deadline=None)
settings.load_profile("replicator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Two clusters of one broker each, shared by the session: a test names its topics, groups and aliases afresh."""

    source: Broker
    target: Broker


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    folder = tmp_path_factory.mktemp("kafka")
    both = Clusters(source=Broker("source", folder / "source"), target=Broker("target", folder / "target"))
    try:
        start_all([both.source, both.target])
        yield both
    finally:
        both.source.stop()
        both.target.stop()


@pytest.fixture(scope="session")
def third(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A third cluster for the few tests that need one."""
    broker = Broker("third", tmp_path_factory.mktemp("kafka") / "third")
    try:
        start_all([broker])
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Return a function that makes brokers (not started) which the test may kill."""
    made: list[Broker] = []

    def make(**properties: str) -> Broker:
        named = {key.replace("_", "."): value for key, value in properties.items()}
        made.append(Broker(f"private {len(made)}", tmp_path / f"broker{len(made)}", properties=named))
        return made[-1]

    yield make
    for broker in made:
        broker.stop()


@pytest.fixture
def unique() -> str:
    """A short name that no other test has."""
    return uuid.uuid4().hex[:6]
