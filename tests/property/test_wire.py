"""What goes over a connection is what aiokafka's own streams and requests would bring, however the network cuts it."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from app.kafka.batches import _WholeBatches
from app.kafka.wire import STAGE, PartedProduceRequest, Parts, Wire

SIZES = st.lists(
    st.one_of(st.integers(0, 300), st.integers(STAGE - 20, STAGE + 20), st.integers(0, 3 * STAGE)), max_size=6
)


def receive(wire: Wire, data: bytes, cuts: Any) -> None:
    """Give the wire the bytes in pieces, as a transport does."""
    while data:
        place = wire.get_buffer(-1)
        assert len(place) > 0
        count = min(len(place), len(data), next(cuts))
        place[:count] = data[:count]
        data = data[count:]
        wire.buffer_updated(count)


@given(sizes=SIZES, pieces=st.lists(st.integers(1, 2 * STAGE), min_size=1, max_size=50))
async def test_responses_arrive_whole_and_in_order(sizes: list[int], pieces: list[int]) -> None:
    wire = Wire()
    frames = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    data = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    # The last piece is large, so that the number of steps is bounded.
    receive(wire, data, iter(pieces + [STAGE] * (len(data) // 1000 + 10)))
    assert [(await wire.frame()).read() for _ in frames] == frames
    assert not wire.at_eof()
    wire.connection_lost(None)
    assert wire.at_eof()
    with pytest.raises(EOFError):
        await wire.frame()


async def test_what_ended_the_connection_is_told_after_what_came_before() -> None:
    wire = Wire()
    receive(wire, struct.pack(">i", 3) + b"abc" + struct.pack(">i", 9) + b"only", iter([100] * 9))
    wire.connection_lost(ConnectionResetError("reset by peer"))
    assert (await wire.frame()).read() == b"abc"
    with pytest.raises(ConnectionResetError, match="reset by peer"):
        await wire.frame()


BATCH = st.binary(max_size=100)
TOPICS = st.lists(
    st.tuples(st.text(max_size=5), st.lists(st.tuples(st.integers(0, 99), BATCH | BATCH.map(bytearray)), max_size=3)),
    max_size=3,
)


@given(topics=TOPICS, transactional_id=st.none() | st.just("krabka-replicator-f-1"), version=st.integers(0, 7))
def test_a_produce_request_in_parts_has_the_bytes_of_aiokafkas(
    topics: list[Any], transactional_id: str | None, version: int
) -> None:
    if version < 3:
        transactional_id = None
    arguments = {"transactional_id": transactional_id, "required_acks": -1, "timeout": 4000, "topics": topics}
    theirs = ProduceRequest(**arguments).prepare({0: (version, version)})
    ours = PartedProduceRequest(**arguments).prepare({0: (version, version)})
    message = b"size" + (b"header" + ours.encode())
    assert type(ours) is type(theirs)
    assert len(message) == len(b"sizeheader" + theirs.encode())
    whole = b"".join(message.parts) if isinstance(message, Parts) else message
    assert whole == b"sizeheader" + theirs.encode()


@given(values=st.lists(st.binary(max_size=50), min_size=1, max_size=20), data=st.data())
def test_a_flipped_bit_behind_the_checksum_is_noticed(values: list[bytes], data: Any) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for number, value in enumerate(values):
        builder.append(number, timestamp=number, key=None, value=value, headers=[])
    good = bytes(builder.build())
    assert _WholeBatches(good).next_batch().validate_crc()
    # Not the heads of lengths: what is cut off is another fault, which the client waits out.
    place = data.draw(st.integers(21, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= 1 << data.draw(st.integers(0, 7))
    second = _WholeBatches(good + bytes(bad))
    assert second.next_batch().validate_crc()
    assert not second.next_batch().validate_crc()
