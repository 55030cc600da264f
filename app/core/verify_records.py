"""What a comparison of two logs holds of them: windows of records, digests, and what the offset index says of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from app.core.provenance import Header
from app.core.runs import Run

Side = Literal["source", "target"]

#: Records, and bytes of them, in which the counterpart of a record is looked for.
AHEAD = 10_000
AHEAD_BYTES = 32 * 1024 * 1024

#: Pairs that are remembered at least, to know a repetition.
REMEMBERED = 200_000


class Record(NamedTuple):
    """A record as it was read; `timestamp` in milliseconds."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[Header, ...]


class Item(NamedTuple):
    """A record in a comparison, on the target without its origin header. `stamped` tells whether that was there."""

    offset: int
    digest: int
    record: Record
    stamped: bool

    def differences(self, copy: Item, *, timestamps: bool) -> list[str]:
        """Name what differs in the copy."""
        here, there = self.record, copy.record
        fields = [name for name in ("key", "value", "timestamp") if getattr(here, name) != getattr(there, name)]
        if here.headers != there.headers or not copy.stamped:
            fields.append("headers")
        return [name for name in fields if timestamps or name != "timestamp"]


def digest(record: Record, headers: tuple[Header, ...], *, timestamps: bool = True) -> int:
    """Return what tells records apart within this process; `headers` stand for the record's own."""
    return hash((record.key, record.value, record.timestamp if timestamps else None, headers))


def as_item(record: Record, origin: Header | None, *, timestamps: bool) -> Item:
    """Return a record of the source, or with the flow's `origin` one of the target."""
    stamped = origin is not None and record.headers[-1:] == (origin,)
    if stamped:
        record = record._replace(headers=record.headers[:-1])
    return Item(record.offset, digest(record, record.headers, timestamps=timestamps), record, stamped)


class Window:
    """The next records of one side."""

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self.ended = False
        self._counts: Counter[int] = Counter()
        self._size = 0

    def __contains__(self, digest: int) -> bool:
        return digest in self._counts

    @property
    def head(self) -> Item | None:
        """The next record, None when there is none here."""
        return self.items[0] if self.items else None

    @property
    def second(self) -> int | None:
        """The digest of the record after the next."""
        return self.items[1].digest if len(self.items) > 1 else None

    @property
    def full(self) -> bool:
        """Whether it reaches as far as it ever does."""
        return self.ended or len(self.items) >= AHEAD or self._size >= AHEAD_BYTES

    def count(self, digest: int) -> int:
        """Return how many records have the digest."""
        return self._counts[digest]

    def add(self, item: Item) -> None:
        """Take a record behind the others."""
        self.items.append(item)
        self._counts[item.digest] += 1
        self._size += _size(item)

    def take(self) -> Item:
        """Remove the next record."""
        return self._forget(self.items.popleft())

    def find(self, digest: int) -> int:
        """Return the place of the first record with the digest, which is there."""
        return next(at for at, item in enumerate(self.items) if item.digest == digest)

    def holds(self, digest: int, offset: int) -> bool:
        """Tell whether the record at an offset is behind the next one, and has the digest."""
        return self._counts[digest] > 1 and any(i.offset == offset and i.digest == digest for i in self.items)

    def remove(self, at: int) -> Item:
        """Remove the record at a place."""
        item = self.items[at]
        del self.items[at]
        return self._forget(item)

    def _forget(self, item: Item) -> Item:
        left = self._counts[item.digest] - 1
        if left:
            self._counts[item.digest] = left
        else:
            del self._counts[item.digest]
        self._size -= _size(item)
        return item


def _size(item: Item) -> int:
    return len(item.record.key or b"") + len(item.record.value or b"")


class Origins:
    """What the offset index says of target offsets, asked for in ascending order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._at = 0

    def of(self, offset: int) -> int | None:
        """Return the source offset whose copy lies there, None when that is not known."""
        runs = self._runs
        while self._at < len(runs) and runs[self._at].downstream_end <= offset:
            self._at += 1
        run = runs[self._at] if self._at < len(runs) else None
        return run.upstream + offset - run.downstream if run and run.downstream <= offset else None


class Recent:
    """The source offsets of the last pairs by digest: between `REMEMBERED` and twice as many."""

    def __init__(self) -> None:
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def __contains__(self, digest: int) -> bool:
        return digest in self._young or digest in self._old

    def add(self, digest: int, offset: int) -> None:
        """Remember a pair."""
        self._young[digest] = offset
        if len(self._young) >= REMEMBERED:
            self._old, self._young = self._young, {}

    def get(self, digest: int) -> int | None:
        """Return the source offset."""
        found = self._young.get(digest)
        return self._old.get(digest) if found is None else found


class Meeting:
    """Finds where two streams begin to hold the same records, when one of them lost its beginning.

    Feed both sides in turn, until `found` or both ended. Only the digests of what came first on each side are kept.
    """

    def __init__(self, origin: Header, *, timestamps: bool) -> None:
        self.begins: Mapping[Side, int] = {}
        self.found = False
        self._origin = origin
        self._timestamps = timestamps
        self._first: dict[Side, frozenset[int]] = {}

    def begun(self, side: Side) -> bool:
        """Tell whether a side was fed."""
        return side in self._first

    def feed(self, side: Side, records: Iterable[Record]) -> None:
        """Take the next records of a side, at least one."""
        origin = self._origin if side == "target" else None
        items = [as_item(record, origin, timestamps=self._timestamps) for record in records]
        other = self._first.get("target" if side == "source" else "source", frozenset())
        met = next((item for item in items if item.digest in other), None)
        if met is not None:
            self.found = True
            self.begins = {side: met.offset} if side in self._first else {}
        self._first.setdefault(side, frozenset(item.digest for item in items))
