"""Compacted topics as tables: read from the beginning to the end, and on, with read_committed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition as ClientPartition

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.errors import ReplicatorError
from app.kafka.admin import Admin
from app.kafka.batches import BATCH_OVERHEAD, TargetBatch
from app.kafka.clients import aiokafka_options
from app.kafka.reasons import told
from app.kafka.safe_clients import SafeConsumer, SafeProducer

log = logging.getLogger(__name__)

#: Takes a key and a value (None: deleted); raises ValueError for bytes that are not what the topic should hold.
Learn = Callable[[bytes, "bytes | None"], None]

#: Seconds until a topic that does not exist is looked for again, and until reading is tried again.
PAUSE = 3.0

#: Records taken at once; others want to use the loop too.
POLL = 2000


class Follower:
    """Keeps something in step with one compacted topic.

    `loaded` tells whether everything was read that the topic held when reading began: to the *high watermark* of that
    time, by position, since a log may end in control batches. After a failure all is read again, and `loaded` is False
    meanwhile, since older values pass by. A topic that does not exist holds nothing.
    """

    def __init__(self, admin: Admin, cluster: ClusterConfig, runtime: RuntimeConfig, topic: str, learn: Learn) -> None:
        self.topic = topic
        self.loaded = False
        self.malformed = 0
        self._admin = admin
        self._options = aiokafka_options(cluster, runtime)
        self._learn = learn
        self._said = ""

    @property
    def place(self) -> str:
        """Name the topic and its cluster."""
        return f"{self.topic} on {self._admin.alias}"

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, ReplicatorError) as error:
                self.loaded = False
                reason = f"{self.place} is not read: {told(error)}"
                if reason != self._said:
                    log.warning("%s", reason)
                self._said = reason
            except Exception:  # a defect of ours or of a client: what follows the topic must not end unnoticed
                self.loaded = False
                log.exception("%s: unexpected failure, read again", self.place)
            await asyncio.sleep(PAUSE)

    async def _follow(self) -> None:
        topics = await self._admin.describe([self.topic])
        if self.topic not in topics:
            self.loaded = True
            return
        self.loaded = False
        partitions = [TopicPartition(self.topic, number) for number in range(topics[self.topic].partitions)]
        ends = await self._admin.high_watermarks(partitions)
        consumer = SafeConsumer(
            **self._options,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=500,
            max_poll_records=POLL,
        )
        try:
            await consumer.start()
            consumer.assign([ClientPartition(*tp) for tp in partitions])
            await consumer.seek_to_beginning()
            await self._read(consumer, {ClientPartition(*tp): end for tp, end in ends.items() if end > 0})
        finally:
            with contextlib.suppress(KafkaError, asyncio.TimeoutError):
                await asyncio.wait_for(consumer.stop(), 3)

    async def _read(self, consumer: SafeConsumer, left: dict[ClientPartition, int]) -> None:
        while True:
            self.loaded = self.loaded or not left
            found = await consumer.getmany(timeout_ms=500 if self.loaded else 50)
            for records in found.values():
                for record in records:
                    self._take(record.key, record.value)
            left = {tp: end for tp, end in left.items() if await consumer.position(tp) < end}
            await asyncio.sleep(0)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        try:
            self._learn(key or b"", value)
        except ValueError as error:
            self.malformed += 1
            if self.malformed == 1:
                log.warning("%s: a record is left out, see who else writes to this topic: %s", self.place, error)


class Publisher:
    """Writes records to compacted topics, in order, and returns when they are durable."""

    #: Bytes of keys and values in one batch; a single larger record is a batch of its own.
    BATCH = 500_000

    def __init__(self, cluster: ClusterConfig, runtime: RuntimeConfig) -> None:
        self._options = aiokafka_options(cluster, runtime)
        self._producer: SafeProducer | None = None

    async def publish(self, topic: str, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Write to partition 0. Raises `KafkaError` or OSError; then it is unknown which were written."""
        try:
            if self._producer is None:
                self._producer = SafeProducer(**self._options, enable_idempotence=True, acks="all")
                await self._producer.start()
            sent = [await self._producer.send_batch(batch, topic, partition=0) for batch in self._batches(records)]
            await asyncio.gather(*sent)
        except BaseException:
            await self.close()  # an idempotent producer may not get over a failure; the next one is a fresh one
            raise

    def _batches(self, records: Sequence[tuple[bytes, bytes]]) -> list[TargetBatch]:
        batches: list[TargetBatch] = []
        room = 0
        for key, value in records:
            size = len(key) + len(value) + 40
            if not batches or size > room:
                room = max(self.BATCH, size)
                batches.append(TargetBatch(BATCH_OVERHEAD + room, 0, transactional=False))
            batches[-1].append(timestamp=None, key=key, value=value)
            room -= size
        return batches

    async def close(self) -> None:
        """Disconnect."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, OSError, asyncio.TimeoutError):
                await asyncio.wait_for(producer.stop(), 3)
