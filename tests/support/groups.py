"""Consumer groups as their owners use them: consume, commit, look up."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from app.core.formats import Checkpoint
from tests.support.records import read_all


def consume(bootstrap: str, group: str, topic: str, count: int, *, seconds: float = 30, **options: str) -> list[bytes]:
    """Join a group, read `count` records (fewer when no more come), commit, leave; return the values."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 50,
    }
    consumer = Consumer(settings | options)
    values: list[bytes] = []
    last: dict[int, TopicPartition] = {}
    try:
        consumer.subscribe([topic])
        deadline, quiet = time.monotonic() + seconds, 0.0
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                quiet = quiet + 0.2 if consumer.assignment() else 0.0
                if quiet > 2:
                    break
                continue
            assert message.error() is None, message.error()
            quiet = 0.0
            values.append(message.value())
            last[message.partition()] = TopicPartition(topic, message.partition(), message.offset() + 1)
        if last:
            consumer.commit(offsets=list(last.values()), asynchronous=False)
    finally:
        consumer.close()
    return values


def committed(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    request = [ConsumerGroupTopicPartitions(group)]
    found = admin.list_consumer_group_offsets(request)[group].result(20).topic_partitions
    return {(tp.topic, tp.partition): tp.offset for tp in found}


def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int], metadata: str | None = None) -> None:
    """Set offsets of a group without members."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    text = () if metadata is None else (metadata,)
    partitions = [TopicPartition(topic, p, offset, *text) for p, offset in offsets.items()]
    deadline = time.monotonic() + 20
    while True:  # a cluster's first group has to wait for its coordinator
        request = [ConsumerGroupTopicPartitions(group, partitions)]
        answer = admin.alter_consumer_group_offsets(request)[group].result(20)
        refused = [tp for tp in answer.topic_partitions if tp.error]
        if not refused:
            return
        assert time.monotonic() < deadline, refused
        time.sleep(0.2)


def checkpoints(bootstrap: str, source: str, separator: str = ".") -> list[Checkpoint]:
    """Return every checkpoint of a source, in order."""
    topic = separator.join((source, "checkpoints", "internal"))
    return [Checkpoint.decode(r.key, r.value) for r in read_all(bootstrap, topic)]


def checkpoint(
    bootstrap: str, source: str, group: str, topic: str, partition: int = 0, *, separator: str = "."
) -> Checkpoint | None:
    """Return the newest."""
    where = (group, topic, partition)
    found = [c for c in checkpoints(bootstrap, source, separator) if (c.group, c.topic, c.partition) == where]
    return found[-1] if found else None


def transactions(bootstrap: str, topic: str, name: str, values: Iterable[bytes], size: int) -> None:
    """Write values in transactions of `size`, with an aborted one after every third."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    left = list(values)
    for number in range(0, len(left), size):
        producer.begin_transaction()
        for value in left[number : number + size]:
            producer.produce(topic, value, partition=0)
        producer.commit_transaction(20)
        if number // size % 3 == 0:
            producer.begin_transaction()
            producer.produce(topic, b"aborted", partition=0)
            producer.flush(20)
            producer.abort_transaction(20)
