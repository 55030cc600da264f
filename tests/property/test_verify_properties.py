"""A correct pair of logs gives no finding, and any single tampering is found and named, in any pair of logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import verify_records
from app.core.provenance import Header, origin_header, returns_home
from app.core.runs import Run
from app.core.verify import KEPT, Comparison, Facts
from app.core.verify_records import Meeting, Record, Side

ORIGIN = origin_header("a")
HOME: Header = ("__krabka_origin", b"b")


@dataclass
class Logs:
    """A source, its copies, and the target offset of each source offset that has one."""

    source: list[Record]
    target: list[Record]
    places: dict[int, int]
    facts: Facts = field(default_factory=lambda: Facts(origin=ORIGIN, acknowledged=0))

    @property
    def copied(self) -> list[Record]:
        """The source's records that have copies."""
        return [record for record in self.source if record.offset in self.places]


def compare(logs: Logs, chunk: int = 7) -> Comparison:
    sides: dict[Side, list[Record]] = {"source": list(logs.source), "target": list(logs.target)}
    meeting = Meeting(ORIGIN, timestamps=True)
    rest = {side: list(records) for side, records in sides.items()}
    while not meeting.found and any(rest.values()) and all(sides.values()):
        for side, records in rest.items():
            part, records[:] = records[:chunk], records[chunk:]
            if part:
                meeting.feed(side, part)
    comparison = Comparison(replace(logs.facts, begins=meeting.begins))
    while (side := comparison.advance()) is not None:
        part, sides[side] = sides[side][:chunk], sides[side][chunk:]
        comparison.feed(side, part)
    return comparison


def found(comparison: Comparison) -> list[tuple[str, int | None, int | None]]:
    assert sum(comparison.tally.found.values()) == len(comparison.findings)
    return [(one.kind, one.source_offset, one.target_offset) for one in comparison.findings]


def runs_of(places: dict[int, int]) -> list[Run]:
    runs: list[Run] = []
    for up, down in sorted(places.items()):
        last = runs[-1] if runs else None
        if last is not None and (last.upstream_end, last.downstream_end) == (up, down):
            runs[-1] = Run(upstream=last.upstream, downstream=last.downstream, count=last.count + 1)
        else:
            runs.append(Run(upstream=up, downstream=down, count=1))
    return runs


@st.composite
def pairs(draw: st.DrawFn, *, distinct: bool = True, least: int = 1, index: bool | None = None) -> Logs:
    """Logs with gaps, records dropped by rule, and an index that knows all, the end of it, or nothing."""
    source: list[Record] = []
    target: list[Record] = []
    places: dict[int, int] = {}
    up = down = 0
    for number in range(draw(st.integers(least, 30))):
        up += draw(st.sampled_from((0, 0, 0, 1, 3)))
        down += draw(st.sampled_from((0, 0, 0, 1, 2)))
        key = draw(st.sampled_from((None, b"", b"k", b"l")))
        value = b"%d" % number if distinct else draw(st.sampled_from((None, b"", b"v")))
        headers = draw(st.sampled_from(((), (("h", b"1"),), (("h", None), ("h", b"1")), (ORIGIN,), (HOME,))))
        record = Record(up, key, value, 1000 + number // 3, headers)
        source.append(record)
        if HOME not in headers:
            target.append(record._replace(offset=down, headers=(*headers, ORIGIN)))
            places[up] = down
            down += 1
        up += 1
    runs = runs_of(places)
    known = draw(st.integers(0, len(runs))) if index is None else len(runs) * index
    facts = Facts(
        origin=ORIGIN,
        acknowledged=up,
        runs=runs[len(runs) - known :],
        drops=lambda headers: returns_home([h for h in headers if h == HOME], "a", "b"),
    )
    return Logs(source, target, places, facts)


@given(pairs(distinct=False), st.integers(1, 40))
def test_a_correct_pair_gives_no_finding(logs: Logs, chunk: int) -> None:
    comparison = compare(logs, chunk)
    assert found(comparison) == []
    assert comparison.tally.equal == len(logs.target)
    assert comparison.tally.dropped == len(logs.source) - len(logs.target)


@given(pairs(), st.data())
def test_what_is_not_acknowledged_is_pending_and_what_is_there_of_it_equal(logs: Logs, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, len(logs.target)))
    end = logs.copied[kept].offset if kept < len(logs.target) else logs.facts.acknowledged
    logs.facts = replace(logs.facts, acknowledged=data.draw(st.integers(0, end)))
    del logs.target[kept:]
    comparison = compare(logs)
    assert found(comparison) == []
    assert (comparison.tally.equal, comparison.tally.pending) == (kept, len(logs.places) - kept)


def drawn(data: st.DataObject, records: Sequence[Record], least: int = 0) -> int:
    return data.draw(st.integers(least, len(records) - 1))


@pytest.mark.parametrize("shifted", [False, True], ids=["a hole is left", "what follows moves up"])
@given(logs=pairs(least=3), data=st.data())
def test_a_missing_record_is_named(shifted: bool, logs: Logs, data: st.DataObject) -> None:
    if not logs.target:
        return
    at = drawn(data, logs.target)
    offset = logs.copied[at].offset
    del logs.target[at]
    if shifted:
        logs.target[at:] = [record._replace(offset=record.offset - 1) for record in logs.target[at:]]
        logs.facts = replace(logs.facts, runs=())
    assert found(compare(logs)) == [("missing", offset, None)]


@given(pairs(), st.data())
def test_a_doubled_record_is_named_with_both_offsets(logs: Logs, data: st.DataObject) -> None:
    if not logs.target:
        return
    what, where = drawn(data, logs.target), data.draw(st.integers(0, len(logs.target)))
    place = logs.target[where - 1].offset + 1 if where else logs.target[0].offset
    moved = [record._replace(offset=record.offset + 1) for record in logs.target[where:]]
    logs.target = [*logs.target[:where], logs.target[what]._replace(offset=place), *moved]
    logs.facts = replace(logs.facts, runs=())
    ((kind, source, target),) = found(compare(logs))
    assert (kind, source) == ("doubled", logs.copied[what].offset)
    assert target in (place, moved[what - where].offset if what >= where else logs.target[what].offset)


@given(pairs(least=3), st.data())
def test_a_record_that_moved_is_out_of_order(logs: Logs, data: st.DataObject) -> None:
    if len(logs.target) < 2:
        return
    offsets = [record.offset for record in logs.target]
    what = drawn(data, logs.target)
    where = data.draw(st.integers(0, len(offsets) - 1).filter(lambda n: n != what))
    moved = list(logs.target)
    moved.insert(where, moved.pop(what))
    logs.target = [record._replace(offset=offset) for record, offset in zip(moved, offsets, strict=True)]
    logs.facts = replace(logs.facts, runs=())
    kinds = found(compare(logs))
    assert {kind for kind, _, _ in kinds} == {"out of order"}
    between = {logs.copied[n].offset for n in range(min(what, where), max(what, where) + 1)}
    assert {source for _, source, _ in kinds} <= between


CHANGES = {
    "key": lambda record: record._replace(key=(record.key or b"") + b"x"),
    "value": lambda record: record._replace(value=b"x" + (record.value or b"")),
    "timestamp": lambda record: record._replace(timestamp=record.timestamp + 7),
    "headers": lambda record: record._replace(headers=(("new", b""), *record.headers)),
}


@pytest.mark.parametrize("name", [*CHANGES, "stamp"])
@given(logs=pairs(), data=st.data())
def test_a_changed_record_is_named_with_its_field(name: str, logs: Logs, data: st.DataObject) -> None:
    if not logs.target:
        return
    at = drawn(data, logs.target)
    change = CHANGES.get(name, lambda record: record._replace(headers=record.headers[:-1]))
    original, record = logs.copied[at], logs.target[at]
    logs.target[at] = change(record)
    if name == "stamp" and original.headers[-1:] == (ORIGIN,):
        return  # what is left is a stamped record without its first header
    comparison = compare(logs)
    assert found(comparison) == [("different", original.offset, record.offset)]
    assert comparison.findings[0].what.startswith("headers" if name == "stamp" else name)


@given(pairs(), st.data(), st.booleans())
def test_a_foreign_record_is_named(logs: Logs, data: st.DataObject, stamped: bool) -> None:
    at = data.draw(st.integers(0, len(logs.target)))
    place = logs.target[at - 1].offset + 1 if at else 0
    moved = [record._replace(offset=record.offset + 1) for record in logs.target[at:]]
    alien = Record(place, b"alien", b"alien", data.draw(st.integers(0, 2000)), (ORIGIN,) if stamped else ())
    logs.target = [*logs.target[:at], alien, *moved]
    logs.facts = replace(logs.facts, runs=())
    assert found(compare(logs)) == [("foreign", None, place)]


@given(pairs(distinct=False, index=True, least=2), st.data())
def test_of_equal_records_the_index_tells_which_is_missing(logs: Logs, data: st.DataObject) -> None:
    if not logs.target:
        return
    at = drawn(data, logs.target)
    del logs.target[at]
    assert found(compare(logs, 100)) == [("missing", logs.copied[at].offset, None)]


@given(pairs(least=4), st.data())
def test_a_wrong_run_of_the_index_is_named(logs: Logs, data: st.DataObject) -> None:
    runs = runs_of(logs.places)
    if not runs:
        return
    at = data.draw(st.integers(0, len(runs) - 1))
    runs[at] = replace(runs[at], upstream=runs[at].upstream + 100)
    logs.facts = replace(logs.facts, runs=runs)
    assert set(compare(logs).tally.found) == {"index"}


@given(pairs(), st.data())
def test_what_the_source_lost_since_is_no_finding(logs: Logs, data: st.DataObject) -> None:
    """Retention; compaction where the index knows or the topic says so."""
    gone = data.draw(st.integers(0, len(logs.source)))
    lost = [record for record in logs.source[:gone] if record.offset in logs.places]
    logs.source = logs.source[gone:]
    start = logs.source[0].offset if logs.source else logs.facts.acknowledged
    logs.facts = replace(logs.facts, source_start=start, source_compacted=True)
    comparison = compare(logs, 5)
    assert found(comparison) == []
    assert comparison.tally.gone_from_source == len(lost)


@given(pairs(), st.data(), st.booleans())
def test_what_the_target_lost_to_retention_is_told_from_what_was_deleted(
    logs: Logs, data: st.DataObject, deleted: bool
) -> None:
    gone = data.draw(st.integers(0, len(logs.target)))
    del logs.target[:gone]
    start = logs.target[0].offset if logs.target else 1000
    logs.facts = replace(logs.facts, target_start=start or 1, retained_since=0 if deleted else None)
    comparison = compare(logs, 5)
    assert comparison.tally.gone_from_target == (0 if deleted else gone)
    assert dict(comparison.tally.found) == ({"missing": gone} if deleted and gone else {})
    offsets = [record.offset for record in logs.copied[:gone]] if deleted else []
    assert [one.source_offset for one in comparison.findings] == offsets[:KEPT]


@given(pairs(), st.data())
def test_compaction_on_the_target_keeps_the_last_of_each_key(logs: Logs, data: st.DataObject) -> None:
    last = {record.key: record.offset for record in logs.target}
    removed = [r for r in logs.target if r.key is not None and r.offset != last[r.key] and data.draw(st.booleans())]
    logs.target = [record for record in logs.target if record not in removed]
    logs.facts = replace(logs.facts, target_compacted=True)
    comparison = compare(logs, 50)
    assert found(comparison) == []
    assert comparison.tally.replaced == len(removed)
    if keyed := [record for record in logs.target if record.key == b"k"]:
        logs.target.remove(keyed[-1])
        earlier = len(keyed) > 1
        ((kind, *_),) = found(compare(logs, 50))
        assert kind == "missing"
        assert earlier or keyed


@given(pairs(distinct=False, least=5), st.data())
def test_any_tampering_with_records_that_repeat_is_found(logs: Logs, data: st.DataObject) -> None:
    if not logs.target:
        return
    at = drawn(data, logs.target)
    if data.draw(st.booleans()):
        del logs.target[at]
    else:
        logs.target.insert(at, logs.target[drawn(data, logs.target)])
    logs.facts = replace(logs.facts, runs=())
    assert found(compare(logs))


def test_long_stretches_are_told_from_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than the window in which counterparts are looked for."""
    monkeypatch.setattr(verify_records, "AHEAD", 20)
    source = [Record(n, b"k%d" % n, b"%d" % n, 1000 + n, ()) for n in range(300)]
    copies = [record._replace(headers=(ORIGIN,)) for record in source]
    facts = Facts(origin=ORIGIN, acknowledged=300)
    lost = compare(Logs(source, copies[:100] + copies[200:], {}, facts))
    assert (lost.tally.equal, dict(lost.tally.found)) == (200, {"missing": 100})
    twice = compare(Logs(source, [*copies[:150], *copies[50:]], {}, facts))
    assert (twice.tally.equal, dict(twice.tally.found)) == (300, {"doubled": 100})
