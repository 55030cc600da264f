"""Where partitions' logs begin and end, asked of their leaders through aiokafka's connections.

librdkafka's ListOffsets is not used: a client that once saw a cluster without its brokers goes on to find no leaders.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.offset import OffsetRequest

from app.core.records import TopicPartition
from app.kafka.metadata import connected, describe
from app.kafka.reasons import told_code

#: Kafka's special timestamps.
LATEST, EARLIEST = -1, -2

#: Kafka's codes of what passes by itself: no such partition (yet) on this broker, no leader, not the leader, another
#: epoch, the end is not known yet.
_PASSING = frozenset((3, 5, 6, 74, 76, 78))
_PAUSE = 0.2

#: Partition, Kafka's error code, offset.
Answers = Iterator[tuple[TopicPartition, int, int]]
_Row = TypeVar("_Row")


class OffsetsUnknown(KafkaError):  # type: ignore[misc]
    """A broker refuses to tell, or a partition has no leader for longer than the time-out."""


async def log_offsets(
    options: dict[str, Any],
    partitions: Iterable[TopicPartition],
    timestamp: int,
    timeout: float,
    *,
    committed: bool,
    partial: bool = False,
) -> dict[TopicPartition, int]:
    """Return the first offset with `timestamp` (ms) or a later one, -1 where there is none; or `LATEST`, `EARLIEST`.

    With `committed` the end is what a read_committed reader sees. `partial` leaves out, without waiting, what no leader
    answers for. Raises KafkaError, OSError or asyncio.TimeoutError.
    """

    def request(led: Iterable[TopicPartition]) -> OffsetRequest:
        return OffsetRequest(-1, int(committed), by_topic(led, lambda tp: (tp.partition, timestamp)))

    return await ask_leaders(options, partitions, timeout, request, _rows, partial=partial)


def _rows(answer: Any) -> Answers:
    for topic, partitions in answer.topics:
        for partition, code, _, offset in partitions:
            yield TopicPartition(topic, partition), code, offset


async def ask_leaders(
    options: dict[str, Any],
    partitions: Iterable[TopicPartition],
    timeout: float,
    request: Callable[[Iterable[TopicPartition]], Any],
    rows: Callable[[Any], Answers],
    *,
    partial: bool = False,
) -> dict[TopicPartition, int]:
    """Return an offset per partition: one request to each leader, again to the next one while leaders change.

    `request` makes it for the partitions of a leader, `rows` reads the answer. Raises as `log_offsets`.
    """
    found: dict[TopicPartition, int] = {}
    left = set(partitions)
    deadline = asyncio.get_running_loop().time() + timeout
    why = "no leader"
    async with connected(options, timeout) as client:
        while left:
            by_leader = await asyncio.wait_for(_leaders(client, left), timeout)
            for leader, led in by_leader.items():
                answer = await asyncio.wait_for(client.send(leader, request(led)), timeout)
                for tp, code, offset in rows(answer):
                    if code == 0:
                        found[tp] = offset
                    elif code not in _PASSING:
                        raise OffsetsUnknown(f"{tp.topic}-{tp.partition}: {told_code(code)}")
                    else:
                        why = told_code(code)
            left -= found.keys()
            if partial:
                break
            if left and asyncio.get_running_loop().time() > deadline:
                tp = min(left)
                raise OffsetsUnknown(
                    f"the ends of {len(left)} partitions are not known, such as {tp[0]}-{tp[1]}: {why}"
                )
            await asyncio.sleep(_PAUSE if left else 0)
    return found


async def _leaders(client: AIOKafkaClient, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    answer = await describe(client, {tp.topic for tp in partitions})
    leaders = {topic.name: topic.leaders for topic in answer.topics}
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp in partitions:
        leader = leaders.get(tp.topic, {}).get(tp.partition, -1)
        if leader >= 0:
            by_leader[leader].append(tp)
    return by_leader


def by_topic(
    partitions: Iterable[TopicPartition], row: Callable[[TopicPartition], _Row]
) -> list[tuple[str, list[_Row]]]:
    """Return what a request says of each partition, as Kafka's requests want it: a list per topic."""
    topics: dict[str, list[_Row]] = defaultdict(list)
    for tp in partitions:
        topics[tp.topic].append(row(tp))
    return list(topics.items())
