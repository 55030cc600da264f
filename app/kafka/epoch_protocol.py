"""Kafka's request for where the log of a leader epoch ends, which aiokafka does not have, as its protocol class.

Names and order of the fields are Kafka's.
"""

from __future__ import annotations

from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from app.core.records import TopicPartition
from app.kafka.log_offsets import Answers, by_topic

_ANY_LEADER = -1
_CONSUMER = -1


class OffsetForLeaderEpochResponse_v3(Response):  # type: ignore[misc]
    """Version 3, Kafka 2.3."""

    API_KEY = 23
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("error_code", Int16), ("partition", Int32), ("leader_epoch", Int32), ("end_offset", Int64)),
                ),
            ),
        ),
    )


class OffsetForLeaderEpochRequest_v3(RequestStruct):  # type: ignore[misc]
    """Version 3, Kafka 2.3."""

    API_KEY = 23
    API_VERSION = 3
    RESPONSE_TYPE = OffsetForLeaderEpochResponse_v3
    SCHEMA = Schema(
        ("replica_id", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                ("partitions", Array(("partition", Int32), ("current_leader_epoch", Int32), ("leader_epoch", Int32))),
            ),
        ),
    )


class OffsetForLeaderEpoch(Request[OffsetForLeaderEpochRequest_v3]):  # type: ignore[misc]
    """Where the given epochs of partitions end: the start of the next epoch, or the log's end."""

    API_KEY = 23

    def __init__(self, epochs: dict[TopicPartition, int]) -> None:
        self._topics = by_topic(epochs, lambda tp: (tp.partition, _ANY_LEADER, epochs[tp]))

    def build(self, request_struct_class: type[Any]) -> Any:
        """Return the request of a version."""
        return request_struct_class(_CONSUMER, self._topics)

    @staticmethod
    def rows(answer: Any) -> Answers:
        """Yield partition, error code and end offset, -1 when the leader does not know the epoch."""
        for topic, partitions in answer.topics:
            for code, partition, _, end in partitions:
                yield TopicPartition(topic, partition), code, end
