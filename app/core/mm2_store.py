"""MM2's own way of offset translation (Kafka 4.3.1): which offset syncs are written, and what they translate to.

Both sides of one arithmetic: `SyncEmitter` writes sparse syncs for MM2's clients, `OffsetSyncStore` reads what we or an
earlier MM2 wrote, where the exact index does not reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

#: Syncs held per partition, one per bit of an offset.
SLOTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """A record's offset on the source and on the target."""

    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class Translated:
    """MM2's answer: never past what the group has not read, at most one past the sync it leans on."""

    offset: int
    sync: Sync


@dataclass(frozen=True, slots=True)
class Behind:
    """Every sync held lies behind the offset, the oldest at `first`: MM2 writes no checkpoint (its -1)."""

    first: int


@dataclass(frozen=True, slots=True)
class NoSync:
    """No sync is held, or not all have been read yet."""


class SyncEmitter:
    """Decides for one source partition which copies are worth a sync; made anew when its task starts.

    A copy is due when it is the first, when `offset_lag_max` copies were not, behind a gap on the source, and when the
    target went back.
    """

    def __init__(self, offset_lag_max: int) -> None:
        self.offset_lag_max = offset_lag_max
        self._last: Sync | None = None
        self._emitted = -1
        self._delayed: Sync | None = None

    def observe(self, upstream: int, downstream: int, count: int = 1) -> list[Sync]:
        """Return the syncs due among `count` copies without a gap, in order."""
        due = [
            Sync(upstream=upstream + at, downstream=downstream + at) for at in self._due(upstream, downstream, count)
        ]
        self._last = Sync(upstream=upstream + count - 1, downstream=downstream + count - 1)
        self._delayed = None if due and due[-1] == self._last else self._last
        if due:
            self._emitted = due[-1].downstream
        return due

    def _due(self, upstream: int, downstream: int, count: int) -> range:
        step = self.offset_lag_max + 1
        last = self._last
        if last is None or upstream - last.upstream != 1 or downstream < last.downstream:
            return range(0, count, step)
        return range(max(0, self._emitted + step - downstream), count, step)

    def commit(self) -> Sync | None:
        """Return the newest copy that was not due, so that a quiet partition converges too; call at each commit."""
        delayed, self._delayed = self._delayed, None
        return delayed


class OffsetSyncStore:
    """The syncs of one source partition, denser the newer: in slot i one of about the last 2^i offsets.

    A. Slot 0 holds the newest sync.
    B. Where slots i < j, neighbours, hold different syncs: upstream[i] <= upstream[j] + 2^j - 2^i. Not too old.
    C. There also: upstream[i] >= upstream[j] + 2^max(i - 2, 0). Not too close.
    D. Slot 63 holds the oldest sync that may be used.

        source |-s?????r???g-|      s a sync, g the group's offset, ? may be copied or not
        target |-sT----r-----|      so that only T, one past s, is safe; r is read again
    """

    def __init__(self, *, must_read_to_end: bool = True) -> None:
        """Begin to load; `must_read_to_end` when no earlier checkpoints could be read.

        Then only the last of the syncs loaded may be used: with older ones a checkpoint could move backwards.
        """
        self._only_last = must_read_to_end
        self._loaded = False
        self._slots: list[Sync] = []

    def loaded(self) -> None:
        """Translate from now on: all syncs that were there at the start are in."""
        self._loaded = True

    def observe(self, upstream: int, downstream: int) -> None:
        """Take the next sync of the offset-syncs topic."""
        sync = Sync(upstream=upstream, downstream=downstream)
        loading_last = self._only_last and not self._loaded
        if not self._slots or loading_last or upstream < self._slots[0].upstream:
            self._slots = [sync] * SLOTS
        else:
            self._slots = _updated(self._slots, sync)

    def translate(self, offset: int) -> Translated | Behind | NoSync:
        """Translate a group's offset on the source."""
        if not self._loaded or not self._slots:
            return NoSync()
        for sync in self._slots:
            if sync.upstream <= offset:
                return Translated(sync.downstream + (sync.upstream < offset), sync)
        return Behind(self._slots[-1].upstream)

    def held(self) -> Iterator[tuple[int, Sync]]:
        """Yield each sync held with the first slot it is in, the newest first."""
        for sync, slots in groupby(enumerate(self._slots), key=lambda slot: slot[1]):
            yield next(slots)[0], sync


def _updated(old: list[Sync], sync: Sync) -> list[Sync]:
    """Return the slots with a newer sync in slot 0.

    Where B no longer holds for a slot, it gets the next of the old syncs, newest first, that satisfies B and C with its
    neighbours, or what the slot below got. Once B holds again it holds for all slots above.
    """
    slots = [sync, *old[1:]]
    replacement, candidate = sync, 0
    for at in range(1, SLOTS):
        below = slots[at - 1]
        while candidate < at and not _far(below, old[candidate], at - 1):
            candidate += 1  # too close here, hence too close to all slots above
        if candidate < at and _recent(below, old[candidate], at) and _far_from_next(old[candidate], slots, at):
            replacement = old[candidate]
            candidate = _behind_duplicates(old, candidate, at)
        if _recent(below, slots[at], at):
            break
        slots[at] = replacement
    return slots


def _behind_duplicates(old: list[Sync], candidate: int, limit: int) -> int:
    while candidate + 1 < limit and old[candidate + 1] is old[candidate]:
        candidate += 1
    return candidate + 1


def _recent(below: Sync, sync: Sync, at: int) -> bool:
    """Invariant B for the slots `at` - 1 and `at`."""
    return below is sync or below.upstream <= sync.upstream + (1 << at) - (1 << at - 1)


def _far(below: Sync, sync: Sync, at: int) -> bool:
    """Invariant C for the slots `at` and `at` + 1."""
    return below is sync or below.upstream >= sync.upstream + (1 << max(at - 2, 0))


def _far_from_next(sync: Sync, slots: list[Sync], at: int) -> bool:
    return at + 1 == SLOTS or _far(sync, slots[at + 1], at)
