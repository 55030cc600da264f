"""What a cluster says of itself and its topics, ids included.

Asked through aiokafka's connections with a newer version of its metadata request. librdkafka, which the other admin
calls use, ends the whole process (an assertion in `rd_kafka_admin_response_parse`) when a cluster answers
DescribeTopics or DescribeCluster before any of its brokers is registered again, as after a pause of its only broker.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v5
from aiokafka.protocol.types import (
    AbstractType,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from app.kafka.safe_clients import SafeClient

UNKNOWN_TOPIC = 3
NO_LEADER = 5
DENIED = 29


class _Uuid(AbstractType):  # type: ignore[misc]
    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


_NO_ID = bytes(16)
_TEXT = CompactString("utf-8")


class MetadataResponse_v12(Response):  # type: ignore[misc]
    """Kafka's MetadataResponse, version 12."""

    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), ("tags", TaggedFields)),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", _TEXT),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class MetadataRequest_v12(RequestStruct):  # type: ignore[misc]
    """Kafka's MetadataRequest, version 12."""

    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 12
    RESPONSE_TYPE = MetadataResponse_v12
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("name", _TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _Metadata(Request[MetadataRequest_v5 | MetadataRequest_v12]):  # type: ignore[misc]
    """Brokers before Kafka 3.1 answer version 5, which knows no topic ids."""

    API_KEY = 3

    def __init__(self, topics: list[str] | None) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[Any]) -> Any:
        if request_struct_class is MetadataRequest_v5:
            return request_struct_class(self._topics, False)
        wanted: Any = None if self._topics is None else [(_NO_ID, name, {}) for name in self._topics]
        return request_struct_class(wanted, False, False, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """`error_code` is Kafka's, 0 when the topic exists; `topic_id` changes when a topic is created anew.

    `leaders` are the brokers' numbers by partition, -1 where there is none.
    """

    name: str
    error_code: int
    leaders: Mapping[int, int]
    topic_id: str | None

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.leaders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A cluster's answer."""

    cluster_id: str
    topics: tuple[TopicMetadata, ...]


class NotReady(KafkaError):  # type: ignore[misc]
    """The cluster answers, but none of its brokers is registered yet; it is in a moment."""


async def ask(options: dict[str, Any], topics: Iterable[str] | None, timeout: float) -> Metadata:
    """Return what a cluster says of these topics, of all that it shows us if None, none created by asking.

    `options` are `aiokafka_options`. Raises KafkaError, OSError or asyncio.TimeoutError when it does not answer.
    """
    async with connected(options, timeout) as client:
        return await asyncio.wait_for(describe(client, topics), timeout)


@contextlib.asynccontextmanager
async def connected(options: dict[str, Any], timeout: float) -> AsyncIterator[AIOKafkaClient]:
    """A client that knows the cluster's brokers, for some requests. Raises as `ask`."""
    client = SafeClient(**options)
    try:
        await asyncio.wait_for(client.bootstrap(), timeout)
        if client.get_random_node() is None:
            raise NotReady("no broker is registered")
        yield client
    finally:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(client.close(), 2)


#: Requests that are leaned on: Kafka's key, the version, the first Kafka with it, and what does not work without.
_LEANED_ON = (
    (10, 4, "3.0", "consumer groups cannot be looked up"),
    (3, 12, "3.1", "a topic that was created anew is not told from the one before"),
)


async def too_old(options: dict[str, Any], timeout: float) -> list[str]:
    """Return what will not work with the broker that answers, for each the version that is needed. Raises as `ask`."""
    async with connected(options, timeout) as client:
        connection = await asyncio.wait_for(client._get_conn(client.get_random_node()), timeout)
        if connection is None:
            raise NotReady("the broker closed the connection")
        return [
            f"{lost} (Kafka {kafka} or later is needed)"
            for key, version, kafka, lost in _LEANED_ON
            if connection._versions.get(key, (0, 0))[1] < version
        ]


async def describe(client: AIOKafkaClient, topics: Iterable[str] | None) -> Metadata:
    """As `ask`, over a connection that is there."""
    node = client.get_random_node()
    answer = await client.send(node, _Metadata(None if topics is None else list(topics)))
    if not answer.brokers:
        raise NotReady("no broker is registered")
    return Metadata(cluster_id=answer.cluster_id, topics=tuple(_topic(*topic) for topic in _with_ids(answer)))


def _with_ids(answer: Any) -> list[tuple[Any, ...]]:
    if answer.API_VERSION == MetadataRequest_v12.API_VERSION:
        return list(answer.topics)
    return [(error, name, _NO_ID, internal, partitions) for error, name, internal, partitions in answer.topics]


def _topic(error: int, name: str, topic_id: bytes, _internal: bool, partitions: list[Any], *_: Any) -> TopicMetadata:
    leaders = {partition: leader for _, partition, leader, *_ in partitions}
    return TopicMetadata(name=name, error_code=error, leaders=leaders, topic_id=_printed(topic_id))


def _printed(topic_id: bytes) -> str | None:
    """Return an id as Kafka's own tools print it."""
    return None if topic_id == _NO_ID else base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
