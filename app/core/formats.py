"""Bytes of the records that are kept on the target: MM2's (Kafka's primitives, big-endian) and our own (JSON)."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from typing import Any

_VERSION = 0  # of the values of heartbeats and checkpoints; offset syncs have none


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A sign of life written to the target; `timestamp` in ms since 1970."""

    source: str
    target: str
    timestamp: int

    def key(self) -> bytes:
        """Return MM2's key."""
        return _string(self.source) + _string(self.target)

    def value(self) -> bytes:
        """Return MM2's value."""
        return struct.pack(">hq", _VERSION, self.timestamp)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Heartbeat:
        """Read MM2's bytes; raises ValueError when they are malformed."""
        names, beat = _Reader(key), _versioned(value)
        source, target, timestamp = names.string(), names.string(), beat.number("q")
        names.end()
        beat.end()
        return cls(source=source, target=target, timestamp=timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A group's offset on the source and its translation; `topic` is the name on the target."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def key(self) -> bytes:
        """Return MM2's key."""
        return _string(self.group) + _string(self.topic) + struct.pack(">i", self.partition)

    def value(self) -> bytes:
        """Return MM2's value."""
        return struct.pack(">hqq", _VERSION, self.upstream, self.downstream) + _string(self.metadata)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Checkpoint:
        """Read MM2's bytes; raises ValueError when they are malformed."""
        whose, what = _Reader(key), _versioned(value)
        checkpoint = cls(
            group=whose.string(),
            topic=whose.string(),
            partition=whose.number("i"),
            upstream=what.number("q"),
            downstream=what.number("q"),
            metadata=what.string(),
        )
        whose.end()
        what.end()
        return checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """A record's offset on the source and on the target; `topic` is the name on the source."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def key(self) -> bytes:
        """Return MM2's key."""
        return _string(self.topic) + struct.pack(">i", self.partition)

    def value(self) -> bytes:
        """Return MM2's value."""
        return struct.pack(">qq", self.upstream, self.downstream)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> OffsetSync:
        """Read MM2's bytes; raises ValueError when they are malformed."""
        where, what = _Reader(key), _Reader(value)
        sync = cls(
            topic=where.string(),
            partition=where.number("i"),
            upstream=what.number("q"),
            downstream=what.number("q"),
        )
        where.end()
        what.end()
        return sync


def position_key(flow: str, topic: str, partition: int) -> bytes:
    """Return the key of a source partition's position: a JSON array, since names may hold any separator."""
    return to_json([flow, topic, partition])


def parse_position_key(key: bytes) -> tuple[str, str, int]:
    """Return flow, topic and partition; raises ValueError when it is no such key."""
    match json.loads(key):
        case [str(flow), str(topic), int(partition)] if type(partition) is int:
            return flow, topic, partition
    raise ValueError(f"not a position's key: {key!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a source partition is replicated: `offset` is the next to be read.

    `tasks` is the flow's number of tasks when it was written (it names the transactional ids to be fenced), `topic_id`
    the source topic's and `target_id` the target topic's, to tell topics that were created anew. `leader_epoch` is that
    of the record before `offset`, to tell a log that was cut off.
    """

    offset: int
    tasks: int
    topic_id: str | None = None
    target_id: str | None = None
    leader_epoch: int | None = None

    def value(self) -> bytes:
        """Return the JSON object."""
        return to_json(asdict(self))

    @classmethod
    def decode(cls, value: bytes) -> Position:
        """Read the JSON object, ignoring fields of later versions; raises ValueError when it is malformed."""
        found = json.loads(value)
        match found:
            case {"offset": int(offset), "tasks": int(tasks), "topic_id": str() | None as topic_id}:
                target_id, epoch = found.get("target_id"), found.get("leader_epoch")
                known = isinstance(target_id, str | None) and type(epoch) in (int, type(None))
                if type(offset) is type(tasks) is int and offset >= 0 and known:
                    return cls(offset=offset, tasks=tasks, topic_id=topic_id, target_id=target_id, leader_epoch=epoch)
        raise ValueError(f"not a position: {value!r}")


def to_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8, the form of all keys and values of our own."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > 0x7FFF:
        raise ValueError(f"{len(data)} bytes do not fit a Kafka string: {text[:40]!r}…")
    return struct.pack(">h", len(data)) + data


def _versioned(value: bytes | None) -> _Reader:
    reader = _Reader(value)
    version = reader.number("h")
    if version != _VERSION:
        raise ValueError(f"version {version} is unknown, expected {_VERSION}")
    return reader


class _Reader:
    """Kafka's primitives, front to back."""

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise ValueError("a null key or value")
        self._data = data
        self._at = 0

    def number(self, kind: str) -> int:
        """Take an integer of struct's `kind`."""
        (number,) = struct.unpack(">" + kind, self._take(struct.calcsize(">" + kind)))
        return int(number)

    def string(self) -> str:
        """Take a length and as many bytes of UTF-8."""
        return self._take(self.number("h")).decode()

    def end(self) -> None:
        """Refuse bytes that are left over."""
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes left over in {self._data!r}")

    def _take(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise ValueError(f"{self._data!r} lacks bytes: {length} wanted at {self._at}")
        taken = self._data[self._at : end]
        self._at = end
        return taken
