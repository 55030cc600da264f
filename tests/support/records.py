"""Topics and records on a broker, through confluent-kafka: another client than the one under test."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.kafka.producing import ONE_AT_A_TIME


class Record(NamedTuple):
    """A record as it was read."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def create_topic(bootstrap: str, name: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
    admin.create_topics([topic])[name].result(20)


def topics(bootstrap: str) -> dict[str, int]:
    """Return the number of partitions of every topic."""
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10)
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}


def produce(bootstrap: str, topic: str, records: Iterable[dict[str, Any]], **options: Any) -> None:
    """Write records (keywords of `Producer.produce`) and wait for every acknowledgement."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **ONE_AT_A_TIME, **options})
    failed: list[Any] = []
    for record in records:
        while True:
            try:
                producer.produce(topic, on_delivery=lambda error, _: error and failed.append(error), **record)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failed, failed[:3]


def numbered(count: int, partitions: int = 1, start: int = 0) -> Iterable[dict[str, Any]]:
    """Records with the numbers from `start` on, dealt to the partitions in turn."""
    for number in range(start, start + count):
        yield {"value": b"%d" % number, "key": b"k%d" % (number % 97), "partition": number % partitions}


def end_offsets(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": isolation})
    try:
        count = len(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in range(count)}
    finally:
        consumer.close()


def read_all(bootstrap: str, topic: str, *, isolation: str = "read_committed", timeout: float = 30) -> list[Record]:
    """Return every record up to the present end, in order within each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )
    found: list[Record] = []
    try:
        metadata = consumer.list_topics(topic, timeout=10).topics[topic]
        if metadata.error is not None:
            return []
        # Under traffic the end moves on: what is there now is enough.
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in metadata.partitions}
        open_partitions = set(metadata.partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in open_partitions])
        deadline = time.monotonic() + timeout
        while open_partitions and time.monotonic() < deadline:
            for message in consumer.consume(5000, timeout=0.2):
                if message.error() is not None:
                    open_partitions.discard(message.partition())
                    continue
                found.append(
                    Record(
                        message.partition(),
                        message.offset(),
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                    )
                )
                if message.offset() + 1 >= ends[message.partition()]:
                    open_partitions.discard(message.partition())
        assert not open_partitions, f"{topic}: not at the end of {open_partitions} after {timeout} s"
    finally:
        consumer.close()
    return found


def by_partition(records: Iterable[Record]) -> dict[int, list[Record]]:
    sorted_out: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        sorted_out[record.partition].append(record)
    return sorted_out


def wait_for_count(bootstrap: str, topic: str, count: int, seconds: float = 30, **options: Any) -> list[Record]:
    """Return the topic's records as soon as there are at least `count`; fail when there are fewer in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = read_all(bootstrap, topic, **options)
        except (KafkaException, KeyError):
            found = []
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, f"{topic}: {len(found)} of {count} records after {seconds} s"
        time.sleep(0.2)
