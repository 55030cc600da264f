"""Reads a topic on both sides and compares record by record."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

ORIGIN = "__krabka_origin"

#: Seconds in which a side of the comparison has to be read; the demonstration's topics take a few.
READ_SECONDS = 120.0


class Unreadable(Exception):
    """A side could not be read to its end, so nothing can be said about it."""


def differences(source: str, target: str, topic: str, alias: str, remote_topic: str) -> tuple[int, list[str]]:
    """Return how many records are equal, and the first five that are not, a line each. Raises `Unreadable`."""
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
            "log_level": 0,
        }
    )
    try:
        return _to_the_end(consumer, topic)
    except KafkaException as error:
        raise Unreadable(f"{topic} on {bootstrap} cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _to_the_end(consumer: Consumer, topic: str) -> dict[int, list[tuple[Any, ...]]]:
    records: dict[int, list[tuple[Any, ...]]] = {}
    left = set(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
    deadline = time.monotonic() + READ_SECONDS
    while left:
        if time.monotonic() > deadline:
            raise Unreadable(f"{topic} was not read to its end within {READ_SECONDS:g} s")
        for message in consumer.consume(5000, timeout=0.2):
            if _ended(message):
                left.discard(message.partition())
            else:
                record = (message.timestamp()[1], message.key(), message.value(), tuple(message.headers() or ()))
                records.setdefault(message.partition(), []).append(record)
    return records


def _ended(message: Message) -> bool:
    """Tell a partition's end from a record. Raises what is neither."""
    error = message.error()
    if error is None:
        return False
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return True
