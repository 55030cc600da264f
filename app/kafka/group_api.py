"""Consumer groups asked and changed through aiokafka's connections.

librdkafka's group calls are not used: after its only broker was paused, a client's look-ups of coordinators never come
back (seen for a minute, until the process is started anew), and groups cost a request each.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest

from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.group_protocol import FetchOffsets, FindCoordinators, ListGroups
from app.kafka.metadata import connected
from app.kafka.reasons import told, told_code

#: Coordinators that are being elected or loaded are asked for again after this many seconds.
PAUSE = 0.2

#: Kafka's codes: coordinator loading, not available, not this one.
_COORDINATOR_TO_COME = (14, 15, 16)
_NOT_FOUND = 69


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a group committed for a partition: the next offset it would read, and its own text."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a classic group: who it is, and the partitions it has."""

    client_id: str
    host: str
    partitions: frozenset[TopicPartition]


#: What groups committed, by group.
GroupOffsets = dict[str, dict[TopicPartition, Committed]]


class GroupApi:
    """Groups of one cluster. Every method raises `ClusterUnavailable` when the cluster does not answer in time.

    Needs Kafka 3.0 or later.
    """

    def __init__(self, alias: str, options: dict[str, Any], timeout: float) -> None:
        self._alias = alias
        self._options = options
        self._timeout = timeout

    async def states(self) -> dict[str, str]:
        """Return the state of every consumer group, such as EMPTY or STABLE; complete, or an error."""
        async with self._connected() as client:
            nodes = [broker.nodeId for broker in client.cluster.brokers()]
            answers = await asyncio.gather(*(self._send(client, node, ListGroups()) for node in nodes))
        for answer in answers:
            self._raise_for(answer.error_code, "groups are not listed")
        return {
            group: state.upper() or "UNKNOWN"
            for answer in answers
            for group, protocol_type, state, _ in answer.groups
            if protocol_type in ("consumer", "")
        }

    async def committed(self, chunks: Iterable[Sequence[str]]) -> AsyncIterator[GroupOffsets]:
        """Yield what the groups of each chunk committed; a group whose look-up was refused is left out."""
        async with self._connected() as client:
            for chunk in chunks:
                yield await self._fetch(client, chunk)

    async def _fetch(self, client: AIOKafkaClient, groups: Sequence[str]) -> GroupOffsets:
        found: GroupOffsets = {}
        left = list(groups)
        deadline = asyncio.get_running_loop().time() + self._timeout
        while left:
            again: list[str] = []
            for node, names in (await self._coordinators(client, left)).items():
                for group, topics, error, _ in (await self._send(client, node, FetchOffsets(names))).groups:
                    if error in _COORDINATOR_TO_COME:
                        again.append(group)
                    elif error in (0, _NOT_FOUND):
                        found[group] = _offsets(topics)
            left = again
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(PAUSE if left else 0)
        return found

    async def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> str | None:
        """Set offsets of a group without members, and create it if need be; return why the broker refused."""
        topics: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for tp, to in offsets.items():
            topics[tp.topic].append((tp.partition, to.offset, to.metadata))
        request = OffsetCommitRequest(group, -1, "", -1, list(topics.items()))
        async with self._connected() as client:
            deadline = asyncio.get_running_loop().time() + self._timeout
            while True:
                (node,) = await self._coordinators(client, [group])
                answer = await self._send(client, node, request)
                refused = [(topic, p, code) for topic, rows in answer.topics for p, code in rows if code]
                passing = any(code in _COORDINATOR_TO_COME for _, _, code in refused)
                if not passing or asyncio.get_running_loop().time() > deadline:
                    return "; ".join(f"{topic}-{p}: {told_code(code)}" for topic, p, code in refused) or None
                await asyncio.sleep(PAUSE)

    async def members(self, group: str) -> int:
        """Return how many members a classic group has now; 0 also when there is no such group."""
        return len((await self._described(group))[1])

    async def assignments(self, group: str) -> list[Member] | None:
        """Return who has what in a classic group; None while that is being settled."""
        state, members = await self._described(group)
        return [_member(*found) for found in members] if state in ("Stable", "Empty", "Dead") else None

    async def _described(self, group: str) -> tuple[str, Sequence[Any]]:
        """Return the state and the members of a classic group."""
        async with self._connected() as client:
            deadline = asyncio.get_running_loop().time() + self._timeout
            while True:
                (node,) = await self._coordinators(client, [group])
                (found,) = (await self._send(client, node, DescribeGroupsRequest([group]))).groups
                code, _, state, _, _, members = found[:6]
                if code in (0, _NOT_FOUND):
                    return state, members
                if code not in _COORDINATOR_TO_COME or asyncio.get_running_loop().time() > deadline:
                    self._raise_for(code, f"group {group} is not described")
                await asyncio.sleep(PAUSE)

    async def _coordinators(self, client: AIOKafkaClient, groups: Sequence[str]) -> dict[int, list[str]]:
        """Return the groups of each coordinator, waiting while one is being elected."""
        by_node: dict[int, list[str]] = defaultdict(list)
        left = list(groups)
        deadline = asyncio.get_running_loop().time() + self._timeout
        while left:
            answer = await self._send(client, client.get_random_node(), FindCoordinators(left))
            left = []
            for group, node, _, _, error, _, _ in answer.coordinators:
                if error in _COORDINATOR_TO_COME:
                    left.append(group)
                    continue
                self._raise_for(error, f"group {group} has no coordinator")
                by_node[node].append(group)
            if left and asyncio.get_running_loop().time() > deadline:
                raise ClusterUnavailable(alias=self._alias, detail=f"{len(left)} groups have no coordinator")
            await asyncio.sleep(PAUSE if left else 0)
        return by_node

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AIOKafkaClient]:
        try:
            async with connected(self._options, self._timeout) as client:
                yield client
        except asyncio.TimeoutError as error:
            raise ClusterUnavailable(alias=self._alias, detail="it does not answer about groups") from error
        except (KafkaError, OSError) as error:
            raise ClusterUnavailable(alias=self._alias, detail=told(error)) from error

    async def _send(self, client: AIOKafkaClient, node: int, request: Any) -> Any:
        return await asyncio.wait_for(client.send(node, request), self._timeout)

    def _raise_for(self, code: int, what: str) -> None:
        if code:
            raise ClusterUnavailable(alias=self._alias, detail=f"{what}: {told_code(code)}")


def _offsets(topics: Sequence[Any]) -> dict[TopicPartition, Committed]:
    return {
        TopicPartition(topic, partition): Committed(offset=offset, metadata=metadata or "")
        for topic, partitions, _ in topics
        for partition, offset, _, metadata, error, _ in partitions
        if error == 0 and offset >= 0
    }


def _member(_id: str, client_id: str, host: str, _metadata: bytes, assignment: bytes, *_: Any) -> Member:
    topics = ConsumerProtocolMemberAssignment.decode(assignment).assignment if assignment else ()
    found = frozenset(TopicPartition(topic, number) for topic, numbers in topics for number in numbers)
    return Member(client_id=client_id, host=host.lstrip("/"), partitions=found)
