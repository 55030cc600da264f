"""Kafka's formats of batches on the wire, as far as aiokafka does not tell: their heads, and what the old ones lack."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import google_crc32c

#: At the beginning of a batch: its length behind these two fields, the leader epoch (before v2: a checksum), the
#: format's version, and before v2 the attributes, whose last bits are the codec.
_HEAD = struct.Struct(">8xiibb")
LENGTH_ENDS = 12
CODEC = 0b111

#: In today's batches: the checksum, and from where on it covers them.
_CHECKSUM = struct.Struct(">17xI")

#: Today's format of batches.
V2 = 2

#: The epoch of records that tell none: those of the formats before v2.
NO_EPOCH = -1

#: Kafka's word for a record that has no timestamp: those of the format v0.
NO_TIMESTAMP = -1


class _LegacyRecord(NamedTuple):
    """A record of a format before v2, with what it lacks."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class LegacyBatch:
    """A message of a format before v2, or a compressed set of them, as a batch that is iterated once."""

    __slots__ = ("_message", "_records", "compression_type")

    def __init__(self, message: Any, codec: int) -> None:
        self.compression_type = codec
        self._message = message
        self._records = iter(message)

    def __iter__(self) -> LegacyBatch:
        return self

    def __next__(self) -> _LegacyRecord:
        record = next(self._records)
        timestamp = NO_TIMESTAMP if record.timestamp is None else record.timestamp
        return _LegacyRecord(record.offset, timestamp, record.key, record.value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


class Head(NamedTuple):
    """What begins a batch that lies at `place` in a response; `length` counts from `LENGTH_ENDS` on."""

    length: int
    epoch: int
    magic: int
    attributes: int
    place: int


#: Whether the processor's own instruction for checksums is at hand: in Python they would take longer than all else.
FAST_CHECKSUMS = google_crc32c.implementation == "c"


def is_whole(data: bytes, head: Head) -> bool:
    """Tell whether a batch of today's format has the checksum that it says. aiokafka's own takes ten times as long."""
    (expected,) = _CHECKSUM.unpack_from(data, head.place)
    covered = data[head.place + _CHECKSUM.size : head.place + LENGTH_ENDS + head.length]
    return bool(google_crc32c.value(covered) == expected)


def walk(data: bytes) -> tuple[list[Head], list[bytes]]:
    """Return the heads of the batches in a response, and its parts of one format each, nearly always one."""
    heads: list[Head] = []
    parts: list[bytes] = []
    begin = place = 0
    while place + _HEAD.size <= len(data):
        length, epoch, magic, attributes = _HEAD.unpack_from(data, place)
        head = Head(length, epoch, magic, attributes, place)
        if heads and head.magic != heads[-1].magic:
            parts.append(data[begin:place])
            begin = place
        heads.append(head)
        place += LENGTH_ENDS + head.length
    parts.append(data[begin:] if begin else data)
    return heads, parts
