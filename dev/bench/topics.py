"""Backlogs, and what of them has arrived."""

from __future__ import annotations

import asyncio
import random

from aiokafka import TopicPartition as ClientPartition
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from app.kafka.batches import BatchConsumer
from dev.bench.cases import Case
from dev.bench.failures import BenchFailed

#: A few words make values that compress about as documents do.
WORDS = ("order", "customer", "amount", "euro", "shipped", "pending", "city", "note", "17", "4711", "true", "null")
VALUES = 1000
TIMEOUT = 60.0


def fill(bootstrap: str, case: Case) -> None:
    """Create the case's topic and write its records."""
    make_topic(bootstrap, case.topic, case.partitions)
    values, produced = _values(case.size), 0
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": case.batch,
            "compression.type": case.codec,
            "queue.buffering.max.messages": 200_000,
            "log_level": 0,
        }
    )
    while produced < case.records:
        try:
            partition = produced // 500 % case.partitions
            producer.produce(case.topic, values[produced % VALUES], b"k%d" % (produced % 10_000), partition=partition)
            produced += 1
        except BufferError:
            producer.poll(0.05)
        if produced % 1000 == 0:
            producer.poll(0)
    if producer.flush(TIMEOUT):
        raise BenchFailed(f"the backlog of {case.topic} could not be written")


def _values(size: int) -> list[bytes]:
    source = random.Random(size)
    text = " ".join(source.choices(WORDS, k=size * 2)).encode()
    starts = [source.randrange(len(text) - size) for _ in range(VALUES)]
    return [text[start : start + size] for start in starts]


def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic, so that copies do not fill the disk."""
    admin = AdminClient(
        {"bootstrap.servers": bootstrap, "log_level": 0}
    )  # the answer comes only while the client lives
    admin.delete_topics([topic])[topic].result(20)


class Ends:
    """The ends of a topic that may not be there yet, as a read_committed reader sees them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._topic = topic
        self._partitions: list[TopicPartition] = []

    def offsets(self) -> dict[int, int]:
        """Return the end of each partition; {} while there is no such topic."""
        try:
            if not self._partitions:
                self._partitions = self._find()
            if not self._partitions:
                return {}
            wanted = {tp: OffsetSpec.latest() for tp in self._partitions}
            found = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=10)
            return {tp.partition: future.result(10).offset for tp, future in found.items()}
        except KafkaException:
            return {}  # a topic that was made just now

    def total(self) -> int:
        """Return the sum of the ends."""
        return sum(self.offsets().values())

    def _find(self) -> list[TopicPartition]:
        topic = self._admin.list_topics(self._topic, timeout=10).topics[self._topic]
        return [] if topic.error else [TopicPartition(self._topic, partition) for partition in topic.partitions]


def count(bootstrap: str, topic: str, ends: dict[int, int]) -> int:
    """Return how many records a read_committed reader finds: ends also count the marks of transactions."""
    return asyncio.run(_count(bootstrap, topic, ends))


async def _count(bootstrap: str, topic: str, ends: dict[int, int]) -> int:
    consumer = BatchConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        check_crcs=False,
    )
    await consumer.start()
    records, open_ends = 0, {ClientPartition(topic, partition): end for partition, end in ends.items() if end}
    try:
        consumer.assign(list(open_ends))
        while open_ends:
            found = await asyncio.wait_for(consumer.getmany(timeout_ms=1000), TIMEOUT)
            for tp, batches in found.items():
                records += sum(b.batch.next_offset - b.batch.base_offset for b in batches if b.batch is not None)
                if batches[-1].next_offset >= open_ends.get(tp, 0):
                    open_ends.pop(tp, None)
    finally:
        await consumer.stop()
    return records
