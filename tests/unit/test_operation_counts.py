"""What a record, a batch and a request cost, counted instead of timed (docs/performance.md)."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition as ClientPartition

from app.core.provenance import origin_header
from app.core.records import TopicPartition
from app.kafka.batches import BatchRecords, SourceBatch, TargetBatch, _WholeBatches
from app.kafka.convert import merge
from app.kafka.wire import PartedProduceRequest, Wire

MEGABYTE = 1 << 20
ORIGIN = origin_header("us-east")


def source_bytes(batches: int, records: int, size: int) -> bytes:
    """A fetch response's part with as many batches of as many records."""
    data = b""
    for batch in range(batches):
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        for number in range(records):
            builder.append(number, timestamp=1000, key=b"key", value=b"x" * size, headers=[])
        data += struct.pack(">q", batch * records) + bytes(builder.build())[8:]
    return data


def source_batches(batches: int, records: int, size: int) -> list[SourceBatch]:
    whole = _WholeBatches(source_bytes(batches, records, size))
    found = list(BatchRecords(ClientPartition("t", 0), whole, [], 0, None, None, True, 1))
    for batch in found:
        batch.tp = TopicPartition("t", 0)
    assert [batch.next_offset for batch in found] == [records * (n + 1) for n in range(batches)]
    return found


def peak(work: Callable[[], Any]) -> int:
    """Return the most bytes that were held at once beyond what was held before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        made = work()
        most = tracemalloc.get_traced_memory()[1] - before
        del made
        return most
    finally:
        tracemalloc.stop()


def calls(work: Callable[[], Any]) -> Counter[str]:
    """Return how many calls of Python and of compiled functions Python sees."""
    found: Counter[str] = Counter()
    sys.setprofile(lambda _, event, __: found.update([event]) if event in ("call", "c_call") else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_source_batches_become_few_requests() -> None:
    """64 batches of 16 kB, 1 MB in all: not more than two batches on the target, each one request."""
    merged = list(merge(source_batches(64, 16, 1000), ORIGIN, transactional=False, keep=None))
    assert sum(batch.record_count() for batch in merged) == 64 * 16
    assert len(merged) <= 2


def test_a_record_costs_a_fixed_number_of_calls() -> None:
    def cost(records: int) -> Counter[str]:
        batches = source_batches(1, records, 100)
        target = TargetBatch(MEGABYTE, 0, transactional=False)
        return calls(lambda: target.fill(batches[0].batch, 0, ORIGIN))

    few, many = cost(100), cost(1100)
    assert many["call"] == few["call"]  # none of ours
    assert (many["c_call"] - few["c_call"]) / 1000 <= 1


@pytest.mark.parametrize("partitions", [1, 6])
def test_a_produce_request_copies_no_batch(partitions: int) -> None:
    batches = [bytearray(MEGABYTE) for _ in range(partitions)]

    def encoded() -> list[Any]:
        request = PartedProduceRequest(
            transactional_id=None, required_acks=-1, timeout=1, topics=[("t", list(enumerate(batches)))]
        )
        return list((b"size" + (b"header" + request.prepare({0: (7, 7)}).encode())).parts)

    theirs = ProduceRequest(None, -1, 1, [("t", list(enumerate(batches)))]).prepare({0: (7, 7)})
    assert peak(theirs.encode) > 2 * partitions * MEGABYTE  # else this measures nothing
    parts = encoded()
    assert [id(part) for part in parts if len(part) == MEGABYTE] == [id(batch) for batch in batches]
    assert peak(encoded) < MEGABYTE // 10


def test_a_large_response_is_received_into_one_place() -> None:
    size = 4 * MEGABYTE
    piece = bytes(MEGABYTE // 4)

    def received() -> Wire:
        wire, left = Wire(), struct.pack(">i", size)
        got = 0
        while got < size:
            place = wire.get_buffer(-1)
            data = left or piece[: size - got]
            count = min(len(place), len(data))
            place[:count] = data[:count]
            got += 0 if left else count
            left = left[count:]
            wire.buffer_updated(count)
        return wire

    assert peak(received) < size * 5 // 4


def test_a_response_is_taken_apart_with_one_copy() -> None:
    """Keys and values are copied once more, into the batch that they are written with; the batches themselves never."""
    data = source_bytes(16, 64, 1000)

    def looked_at() -> list[SourceBatch]:
        whole = _WholeBatches(data)
        return list(BatchRecords(ClientPartition("t", 0), whole, [], 0, None, None, False, 1))

    assert peak(looked_at) < len(data) // 10
