"""A round of checkpoints: what it asks of the clusters, what it writes, and what it says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from agents import checkpoints
from app.config import Settings
from app.core.flow_rules import FlowRules
from app.core.formats import Checkpoint
from app.core.naming import Naming
from app.core.records import TopicPartition
from app.core.runs import Run, StoredRun, run_key
from app.core.selection import Selector
from app.errors import ClusterUnavailable
from app.kafka.group_api import Committed, GroupOffsets
from app.kafka.groups import AT_ONCE
from app.runtime.group_offsets import SHOWN
from app.runtime.knowledge import Knowledge
from app.runtime.translator import Translator
from tables.checkpoints import Checkpoints
from tables.offset_runs import OffsetRuns, OffsetSyncs

GROUPS, PARTITIONS = 400, 10

DOCUMENT = {
    "clusters": {"a": {"bootstrap": "127.0.0.1:1"}, "b": {"bootstrap": "127.0.0.1:2"}},
    "flows": [{"from": "a", "to": "b", "topics": {"include": ["t"]}, "sync": {"group_offsets": True}}],
}


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class Cluster:
    """One cluster's admin side, with idle groups; it counts the requests of each kind."""

    def __init__(self, topic: str) -> None:
        self.alias = "a"
        self.client = self
        self.topic = topic
        self.asked: Counter[str] = Counter()
        self.offsets: dict[str, list[int]] = {}
        self.down = False
        self.mute = False

    async def describe(self, topics: Iterable[str]) -> dict[str, Any]:
        self.asked["describe"] += 1
        return {topic: SimpleNamespace(partitions=PARTITIONS) for topic in topics if topic == self.topic}

    def close(self) -> None:
        self.asked["close"] += 1

    @property
    def groups(self) -> Cluster:
        return self

    async def states(self) -> dict[str, str]:
        self.asked["groups"] += 1
        if self.down:
            raise ClusterUnavailable(alias=self.alias, detail="no answer")
        return dict.fromkeys(self.offsets, "EMPTY")

    async def committed(self, chunks: Iterable[Sequence[str]]) -> AsyncIterator[GroupOffsets]:
        for chunk in chunks:
            self.asked["offsets"] += 1
            yield {} if self.mute else {group: self._committed(group) for group in chunk}

    def _committed(self, group: str) -> dict[TopicPartition, Committed]:
        offsets = self.offsets.get(group, [])
        return {TopicPartition(self.topic, p): Committed(offset=at) for p, at in enumerate(offsets)}

    async def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> str | None:
        self.asked["alter"] += 1
        return None

    async def known_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked["ends"] += 1
        return dict.fromkeys(partitions, 1000)


class Target:
    """What a round of `flow` is made of: both clusters, the records that were written, what is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.target = Cluster("t"), Cluster("a.t")
        self.written: list[tuple[bytes, bytes]] = []
        self.loaded = True
        clusters = {"a": self.source, "b": self.target}
        monkeypatch.setattr(checkpoints, "Admin", lambda alias, *_: clusters[alias])
        monkeypatch.setattr(checkpoints, "Publisher", lambda *_: self)
        monkeypatch.setattr(checkpoints, "knowledge", lambda *_: self._knowledge())
        settings = Settings.model_validate(DOCUMENT)
        self.flow = checkpoints.CheckpointFlow(settings.flows[0], settings)

    async def publish(self, topic: str, records: list[tuple[bytes, bytes]]) -> None:
        assert topic == "a.checkpoints.internal"
        self.written += records

    async def close(self) -> None:
        """As a publisher."""

    async def run(self) -> None:
        """As a follower."""

    place = "the index"

    def _knowledge(self) -> Knowledge:
        runs = OffsetRuns()
        for partition in range(PARTITIONS):
            run = StoredRun(number=0, run=Run(upstream=0, downstream=5, count=900), after=None, reach=0)
            runs.learn(run_key("a__b", "t", partition, 0), run.value())
        naming = Naming(source="a", target="b", aliases=frozenset("ab"))
        rules = FlowRules(naming=naming, selector=Selector(include=("t",)))
        translator = Translator(rules, runs=runs, syncs=OffsetSyncs(), home_runs=OffsetRuns())
        follower: Any = self
        return Knowledge(
            translator=translator, checkpoints=Checkpoints(), followers=(follower,), source_follower=follower
        )


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    made = Target(monkeypatch)
    made.source.offsets = {f"g{number:03}": [100 + number] * PARTITIONS for number in range(GROUPS)}
    return made


async def test_requests_grow_with_the_groups_and_not_with_their_partitions(target: Target) -> None:
    await target.flow.round()
    assert target.flow.problems == frozenset()
    requests = GROUPS / AT_ONCE
    assert target.source.asked == {"groups": 1, "offsets": requests}
    assert target.target.asked == {"groups": 1, "describe": 1, "ends": 1, "offsets": requests, "alter": GROUPS}
    assert len(target.written) == GROUPS * PARTITIONS
    found = [Checkpoint.decode(key, value) for key, value in target.written]
    assert {(one.upstream, one.downstream) for one in found} == {(at, at + 5) for at in range(100, 100 + GROUPS)}


async def test_a_round_without_news_writes_nothing_and_looks_at_no_group_on_the_target(target: Target) -> None:
    await target.flow.round()
    target.source.asked.clear()
    target.target.asked.clear()
    target.written.clear()
    await target.flow.round()
    assert target.source.asked == {"groups": 1, "offsets": GROUPS / AT_ONCE}
    assert target.target.asked == {"describe": 1, "ends": 1}
    assert target.written == []


async def test_what_is_shown_is_bounded_and_counted(target: Target) -> None:
    await target.flow.round()
    found = target.flow.groups
    assert (found.groups, found.partitions, len(found.first)) == (GROUPS, GROUPS * PARTITIONS, SHOWN)
    assert found.first[11] == {
        "group": "g001",
        "topic": "t",
        "partition": 1,
        "source_offset": 101,
        "target_topic": "a.t",
        "target_offset": 106,
        "exact": True,
    }


async def test_nothing_is_asked_before_the_index_is_read(target: Target) -> None:
    target.loaded = False
    await target.flow.round()
    assert target.flow.problems == {"the index, the index not read yet"}
    assert not target.source.asked


async def test_only_what_lasts_is_a_reason_for_an_alarm(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now)
    target.source.down = True
    await target.flow.round()
    now = checkpoints.PATIENCE - 1
    await target.flow.round()
    assert target.flow.stuck() is None
    now += 2
    assert "no answer" in (target.flow.stuck() or "")
    target.source.down = False
    await target.flow.round()
    assert target.flow.stuck() is None
    assert target.flow.problems == frozenset()


async def test_a_topic_that_is_gone_on_the_target_is_told_of_and_is_no_alarm(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now)
    target.target.topic = "other"
    await target.flow.round()
    now = 2 * checkpoints.PATIENCE
    assert "a.t-0 is not there" in target.flow.problems
    assert target.flow.stuck() is None
    assert target.flow.groups.groups == 0
    assert target.written == []


async def test_groups_that_are_not_looked_up_are_told_of_and_asked_for_again(target: Target) -> None:
    target.source.mute = True
    await target.flow.round()
    assert target.flow.problems == {f"{GROUPS} of {GROUPS} groups could not be looked up on a"}
    assert target.written == []
    target.source.mute = False
    await target.flow.round()
    assert target.flow.problems == frozenset()
    assert len(target.written) == GROUPS * PARTITIONS


async def test_checkpoints_are_as_old_as_the_last_round_that_was_complete(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 50.0
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now)
    assert target.flow.age() is None
    target.source.down = True
    await target.flow.round()
    now = 70.0
    assert target.flow.age() == 20.0, "since the first try, as long as none was complete"
    target.source.down = False
    await target.flow.round()
    now = 73.0
    assert target.flow.age() == 3.0
    target.source.down = True
    await target.flow.round()
    assert target.flow.age() == 3.0
