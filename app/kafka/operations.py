"""What we may do on a cluster, as its brokers tell it. Without an authorizer that is everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, TopicCollection

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
