"""From source batches to target batches: the same records, codec and order, with one more header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from app.core.provenance import Header
from app.kafka.batches import BATCH_OVERHEAD, SourceBatch, TargetBatch

#: Bytes of records in one target batch, before compression. Kafka's default `max.message.bytes` is 1 048 588; what is
#: left is room for the batch's own header and a codec that makes its input larger.
MAX_BATCH_BYTES = 1_000_000

#: What the origin header adds to a record besides name and value: two lengths, and lengths that grow by a byte.
HEADER_OVERHEAD = 6

#: A compressed batch may grow this much; what does not fit goes into the next one.
EXPANSION = 8

Keep = Callable[[Sequence[Header]], bool]


def merge(
    run: Sequence[SourceBatch], origin: Header, *, transactional: bool, keep: Keep | None, limit: int = MAX_BATCH_BYTES
) -> Iterator[TargetBatch]:
    """Yield the records of consecutive source batches of one partition as few target batches.

    A target batch has one codec, that of its source batches. `keep` tells from a record's headers whether it may be
    copied (the loop guard of names that do not tell an origin); None copies all. `limit` is the size in bytes that a
    batch of more than one record may have.
    """
    target: TargetBatch | None = None
    for source in run:
        if source.batch is None:
            continue
        if target is not None and target.codec != source.codec:
            yield target
            target = None
        records: Iterable[Any] = source.batch if keep is None else _kept(source.batch, keep)
        # aiokafka's batch refuses a second `iter`, so what is left of it is taken record by record.
        rest = iter(source.batch.__next__, None) if keep is None else records
        rejected = True
        while rejected:
            if target is None:
                target = TargetBatch(
                    min(limit, _capacity(run, source, origin)), source.codec, transactional=transactional
                )
            first = target.fill(records, source.start, origin)
            rejected = first is not None
            if rejected:
                yield target
                target = None
                records = chain([first], rest)
    if target is not None and target.record_count():
        yield target


def replayed(source: SourceBatch, records: Sequence[Any]) -> SourceBatch:
    """Return a batch of some of the records that were taken out of `source`."""
    return SourceBatch(
        source.tp, records[0].offset, source.next_offset, _Records(records, source.codec), source.fetched_bytes
    )


class _Records:
    """Records that stand in for a batch read from the source."""

    def __init__(self, records: Iterable[Any], codec: int) -> None:
        self.compression_type = codec
        self._records = iter(records)

    def __iter__(self) -> Iterator[Any]:
        return self._records

    def __next__(self) -> Any:
        return next(self._records)


def _kept(records: Iterable[Any], keep: Keep) -> Iterator[Any]:
    return (record for record in records if keep(record.headers))


def _capacity(run: Sequence[SourceBatch], source: SourceBatch, origin: Header) -> int:
    """Return a size that holds the rest of the run, as far as that is known, and never more than one batch may have."""
    grown = len(origin[0]) + len(origin[1] or b"") + HEADER_OVERHEAD
    records = run[-1].next_offset - source.start
    fetched = source.fetched_bytes * (EXPANSION if source.codec else 1)
    return min(MAX_BATCH_BYTES, BATCH_OVERHEAD + fetched + records * grown)


def batch_limit(max_message_bytes: int) -> int:
    """Return how large batches may be filled for a topic with this `max.message.bytes`, with room as above."""
    return max(BATCH_OVERHEAD, min(MAX_BATCH_BYTES, max_message_bytes * 19 // 20))
