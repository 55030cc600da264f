"""Message formats v0 and v1, which Kafka 4 still serves to whoever reads an old log (failures.md B55)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.structs import TopicPartition as ClientPartition

from app.core.provenance import origin_header
from app.core.records import TopicPartition
from app.kafka.batches import BatchRecords, SourceBatch, _WholeBatches
from app.kafka.convert import merge
from app.kafka.formats import NO_EPOCH

ORIGIN = origin_header("us")
GZIP, LZ4 = 1, 3

Row = tuple[bytes | None, bytes | None]
ROWS: list[Row] = [(b"k", b"0"), (None, b"1"), (b"k", None), (b"", b""), (None, None), (b"k", b"5")]


def legacy(magic: int, codec: int, rows: list[Row], first: int) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for number, (key, value) in enumerate(rows):
        assert builder.append(first + number if codec == 0 else number, 1000 + number, key, value) is not None
    data = bytearray(builder.build())
    if codec:  # as on a broker's disk: the outer message has the last offset, the inner ones' are absolute in v0
        data[:8] = (first + len(rows) - 1).to_bytes(8, "big")
    return bytes(data)


def read(data: bytes, start: int) -> list[SourceBatch]:
    tp = ClientPartition("t", 0)
    batches = list(BatchRecords(tp, _WholeBatches(data), [], start, None, None, True, "read_committed"))
    for batch in batches:
        batch.tp = TopicPartition("t", 0)
    return batches


def copied(batches: list[SourceBatch]) -> list[Any]:
    found = []
    for target in merge(batches, ORIGIN, transactional=False, keep=None):
        stretches = target.stretches()
        offsets = [upstream + n for upstream, _, count in stretches for n in range(count)]
        records = list(DefaultRecordBatch(bytes(target._build())))
        found += [(o, r.key, r.value, r.timestamp, list(r.headers)) for o, r in zip(offsets, records, strict=True)]
    return found


@pytest.mark.parametrize("codec", [0, GZIP, LZ4], ids=["plain", "gzip", "lz4"])
def test_v1_is_carried_with_its_nulls_offsets_and_timestamps(codec: int) -> None:
    batches = read(legacy(1, codec, ROWS, 40), 40)
    assert [batch.leader_epoch for batch in batches] == [NO_EPOCH] * len(batches)
    assert batches[-1].next_offset == 46
    assert copied(batches) == [(40 + n, key, value, 1000 + n, [ORIGIN]) for n, (key, value) in enumerate(ROWS)]


def test_v1_is_read_on_from_the_middle_of_a_compressed_batch() -> None:
    assert [row[0] for row in copied(read(legacy(1, GZIP, ROWS, 40), 43))] == [43, 44, 45]


def test_v0_has_no_timestamps() -> None:
    assert copied(read(legacy(0, 0, ROWS, 40), 40)) == [
        (40 + n, key, value, -1, [ORIGIN]) for n, (key, value) in enumerate(ROWS)
    ]


def current(rows: list[Row], first: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, GZIP, 0, -1, -1, 0, 1 << 20)
    for number, (key, value) in enumerate(rows):
        builder.append(number, 1000, key, value, [])
    data = bytearray(builder.build())
    data[:8] = first.to_bytes(8, "big")
    return bytes(data)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_formats_follow_each_other_in_any_order(order: tuple[int, ...]) -> None:
    """Aiokafka alone reads a whole response as the format of its first message."""
    formats = [lambda *a: legacy(0, 0, *a), lambda *a: legacy(1, GZIP, *a), current]
    data = b"".join(formats[kind](ROWS[2 * n : 2 * n + 2], 2 * n) for n, kind in enumerate(order))
    assert [(row[0], row[1], row[2]) for row in copied(read(data, 0))] == [(n, k, v) for n, (k, v) in enumerate(ROWS)]
