"""Consumer groups of one cluster, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from app.config import RuntimeConfig
from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin

#: Look-ups under way at once. Their answers are worked through in one go, while the data waits.
AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a group committed for a partition: the next offset it would read, and its own text."""

    offset: int
    metadata: str = ""


class Groups:
    """Consumer groups, of the classic and of the new protocol; share and streams groups have other offsets."""

    def __init__(self, admin: Admin, runtime: RuntimeConfig) -> None:
        self._admin = admin
        self._timeout = runtime.client_request_timeout

    async def states(self) -> dict[str, str]:
        """Return the state of every group, such as EMPTY or STABLE.

        Raises:
            ClusterUnavailable: a part of the groups could not be listed, so that absence would mean nothing.
        """
        listing = await self._answer(self._admin.client.list_consumer_groups(request_timeout=self._timeout))
        if listing.errors:
            raise ClusterUnavailable(alias=self._admin.alias, detail=f"groups are not listed: {listing.errors[0]}")
        return {group.group_id: group.state.name for group in listing.valid}

    async def offsets(self, groups: Iterable[str]) -> dict[str, dict[TopicPartition, Committed]]:
        """Return what each group committed; a group whose look-up failed is left out, one that has nothing is empty."""
        found: dict[str, dict[TopicPartition, Committed]] = {}
        async for chunk in self.offsets_in_turn(groups):
            found |= chunk
        return found

    async def offsets_in_turn(self, groups: Iterable[str]) -> AsyncIterator[dict[str, dict[TopicPartition, Committed]]]:
        """Yield the same some groups at a time."""
        wanted = list(groups)
        for start in range(0, len(wanted), AT_ONCE):
            chunk = wanted[start : start + AT_ONCE]
            answers = await asyncio.gather(*map(self._offsets, chunk))
            yield {group: answer for group, answer in zip(chunk, answers, strict=True) if answer is not None}

    async def _offsets(self, group: str) -> dict[TopicPartition, Committed] | None:
        client, asked = self._admin.client, [ConsumerGroupTopicPartitions(group)]
        future = client.list_consumer_group_offsets(asked, request_timeout=self._timeout)[group]
        try:
            partitions = (await asyncio.wrap_future(future)).topic_partitions
        except KafkaException:
            return None
        return {
            TopicPartition(tp.topic, tp.partition): Committed(offset=tp.offset, metadata=tp.metadata or "")
            for tp in partitions
            if tp.error is None and tp.offset >= 0
        }

    async def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> str | None:
        """Set offsets of a group without members, and create it if need be; return why the broker refused."""
        partitions = [
            ConfluentTopicPartition(tp.topic, tp.partition, to.offset, to.metadata) for tp, to in offsets.items()
        ]
        request = [ConsumerGroupTopicPartitions(group, partitions)]
        future = self._admin.client.alter_consumer_group_offsets(request, request_timeout=self._timeout)[group]
        try:
            answer = await asyncio.wrap_future(future)
        except KafkaException as error:
            return str(error.args[0].str())
        refusals = [f"{tp.topic}-{tp.partition}: {tp.error.str()}" for tp in answer.topic_partitions if tp.error]
        return "; ".join(refusals) or None

    async def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where those of the partitions that exist are readable with read_committed."""
        topics = await self._admin.describe({tp.topic for tp in partitions})
        there = [tp for tp in partitions if tp.topic in topics and tp.partition < topics[tp.topic].partitions]
        if not there:
            return {}
        futures = self._admin.client.list_offsets(
            {ConfluentTopicPartition(*tp): OffsetSpec.latest() for tp in there},
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._timeout,
        )
        answers = await asyncio.gather(*map(asyncio.wrap_future, futures.values()), return_exceptions=True)
        known = {}
        for tp, answer in zip(futures, answers, strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, KafkaException):
                raise answer
            if not isinstance(answer, BaseException):
                known[TopicPartition(tp.topic, tp.partition)] = answer.offset
        return known

    async def _answer(self, future: Any) -> Any:
        try:
            return await asyncio.wrap_future(future)
        except KafkaException as error:
            raise ClusterUnavailable(alias=self._admin.alias, detail=error.args[0].str()) from error
