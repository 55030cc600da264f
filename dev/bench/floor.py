"""`python -m dev.bench.floor SOURCE TOPIC TARGET TOPIC`: batches passed on unread by the clients that the worker uses.

What remains is the cost of sockets, requests and checksums, which no change of the worker can go below.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import uvloop
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import _MemoryRecordsPy

from app.kafka.batches import BatchConsumer, BatchRecords, SourceBatch
from app.kafka.formats import NO_EPOCH
from app.kafka.safe_clients import SafeProducer, rebind


class RawBatch:
    """A batch with its bytes that yields itself once; everything else is answered by aiokafka's own."""

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch = batch
        self.batch = self
        self.offset = batch.next_offset - 1
        self.raw = raw

    def __iter__(self) -> Iterator[RawBatch]:
        yield self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)


class RawRecords:
    """The batches of one partition's part of a fetch response."""

    leader_epoch = NO_EPOCH
    batch_size = 0

    def __init__(self, data: bytes) -> None:
        self._records = _MemoryRecordsPy(data)

    def size_in_bytes(self) -> int:
        """As aiokafka's."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """As aiokafka's."""
        return bool(self._records.has_next())

    def next_batch(self) -> RawBatch:
        """As aiokafka's, with the bytes."""
        raw = self._records._next_slice
        return RawBatch(self._records.next_batch(), raw)


class RawFetcher(Fetcher):  # type: ignore[misc]
    """A fetcher of whole batches and their bytes."""

    _proc_fetch_request = rebind(Fetcher._proc_fetch_request, PartitionRecords=BatchRecords, MemoryRecords=RawRecords)


class RawConsumer(BatchConsumer):
    """A consumer with such a fetcher."""

    start = rebind(BatchConsumer.start, Fetcher=RawFetcher)


class Passed(BatchBuilder):  # type: ignore[misc]
    """A batch that is built already."""

    def __init__(self, batch: RawBatch) -> None:
        self._buffer = bytes(8) + batch.raw[8:]  # a producer's batches begin at offset 0, outside of the checksum
        self._relative_offset = batch.next_offset - batch.base_offset
        self._closed = True


async def main(source: str, topic: str, target: str, remote_topic: str) -> None:
    """Copy until the process is killed. Raises what the target refuses a batch for."""
    consumer = RawConsumer(
        bootstrap_servers=source,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_bytes=16 << 20,
    )
    producer = SafeProducer(bootstrap_servers=target, acks="all")
    await consumer.start()
    await producer.start()
    consumer.assign([TopicPartition(topic, partition) for partition in await producer.partitions_for(remote_topic)])
    sent: list[list[asyncio.Future[Any]]] = []
    while True:
        fetched = await consumer.getmany(timeout_ms=500)
        before = [future for futures in sent for future in futures]
        # aiokafka keeps one batch of a partition waiting, so the partitions go side by side.
        parts = (_pass_on(producer, remote_topic, tp.partition, batches) for tp, batches in fetched.items())
        sent = await asyncio.gather(*parts)
        await asyncio.gather(*before)


async def _pass_on(
    producer: SafeProducer, topic: str, partition: int, batches: list[SourceBatch]
) -> list[asyncio.Future[Any]]:
    found = [batch.batch for batch in batches if batch.batch is not None]
    return [await producer.send_batch(Passed(batch), topic, partition=partition) for batch in found]


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
