"""Where a group goes on: exact, within a bound, or not at all and why."""

from __future__ import annotations

from app.core.flow_rules import FlowRules
from app.core.formats import OffsetSync
from app.core.naming import Naming
from app.core.records import TopicPartition
from app.core.runs import Run, StoredRun, run_key
from app.core.selection import Selector
from app.runtime.translator import Translated, Translator, Untranslated, clamped
from tables.offset_runs import OffsetRuns, OffsetSyncs

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("a.t", 0)


def runs(flow: str, *found: tuple[int, int, int]) -> OffsetRuns:
    table = OffsetRuns()
    after = None
    for number, (upstream, downstream, count) in enumerate(found):
        run = Run(upstream=upstream, downstream=downstream, count=count)
        stored = StoredRun(number=number, run=run, after=after, reach=after or 0)
        table.learn(run_key(flow, "t", 0, number), stored.value())
        after = run.upstream_end
    return table


def syncs(*found: tuple[int, int]) -> OffsetSyncs:
    table = OffsetSyncs()
    for upstream, downstream in found:
        sync = OffsetSync(topic="t", partition=0, upstream=upstream, downstream=downstream)
        table.learn(sync.key(), sync.value())
    return table


def translator(
    ours: OffsetRuns | None = None, mm2: OffsetSyncs | None = None, home: OffsetRuns | None = None
) -> Translator:
    naming = Naming(source="a", target="b", aliases=frozenset("ab"))
    rules = FlowRules(naming=naming, selector=Selector(include=("t",)))
    return Translator(rules, runs=ours or OffsetRuns(), syncs=mm2 or OffsetSyncs(), home_runs=home or OffsetRuns())


def test_exact_inside_the_index() -> None:
    known = translator(runs("a__b", (0, 10, 100), (105, 111, 50)))
    assert known.translate(SOURCE, 50) == Translated(target=TARGET, offset=60)
    assert known.translate(SOURCE, 102) == Translated(target=TARGET, offset=110)
    assert known.translate(SOURCE, 106) == Translated(target=TARGET, offset=112)


def test_behind_the_last_copy_the_position_tells_whether_records_are_to_come() -> None:
    known = translator(runs("a__b", (0, 0, 100)))
    assert known.translate(SOURCE, 130) == Translated(target=TARGET, offset=100, repeats=30)
    assert known.translate(SOURCE, 130, position=110) == Translated(target=TARGET, offset=100, repeats=20)
    assert known.translate(SOURCE, 101, position=101) == Translated(target=TARGET, offset=100)


def test_what_an_earlier_mm2_left_serves_where_the_index_does_not_reach() -> None:
    known = translator(runs("a__b", (500, 500, 100)), syncs((100, 90), (200, 190)))
    assert known.translate(SOURCE, 550) == Translated(target=TARGET, offset=550)
    assert known.translate(SOURCE, 200) == Translated(target=TARGET, offset=190)
    assert known.translate(SOURCE, 240) == Translated(target=TARGET, offset=191, repeats=39)
    assert isinstance(known.translate(SOURCE, 50), Untranslated)
    assert translator(mm2=syncs((100, 90))).translate(SOURCE, 100) == Translated(target=TARGET, offset=90)


def test_nothing_is_guessed() -> None:
    known = translator()
    assert known.translate(SOURCE, 5) == Untranslated(why="no record of the partition was copied yet", target=TARGET)
    assert known.translate(SOURCE, 0) == Translated(target=TARGET, offset=0)
    other = known.translate(TopicPartition("u", 0), 5)
    assert other == Untranslated(why="no include entry matches it")


def test_a_copy_from_the_target_leads_back_to_the_original() -> None:
    known = translator(home=runs("b__a", (0, 0, 10), (12, 10, 10)))
    copied = TopicPartition("b.t", 0)
    assert known.translate(copied, 15) == Translated(target=SOURCE, offset=17)
    assert isinstance(translator().translate(copied, 15), Untranslated)


def test_an_answer_is_kept_within_what_the_target_has() -> None:
    answer = Translated(target=TARGET, offset=60)
    assert clamped(answer, {TARGET: 100}) == answer
    assert clamped(answer, {TARGET: 50}) == Translated(target=TARGET, offset=50)
    assert clamped(answer, {}) == Untranslated(why="a.t-0 is not there", target=TARGET)
