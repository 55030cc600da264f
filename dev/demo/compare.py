"""Reads a topic on both sides and compares record by record."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from confluent_kafka import Consumer, TopicPartition

ORIGIN = "__krabka_origin"


def differences(source: str, target: str, topic: str, alias: str, remote_topic: str) -> tuple[int, list[str]]:
    """Return how many records are equal, and what is not, a line each."""
    left, right = _read(source, topic), _read(target, remote_topic)
    equal = 0
    found: list[str] = []
    for partition in sorted({*left, *right}):
        pairs = zip_longest(left.get(partition, []), right.get(partition, []))
        for number, (original, copy) in enumerate(pairs):
            if original is not None and copy == _expected(original, alias):
                equal += 1
            elif len(found) < 5:
                found.append(f"{topic}-{partition} record {number}: {original!r:.120} became {copy!r:.160}")
    return equal, found


def _expected(original: tuple[Any, ...], alias: str) -> tuple[Any, ...]:
    timestamp, key, value, headers = original
    return timestamp, key, value, (*headers, (ORIGIN, alias.encode()))


def _read(bootstrap: str, topic: str) -> dict[int, list[tuple[Any, ...]]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    records: dict[int, list[tuple[Any, ...]]] = {}
    try:
        left = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            for message in consumer.consume(5000, timeout=0.2):
                if message.error() is not None:
                    left.discard(message.partition())
                    continue
                record = (message.timestamp()[1], message.key(), message.value(), tuple(message.headers() or ()))
                records.setdefault(message.partition(), []).append(record)
    finally:
        consumer.close()
    return records
