"""Records that the target refuses for good, as they are kept aside: where, and with what said about each."""

from __future__ import annotations

from app.core.provenance import Header
from app.core.records import TopicPartition

#: Settings under which a topic takes every record that any topic takes, and keeps it until somebody looks.
#: `max.message.bytes` is what brokers accept in one request by default (socket.request.max.bytes), less its frame.
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": str(100 * 1024 * 1024 - 64 * 1024),
}

#: Known to Kafka from 3.6 on; earlier ones take any timestamp unless they are told otherwise.
TIMESTAMP_SETTINGS = {
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}

PREFIX = "__krabka_dead_letter_"


def dead_letter_topic(flow: str) -> str:
    """Return the topic, on the flow's target, that takes what other topics there refuse."""
    return f"krabka-replicator-dead-letter.{flow}"


def dead_letter_headers(
    cluster: str, source: TopicPartition, offset: int, remote_topic: str, reason: str
) -> list[Header]:
    """Return what is said of a refused record, each a text: where it lies, where it was to go, why it could not."""
    said = {
        "cluster": cluster,
        "topic": source.topic,
        "partition": str(source.partition),
        "offset": str(offset),
        "remote_topic": remote_topic,
        "reason": reason,
    }
    return [(PREFIX + name, text.encode()) for name, text in said.items()]
