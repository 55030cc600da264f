"""What a cluster tells before a flow runs: what we may do there (without an authorizer everything), and its clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import OffsetSpec

from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.admin import DESCRIBE_CHUNK, Admin

_NOT_SHOWN = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED))


async def topic_operations(admin: Admin, names: Iterable[str], timeout: float) -> dict[str, frozenset[str]]:
    """Return the operations on those of the topics that exist and that we may see. Raises `ClusterUnavailable`."""
    wanted = list(names)
    found: dict[str, frozenset[str]] = {}
    for start in range(0, len(wanted), DESCRIBE_CHUNK):
        futures = admin.client.describe_topics(
            TopicCollection(wanted[start : start + DESCRIBE_CHUNK]),
            include_authorized_operations=True,
            request_timeout=timeout,
        )
        for name, future in futures.items():
            try:
                described = await asyncio.wrap_future(future)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_SHOWN:
                    raise ClusterUnavailable(alias=admin.alias, detail=error.args[0].str()) from error
                continue
            found[name] = frozenset(operation.name for operation in described.authorized_operations or ())
    return found


async def newest_timestamps(
    admin: Admin, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    """Return the highest timestamp of each partition's records, ms; those without a record, or an answer, are left out.

    For a short look only: this asks through librdkafka (see log_offsets.py), since aiokafka's request knows no maximum.
    """
    wanted = {ClientPartition(*tp): OffsetSpec.max_timestamp() for tp in partitions}
    if not wanted:
        return {}
    found = {}
    for tp, future in admin.client.list_offsets(wanted, request_timeout=timeout).items():
        try:
            answer = await asyncio.wrap_future(future)
        except KafkaException:  # no leader, say: its clock is not looked at
            continue
        if answer.offset >= 0:
            found[TopicPartition(tp.topic, tp.partition)] = int(answer.timestamp)
    return found
