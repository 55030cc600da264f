"""Whole record batches out of aiokafka's consumer, and whole batches into its producer.

aiokafka hands out single records; its fetcher already does everything a replicator needs per *batch*: aborted
transactions, control batches, positions, CRC. The classes here reuse that code with other module globals (`rebind`), so
that iterating a fetch result yields each batch once. Nothing of aiokafka is patched. The minor version of aiokafka is
pinned in pyproject.toml, and tests/integration/test_batch_contract.py holds what is relied on here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from app.core.records import TopicPartition
from app.kafka.formats import CODEC, FAST_CHECKSUMS, LENGTH_ENDS, NO_EPOCH, V2, LegacyBatch, is_whole, walk
from app.kafka.safe_clients import SafeConsumer, rebind

Header = tuple[str, bytes | None]

#: Records of a target batch whose source offsets are consecutive: the first one's source offset, how many records of
#: the batch come before it, and how many there are.
Stretch = tuple[int, int, int]

#: What a batch costs besides its records: the v2 batch header.
BATCH_OVERHEAD = 61


class SourceBatch:
    """A stretch `[start, next_offset)` of one source partition with at most one record batch in it.

    Consecutive batches of a partition touch: `start` is the `next_offset` of the one before, so that offsets which hold
    no readable record (control batches, aborted or compacted data) belong to the batch after them. `batch` is None when
    there is nothing but such offsets. The records can be iterated once.

    `leader_epoch` is that of its last record: a log that does not hold the epoch up to here was cut off meanwhile.
    `follows_epoch` is the one of the batch before it, where they differ. `size` is what the record batch took in the
    response, bytes.
    """

    __slots__ = (
        "batch", "epoch", "fetched_bytes", "follows_epoch", "leader_epoch", "next_offset", "size", "start", "tp"
    )  # fmt: skip

    def __init__(
        self,
        tp: TopicPartition,
        start: int,
        next_offset: int,
        batch: Any,
        fetched_bytes: int,
        leader_epoch: int = NO_EPOCH,
        size: int = 0,
    ) -> None:
        self.tp = tp
        self.start = start
        self.next_offset = next_offset
        self.batch = batch
        self.fetched_bytes = fetched_bytes
        self.epoch = 0
        self.leader_epoch = leader_epoch
        self.size = size
        self.follows_epoch = NO_EPOCH

    @property
    def codec(self) -> int:
        """The compression codec of the batch on the source, Kafka's number (0 none … 4 zstd)."""
        return int(self.batch.compression_type)

    @property
    def offset(self) -> int:
        """The last offset of the stretch; what aiokafka's fetcher reads to find its next position."""
        return self.next_offset - 1


class _WholeBatches:
    """Stands in for `MemoryRecords`: the same batches, each of which yields itself when iterated.

    `leader_epoch` and `batch_size` are those of the last batch, which aiokafka's batches do not tell. aiokafka reads
    all of a response as the format of its first message, so an old log that changes formats is cut where it does.
    """

    __slots__ = ("_ahead", "_data", "_heads", "_records", "batch_size", "leader_epoch")

    def __init__(self, data: bytes) -> None:
        self._data = data
        heads, parts = walk(data)
        self._heads, self._ahead = iter(heads), iter(parts)
        self._records = MemoryRecords(next(self._ahead))
        self.leader_epoch = NO_EPOCH
        self.batch_size = 0

    def size_in_bytes(self) -> int:
        return len(self._data)

    def has_next(self) -> bool:
        if not self._records.has_next() and (part := next(self._ahead, None)) is not None:
            self._records = MemoryRecords(part)
        return bool(self._records.has_next())

    def next_batch(self) -> _WholeBatch:
        head = next(self._heads)
        self.batch_size = LENGTH_ENDS + head.length
        batch = self._records.next_batch()
        if head.magic < V2:
            self.leader_epoch = NO_EPOCH
            return _WholeBatch(LegacyBatch(batch, head.attributes & CODEC), batch.validate_crc)
        self.leader_epoch = head.epoch
        check = partial(is_whole, self._data, head) if FAST_CHECKSUMS else batch.validate_crc
        return _WholeBatch(batch, check)


class _WholeBatch:
    """A batch that yields itself once; everything else the fetcher asks is answered by the batch."""

    __slots__ = ("batch", "validate_crc")

    def __init__(self, batch: Any, validate_crc: Callable[[], bool]) -> None:
        self.batch = batch
        self.validate_crc = validate_crc

    def __iter__(self) -> Iterator[_WholeBatch]:
        yield self

    def __next__(self) -> Any:
        return next(self.batch)  # the fetcher reads a control batch's first record

    @property
    def offset(self) -> int:
        return int(self.batch.next_offset) - 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batch, name)


class BatchRecords(PartitionRecords):  # type: ignore[misc]
    """One partition's part of a fetch response, iterated batch by batch (as `SourceBatch`)."""

    def __init__(self, tp: Any, records: _WholeBatches, *arguments: Any) -> None:
        self._fetched_bytes = records.size_in_bytes()
        super().__init__(tp, records, *arguments)

    def _consumer_record(self, tp: Any, record: _WholeBatch) -> Any:
        return record.batch

    def _unpack_records(self) -> Iterator[SourceBatch]:
        start = self.next_fetch_offset
        for batch in super()._unpack_records():
            epoch, size = self._records.leader_epoch, self._records.batch_size
            yield SourceBatch(self._tp, start, self.next_fetch_offset, batch, self._fetched_bytes, epoch, size)
            start = self.next_fetch_offset
        if self.next_fetch_offset > start:
            yield SourceBatch(self._tp, start, self.next_fetch_offset, None, 0, self._records.leader_epoch)


class BatchFetcher(Fetcher):  # type: ignore[misc]
    """aiokafka's fetcher, keeping batches whole."""

    _proc_fetch_request = rebind(
        Fetcher._proc_fetch_request, MemoryRecords=_WholeBatches, PartitionRecords=BatchRecords
    )


class BatchConsumer(SafeConsumer):
    """aiokafka's consumer whose `getmany` gives `SourceBatch`es."""

    start = rebind(AIOKafkaConsumer.start, Fetcher=BatchFetcher)


class TargetBatch(BatchBuilder):  # type: ignore[misc]
    """A batch to be written: filled here record by record, sent by `AIOKafkaProducer.send_batch`.

    `capacity` is the size in bytes (before compression) that may be filled; the buffer of that size is allocated at
    once, so size it to what is at hand. A first record larger than it is taken all the same.
    `newest` is the timestamp, milliseconds, of about the last record: the highest where producers' clocks agree.
    """

    def __init__(self, capacity: int, codec: int, *, transactional: bool) -> None:
        super().__init__(capacity, codec, is_transactional=int(transactional))
        self.codec = codec
        self.newest = 0
        self._begun: list[tuple[int, int]] = []
        self._follows = -1

    def fill(self, records: Iterable[Any], first_offset: int, origin: Header) -> Any | None:
        """Append records from `first_offset` on, each with `origin` behind its own headers.

        Return the record that did not fit, to be the first of the next batch, or None when all are in.
        """
        append = self._builder.append
        relative = self.record_count()
        record = rejected = None
        begun, follows = self._begun, self._follows
        for record in records:
            offset = record.offset
            if offset < first_offset:
                continue
            headers = [*record.headers, origin]
            if append(relative, record.timestamp, record.key, record.value, headers) is None:
                rejected = record
                break
            if offset != follows:
                begun.append((offset, relative))
            follows = offset + 1
            relative += 1
        if record is not None:
            self.newest = max(self.newest, record.timestamp)
        self._relative_offset = relative
        self._follows = follows
        return rejected

    def stretches(self) -> list[Stretch]:
        """Return where the records were on the source."""
        ends = [*(before for _, before in self._begun), self.record_count()][1:]
        return [(offset, before, end - before) for (offset, before), end in zip(self._begun, ends, strict=True)]

    @property
    def full_size(self) -> int:
        """Bytes filled so far, before compression."""
        return int(self.size())
