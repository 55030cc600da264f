"""Whether one partition's copies are its source's records: each once, in order and equal. Two streams in, findings out.

Records are paired by what they hold, not by what the offset index says, since the index does not reach back to the
beginning and may be wrong itself. It decides where contents leave a doubt, and is checked on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.core.provenance import Header
from app.core.runs import Run
from app.core.verify_records import Item, Origins, Recent, Record, Side, Window, as_item

Kind = Literal["missing", "doubled", "out of order", "different", "foreign", "index"]

#: Findings of a kind that are kept of a partition; the others are only counted.
KEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference; offsets are None where there is none on that side. `what` says what was seen."""

    kind: Kind
    source_offset: int | None
    target_offset: int | None
    what: str


@dataclass(slots=True)
class Tally:
    """Records of a partition by what became of them."""

    equal: int = 0
    pending: int = 0  # behind the acknowledged position, or not read there yet
    dropped: int = 0  # came from the target, and do not return
    dead_letters: int = 0
    replaced: int = 0  # compaction on the target
    gone_from_source: int = 0
    gone_from_target: int = 0
    before_start: int = 0
    found: Counter[Kind] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a partition before it is read.

    `acknowledged`: every record of the source before this offset is on the target. `runs` are the offset index's,
    `superseded` those that no longer count. `begins` are the offsets at which the streams meet, what lies before is on
    one side only. Timestamps from `retained_since` on (ms; None: any may go) are of records that the target's retention
    keeps. `dead_letters` maps source offsets to digests (`verify_records.digest`).
    """

    origin: Header
    acknowledged: int
    runs: Sequence[Run] = ()
    superseded: Sequence[Run] = ()
    begins: Mapping[Side, int] = field(default_factory=dict)
    drops: Callable[[Sequence[Header]], bool] | None = None
    dead_letters: Mapping[int, int] = field(default_factory=dict)
    source_start: int = 0
    target_start: int = 0
    retained_since: int | None = None
    timestamps: bool = True
    source_compacted: bool = False
    target_compacted: bool = False
    starts_later: bool = False
    tail_from: int | None = None


class Comparison:
    """Compares one partition. Feed what `advance` asks for until it asks for nothing.

    Memory is bounded: a window of records of each side, digests of the last pairs to know repetitions, and on compacted
    topics a number per key whose record has no copy and no successor yet.
    """

    def __init__(self, facts: Facts) -> None:
        self.tally = Tally()
        self.findings: list[Finding] = []
        self._facts = facts
        self._windows: dict[Side, Window] = {"source": Window(), "target": Window()}
        self._source, self._target = self._windows["source"], self._windows["target"]
        self._origins = Origins(facts.runs)
        self._superseded = Origins(sorted(facts.superseded, key=lambda run: run.downstream))
        self._recent = Recent()
        self._late: dict[int, list[Item]] = {}
        self._replaceable: dict[int, Item] = {}
        self._passed = -1
        self._begun = False

    def feed(self, side: Side, records: Iterable[Record]) -> None:
        """Take the next records of a side; none means that it ended."""
        window, facts = self._windows[side], self._facts
        fed = 0
        for record in records:
            fed += 1
            if side == "source" and facts.drops is not None and facts.drops(record.headers):
                self.tally.dropped += 1
                continue
            window.add(as_item(record, facts.origin if side == "target" else None, timestamps=facts.timestamps))
        window.ended = window.ended or not fed

    def advance(self) -> Side | None:
        """Compare as far as possible; return the side of which more is needed, None when all is compared."""
        source, target = self._source, self._target
        while True:
            if (lacking := self._lacking(whole=False)) is not None:
                return lacking
            s, t = source.head, target.head
            if s is None and t is None:
                self._finish()
                return None
            if s is not None and t is not None and s.digest == t.digest and t.stamped:
                self._pair(s, t)
            elif (lacking := self._lacking(whole=True)) is not None:
                return lacking
            else:
                self._settle(s, t)

    def _lacking(self, *, whole: bool) -> Side | None:
        for side, window in self._windows.items():
            if not (window.full if whole else window.items or window.ended):
                return side
        return None

    def _pair(self, s: Item, t: Item) -> None:
        at = self._origins.of(t.offset)
        if at is not None and at != s.offset:
            if self._source.holds(s.digest, at):
                self._uncopied(s)  # one of several equal records: the index tells which
                return
            what = f"the offset index takes target offset {t.offset} for the copy of source offset {at}"
            self._find("index", s.offset, t.offset, what)
        self._begun = True
        self._source.take()
        self._target.take()
        self._arrived(s)
        self.tally.equal += 1

    def _arrived(self, s: Item) -> None:
        """Note that the target has the record."""
        self._passed = max(self._passed, s.offset)
        self._recent.add(s.digest, s.offset)
        self._succeed(s)

    def _succeed(self, s: Item) -> None:
        if self._replaceable and self._replaceable.pop(hash(s.record.key), None) is not None:
            self.tally.replaced += 1

    def _settle(self, s: Item | None, t: Item | None) -> None:
        """Decide what becomes of two heads that are not a record and its copy."""
        begins = self._facts.begins
        if s is not None and (t is None or s.offset < begins.get("source", 0)):
            self._uncopied(s)
        elif t is not None and s is not None and not t.stamped and s.digest == t.digest:
            self._different(s, t)
        elif t is not None and s is not None and t.offset >= begins.get("target", 0) and not self._strange(t):
            self._mismatch(s, t)
        elif t is not None:
            self._unasked(t)

    def _strange(self, t: Item) -> bool:
        return not t.stamped and self._origins.of(t.offset) is None

    def _mismatch(self, s: Item, t: Item) -> None:
        original_ahead, copy_ahead = t.digest in self._source, s.digest in self._target
        if original_ahead and copy_ahead:
            self._swapped(s, t)
        elif original_ahead:
            self._uncopied(s)
        elif copy_ahead or t.digest in self._late or t.digest in self._recent:
            self._unasked(t)
        else:
            self._strangers(s, t)

    def _swapped(self, s: Item, t: Item) -> None:
        original, copy = self._source.find(t.digest), self._target.find(s.digest)
        if self._target.count(t.digest) > self._source.count(t.digest):
            self._target.take()
            self._double(self._source.items[original].offset, t)
        elif original <= copy:
            self._source.take()
            self._late.setdefault(s.digest, []).append(s)
        else:
            self._target.take()
            early = self._source.remove(original)
            self._arrived(early)
            self._find("out of order", early.offset, t.offset, "the copy lies before copies of earlier records")

    def _strangers(self, s: Item, t: Item) -> None:
        """Neither has a counterpart in sight: a record and its altered copy, or one that lacks its copy or original."""
        at = self._origins.of(t.offset)
        if at is not None and at != s.offset:
            later = at > s.offset
        elif at is not None or self._alike(s, t):
            self._different(s, t)
            return
        else:
            later = t.record.timestamp >= s.record.timestamp
        if later:
            self._uncopied(s)
        else:
            self._unasked(t)

    def _alike(self, s: Item, t: Item) -> bool:
        same = sum(a == b for a, b in zip(s.record[1:4], t.record[1:4], strict=True))
        if same >= 2 or self._facts.source_compacted or self._facts.target_compacted:
            return same >= 2
        return self._source.second == self._target.second

    def _different(self, s: Item, t: Item) -> None:
        self._source.take()
        self._target.take()
        self._begun = True
        self._arrived(s)
        fields = s.differences(t, timestamps=self._facts.timestamps)
        self._find("different", s.offset, t.offset, f"{', '.join(fields)} of the copy")

    def _uncopied(self, s: Item) -> None:
        """Take a record of the source that has no copy."""
        self._source.take()
        self._passed = max(self._passed, s.offset)
        self._explain(s)

    def _explain(self, s: Item) -> None:
        facts, tally = self._facts, self.tally
        if s.offset >= facts.acknowledged:
            tally.pending += 1
            self._succeed(s)
        elif s.offset in facts.dead_letters:
            if facts.dead_letters[s.offset] == s.digest:
                tally.dead_letters += 1
            else:
                self._find("different", s.offset, None, "the record in the dead-letter topic")
        elif not self._begun and facts.target_start > 0:
            self._below_log_start(s)
        elif not self._begun and facts.starts_later:
            tally.before_start += 1
        elif facts.target_compacted and s.record.key is not None:
            if self._replaceable.pop(hash(s.record.key), None) is not None:
                tally.replaced += 1
            self._replaceable[hash(s.record.key)] = s
        else:
            self._find("missing", s.offset, None, "the record has no copy")

    def _below_log_start(self, s: Item) -> None:
        since = self._facts.retained_since
        if since is None or s.record.timestamp < since:
            self.tally.gone_from_target += 1
        else:
            what = (
                f"deleted: the target's log starts at offset {self._facts.target_start}, retention would have kept it"
            )
            self._find("missing", s.offset, None, what)

    def _unasked(self, t: Item) -> None:
        """Take a record of the target that is no copy of what comes next."""
        self._target.take()
        if self._facts.tail_from is not None and not self._begun:
            return
        if t.digest in self._late and t.stamped:
            s = self._late[t.digest].pop()
            if not self._late[t.digest]:
                del self._late[t.digest]
            self._arrived(s)
            self._find("out of order", s.offset, t.offset, "the copy lies behind copies of later records")
        elif t.stamped and (offset := self._recent.get(t.digest)) is not None:
            self._double(offset, t)
        elif self._gone(t):
            self.tally.gone_from_source += 1
        else:
            stamp = "is like no record of the source" if t.stamped else "lacks the flow's origin header"
            self._find("foreign", None, t.offset, f"the record {stamp}")

    def _gone(self, t: Item) -> bool:
        """Tell whether the source had the record and has it no longer."""
        facts = self._facts
        if t.stamped and (facts.source_compacted or t.offset < facts.begins.get("target", 0)):
            return True
        at = self._origins.of(t.offset)
        if at is None:
            before = facts.tail_from is not None and t.record.timestamp <= facts.tail_from
            return t.stamped and (before or self._superseded.of(t.offset) is not None)
        head = self._source.head
        return at < facts.source_start or (self._passed < at and (head is None or at < head.offset))

    def _double(self, source_offset: int, t: Item) -> None:
        self._find("doubled", source_offset, t.offset, "one more copy of the record")

    def _finish(self) -> None:
        for items in self._late.values():
            for item in items:
                self._explain(item)
        self._late.clear()
        for item in self._replaceable.values():
            if item.record.value is None:
                self.tally.replaced += 1  # compaction removes tombstones in the end
            else:
                self._find("missing", item.offset, None, "the last record of its key has no copy")
        self._replaceable.clear()

    def _find(self, kind: Kind, source_offset: int | None, target_offset: int | None, what: str) -> None:
        self.tally.found[kind] += 1
        if self.tally.found[kind] <= KEPT:
            finding = Finding(kind=kind, source_offset=source_offset, target_offset=target_offset, what=what)
            self.findings.append(finding)
