"""Where the copy of every source offset lies, exactly: the history of one partition as runs.

source  |0 1 2 3 4 . . 7 8 9 . 11 12|      . holds no record to copy: compacted, a marker, dropped
target  |0 1 2 3 4 5 6 7 m 9 10     |      m a marker of the target's own transactions
         `---run---'`-run-'  `-run-'
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from app.core.runs import Run, StoredRun


@dataclass(frozen=True, slots=True)
class Exact:
    """A consumer that starts here gets what the group has not read, all of it, and first what it would read next."""

    offset: int


@dataclass(frozen=True, slots=True)
class BeforeIndex:
    """The offset lies before `first`, where what the index knows begins."""

    first: int


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is known of the partition."""


Translation = Exact | BeforeIndex | Empty


class _Kept(NamedTuple):
    """A run as far as the target still holds it, and whether the target had gone back before it (D)."""

    entry: StoredRun
    behind_truncation: bool


class _History(NamedTuple):
    """What counts, ascending on both sides, and the copies made again that do not count yet (E)."""

    settled: list[Run]
    again: list[Run]


class OffsetIndex:
    """Runs of one source partition on one target, the newest `size` of them.

    A. Runs are numbered in the order in which they were written; a run grows as long as it is the newest and the next
       copy continues it on both sides.
    B. Run n is kept in slot n % size, so that a ring of `size` entries holds the newest runs, and only those.
    C. Whatever is known is known without a hole: before a number that is missing, or whose successor says that it
       ended elsewhere (`StoredRun.after`), nothing counts.
    D. What was written past an offset of the target to which the target then came back is gone, it was truncated.
    E. When the source is read again from an earlier offset (a restart without the last positions), the new copies
       count from the moment they reach as far as any old ones did: until then a record may have only its old copy.
    F. Unless runs are stored in one transaction with the records (`atomic`), a gap on the target may hold copies made
       right before a crash. The copies behind it count once as many records were copied as the gap is long.
    G. The state is a function of the ring: an index rebuilt from what `take_changed` gave translates the same.

    Store what `take_changed` gives before the position that covers it, or in one transaction with it. A position
    without its run would make copied records look like a gap.
    """

    def __init__(self, size: int, stored: Iterable[StoredRun] = (), *, atomic: bool = False) -> None:
        """Start from what the ring holds, the last entry of each slot, in any order."""
        if size < 1:
            raise ValueError(f"an index of {size} runs holds nothing")
        self.size = size
        self.atomic = atomic
        self._entries = _without_holes(sorted(stored, key=attrgetter("number")), size)
        self._next = self._entries[-1].number + 1 if self._entries else 0
        self._changed: dict[int, StoredRun] = {}
        self._known: _History | None = None

    def observe(self, upstream: int, downstream: int, count: int) -> None:
        """Learn that `count` records from `upstream` on were copied to `downstream` and on, without a gap."""
        run = Run(upstream=upstream, downstream=downstream, count=count)
        last = self._entries[-1] if self._entries else None
        if last is None:
            self._append(StoredRun(number=self._next, run=run))
        elif (last.run.upstream_end, last.run.downstream_end) == (upstream, downstream):
            self._entries.pop()
            self._append(replace(last, run=replace(last.run, count=last.run.count + count)))
        else:
            self._append(last.next(run, unseen=0 if self.atomic else max(0, downstream - last.run.downstream_end)))

    def _append(self, entry: StoredRun) -> None:
        self._entries.append(entry)
        del self._entries[: -self.size]
        self._next = entry.number + 1
        self._changed.pop(entry.number - self.size, None)
        self._changed[entry.number] = entry
        self._known = None

    def begin(self, upstream: int, downstream: int) -> None:
        """Begin anew: nothing before counts, the next copy is that of `upstream` or later, at `downstream` or later.

        For a source topic created anew. Also before the first copy of all, unless `atomic`: a crash before its run is
        stored would go unnoticed otherwise (F).
        """
        begun = StoredRun(number=self._next, run=Run(upstream=upstream, downstream=downstream, count=0))
        self._entries.clear()
        self._changed.clear()
        self._append(begun)

    @property
    def newest(self) -> Run | None:
        """The run that copies were added to last."""
        return self._entries[-1].run if self._entries else None

    def take_changed(self) -> list[tuple[int, StoredRun]]:
        """Return what to write, slot and run, in this order; it counts as written from now on."""
        changed = [(number % self.size, entry) for number, entry in sorted(self._changed.items())]
        self._changed.clear()
        return changed

    def translate(self, offset: int) -> Translation:
        """Translate the offset of a group on the source, the next it would read, into one on the target."""
        return _translate(self.runs(), offset, attrgetter("upstream"), attrgetter("downstream"))

    def translate_back(self, offset: int) -> Translation:
        """Translate the offset of a group on the target into one on the source.

        While older records are copied again, some may not have been on the target before: `BeforeIndex` until they all
        are there.
        """
        settled, again = self._history()
        if settled and again and again[0].upstream < settled[-1].upstream:
            return BeforeIndex(again[-1].downstream_end)
        return _translate(settled, offset, attrgetter("downstream"), attrgetter("upstream"))

    def runs(self) -> list[Run]:
        """Return the runs that count, ascending on both sides."""
        return self._history().settled

    def superseded(self) -> list[Run]:
        """Return the runs that do not count any more, or not yet, in the order in which they were written."""
        settled = set(self.runs())
        return [entry.run for entry in self._entries if entry.run not in settled]

    def _history(self) -> _History:
        if self._known is None:
            self._known = _superseded(_not_truncated(self._entries))
        return self._known


def _translate(runs: list[Run], offset: int, here: Callable[[Run], int], there: Callable[[Run], int]) -> Translation:
    if not runs:
        return Empty()
    at = bisect_right(runs, offset, key=here) - 1
    if at < 0:
        # Nothing lies before offset 0 of the other side, so that nothing can be missed there.
        return Exact(0) if there(runs[0]) == 0 else BeforeIndex(here(runs[0]))
    # Behind a run, up to the next: its end. What lies between the two on the other side is nothing a consumer sees (a
    # marker, aborted data), or copies that a crash kept out of the index and that may be needed.
    run = runs[at]
    return Exact(there(run) + min(offset - here(run), run.count))


def _without_holes(entries: list[StoredRun], size: int) -> list[StoredRun]:
    """Return the newest entries, back to the first that its successor does not follow (C)."""
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        before = entries[at - 1] if at else None
        follows = before and before.number == entry.number - 1 and before.run.upstream_end == entry.after
        if not follows or len(entries) - at == size:
            return entries[at:]
    return entries


def _not_truncated(entries: list[StoredRun]) -> list[_Kept]:
    """Return what the target still holds: no run reaches past the start of a later one (D)."""
    kept: list[_Kept] = []
    start = entries[-1].run.downstream_end if entries else 0
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        run = entry.run.first(start - entry.run.downstream)
        if run.count > 0:
            back = at > 0 and entries[at - 1].run.downstream_end > entry.run.downstream
            kept.append(_Kept(entry if run is entry.run else replace(entry, run=run), back))
        start = min(start, entry.run.downstream)
    return kept[::-1]


def _superseded(kept: list[_Kept]) -> _History:
    """Tell the runs that count from those that copy again what older ones hold, or may hold (E, F)."""
    settled: list[Run] = []
    again: list[Run] = []
    reach = kept[0].entry.reach if kept else 0
    for entry, behind_truncation in kept:
        if behind_truncation and again and again[-1].upstream_end < entry.run.upstream:
            again.clear()  # the truncation took a part of them, of which the old copies may be the only ones
        _cut(again, entry.run.upstream)
        again.append(entry.run)
        if entry.run.upstream_end >= reach and not entry.still_unseen:
            _cut(settled, again[0].upstream)
            settled += again
            again.clear()
            reach = entry.run.upstream_end
    if again and not settled and not kept[-1].entry.still_unseen:
        # The old copies have left the index. Only a group that has read all of them can be told where to go on.
        settled.append(Run(upstream=reach, downstream=again[-1].downstream_end, count=0))
    return _History(settled, again)


def _cut(runs: list[Run], upstream: int) -> None:
    """Take away what the runs hold of `upstream` and beyond."""
    while runs and runs[-1].upstream >= upstream:
        runs.pop()
    if runs:
        runs[-1] = runs[-1].first(upstream - runs[-1].upstream)
