"""Kafka's formats of batches on the wire, as far as aiokafka does not tell: their heads, and what the old ones lack."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

#: At the beginning of a batch: its length behind these two fields, the leader epoch (before v2: a checksum), the
#: format's version, and before v2 the attributes, whose last bits are the codec.
_HEAD = struct.Struct(">8xiibb")
LENGTH_ENDS = 12
CODEC = 0b111

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


def walk(data: bytes) -> tuple[list[tuple[int, int, int, int]], list[bytes]]:
    """Return the heads of the batches in a response, and its parts of one format each, nearly always one."""
    heads: list[tuple[int, int, int, int]] = []
    parts: list[bytes] = []
    begin = place = 0
    while place + _HEAD.size <= len(data):
        head = _HEAD.unpack_from(data, place)
        if heads and head[2] != heads[-1][2]:
            parts.append(data[begin:place])
            begin = place
        heads.append(head)
        place += LENGTH_ENDS + head[0]
    parts.append(data[begin:] if begin else data)
    return heads, parts
