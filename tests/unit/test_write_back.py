"""Groups on the target are moved when nobody uses them, and only forwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

import pytest

from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.group_api import Committed
from app.runtime.write_back import WriteBack

P0, P1 = TopicPartition("a.t", 0), TopicPartition("a.t", 1)


class Target:
    """Groups of a target; look-ups of those in `silent` fail."""

    def __init__(self, states: dict[str, str], offsets: dict[str, dict[TopicPartition, int]]) -> None:
        self.known = states
        self.now = offsets
        self.silent: set[str] = set()
        self.down = False
        self.written: list[tuple[str, dict[TopicPartition, int]]] = []

    async def states(self) -> dict[str, str]:
        if self.down:
            raise ClusterUnavailable(alias="b", detail="no answer")
        return self.known

    async def offsets_in_turn(self, groups: Iterable[str]) -> AsyncIterator[dict[str, dict[TopicPartition, Committed]]]:
        for group in groups:
            if group not in self.silent:
                yield {group: offsets(self.now.get(group, {}))}

    async def commit(self, group: str, to: Mapping[TopicPartition, Committed]) -> str | None:
        if self.known.get(group) == "STABLE":
            return "UNKNOWN_MEMBER_ID"
        self.written.append((group, {tp: at.offset for tp, at in to.items()}))
        return None


def offsets(numbers: Mapping[TopicPartition, int]) -> dict[TopicPartition, Committed]:
    return {tp: Committed(offset=offset) for tp, offset in numbers.items()}


async def write(target: Target, wanted: dict[str, dict[TopicPartition, int]]) -> frozenset[str]:
    back = WriteBack(target)  # type: ignore[arg-type]
    return await back.write({group: offsets(numbers) for group, numbers in wanted.items()})


async def test_an_absent_group_gets_everything() -> None:
    target = Target({}, {})
    await write(target, {"g": {P0: 0, P1: 7}})
    assert target.written == [("g", {P0: 0, P1: 7})]


async def test_partitions_go_forwards_only_each_by_itself() -> None:
    target = Target({"g": "EMPTY"}, {"g": {P0: 40}})
    await write(target, {"g": {P0: 30, P1: 7}})
    assert target.written == [("g", {P1: 7})]


@pytest.mark.parametrize("state", ["STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING", "UNKNOWN"])
async def test_a_group_in_use_is_left_alone(state: str) -> None:
    target = Target({"g": state}, {})
    assert await write(target, {"g": {P0: 5}}) == frozenset()
    assert target.written == []


async def test_a_failed_look_up_means_not_now() -> None:
    target = Target({"g": "EMPTY", "h": "EMPTY"}, {"g": {P0: 90}})
    target.silent.add("g")
    await write(target, {"g": {P0: 50}, "h": {P0: 1}})
    assert target.written == [("h", {P0: 1})]
    target.down = True
    with pytest.raises(ClusterUnavailable):
        await write(target, {"h": {P0: 2}})
    assert len(target.written) == 1


async def test_what_is_there_already_is_not_looked_up_again() -> None:
    target = Target({"g": "EMPTY"}, {"g": {P0: 5}})
    back = WriteBack(target)  # type: ignore[arg-type]
    await back.write({"g": offsets({P0: 6})})
    target.down = True
    assert await back.write({"g": offsets({P0: 6})}) == frozenset()
    assert target.written == [("g", {P0: 6})]
