"""The index of runs, event by event."""

import pytest

from app.core.offset_index import BeforeIndex, Empty, Exact, OffsetIndex
from app.core.runs import Run, StoredRun, parse_run_key, run_key


def index(*observed: tuple[int, int, int], size: int = 8, atomic: bool = True) -> OffsetIndex:
    made = OffsetIndex(size, atomic=atomic)
    for upstream, downstream, count in observed:
        made.observe(upstream, downstream, count)
    return made


def run(upstream: int, downstream: int, count: int) -> Run:
    return Run(upstream=upstream, downstream=downstream, count=count)


def offsets(of: OffsetIndex, *asked: int) -> list[int]:
    answers = [of.translate(offset) for offset in asked]
    assert all(isinstance(answer, Exact) for answer in answers), answers
    return [answer.offset for answer in answers if isinstance(answer, Exact)]


def test_nothing_is_known_of_a_partition_without_copies() -> None:
    assert index().translate(0) == Empty()
    assert index().translate_back(0) == Empty()


def test_batches_that_continue_are_one_run() -> None:
    one = index((100, 40, 10), (110, 50, 5), (115, 55, 1))
    assert one.runs() == [run(100, 40, 16)]
    assert one.take_changed() == [(0, StoredRun(number=0, run=run(100, 40, 16), after=None))]


@pytest.mark.parametrize("gap", [(111, 50), (110, 51), (111, 51)])
def test_a_gap_on_either_side_begins_a_run(gap: tuple[int, int]) -> None:
    assert len(index((100, 40, 10), (*gap, 5)).runs()) == 2


def test_the_boundaries_of_translation() -> None:
    #  source |100 … 109 . . 112 … 116|   target |40 … 49 m 51 … 55|
    known = index((100, 40, 10), (112, 51, 5))
    assert offsets(known, 100, 101, 109) == [40, 41, 49]  # inside
    assert offsets(known, 110, 111, 112) == [50, 50, 51]  # what comes next is the copy of 112, behind the marker
    assert offsets(known, 116, 117, 118, 10_000) == [55, 56, 56, 56]  # all that was copied is read
    assert known.translate(99) == BeforeIndex(100)


def test_the_way_back() -> None:
    known = index((100, 40, 10), (112, 51, 5))
    answers = [known.translate_back(offset) for offset in (40, 49, 50, 51, 55, 56, 99)]
    assert answers == [Exact(offset) for offset in (100, 109, 110, 112, 116, 117, 117)]
    assert known.translate_back(39) == BeforeIndex(40)


def test_before_the_first_copy_on_an_empty_target_nothing_can_be_missed() -> None:
    assert offsets(index((500, 0, 10)), 0, 499, 500) == [0, 0, 0]


def test_the_ring_keeps_the_newest_runs() -> None:
    known = index(*((step * 10, step * 9, 9) for step in range(7)), size=3)
    assert [(slot, stored.number) for slot, stored in known.take_changed()] == [(1, 4), (2, 5), (0, 6)]
    assert known.translate(39) == BeforeIndex(40)
    assert offsets(known, 40, 49) == [36, 45]
    assert known.take_changed() == []


def test_a_run_that_grows_is_written_to_its_slot_again() -> None:
    known = index((0, 0, 10), (20, 10, 10))
    known.take_changed()
    known.observe(30, 20, 1)
    assert known.take_changed() == [(1, StoredRun(number=1, run=run(20, 10, 11), after=10, reach=10))]


def test_copies_made_again_count_once_they_reach_as_far_as_the_old_ones() -> None:
    #  the first 100 are copied; the last positions were lost, and 80 and on are copied again
    known = index((0, 0, 100), (80, 100, 5))
    assert offsets(known, 79, 80, 82, 90, 100) == [79, 80, 82, 90, 100]
    known.observe(85, 105, 14)
    assert offsets(known, 82, 98, 99) == [82, 98, 99]
    known.observe(99, 119, 2)
    assert offsets(known, 79, 80, 99, 100, 101) == [79, 100, 119, 120, 121]


def test_a_second_restart_before_the_first_has_caught_up() -> None:
    known = index((0, 0, 100), (80, 100, 15), (90, 115, 5), (70, 120, 10))
    assert offsets(known, 75, 95) == [75, 95]
    known.observe(80, 130, 30)
    assert known.runs() == [run(0, 0, 70), run(70, 120, 40)]


def test_what_was_truncated_on_the_target_is_gone() -> None:
    known = index((0, 0, 60), (70, 60, 40), (110, 80, 5))
    assert known.runs() == [run(0, 0, 60), run(70, 60, 20), run(110, 80, 5)]
    assert offsets(known, 89, 90, 109) == [79, 80, 80]
    known.observe(115, 10, 5)
    assert known.runs() == [run(0, 0, 10), run(115, 10, 5)]


def test_a_target_that_begins_anew() -> None:
    known = index((0, 0, 100), (100, 0, 5))
    assert offsets(known, 0, 99, 100, 104) == [0, 0, 0, 4]


def test_truncation_brings_back_the_old_copies_of_what_it_took() -> None:
    known = index((0, 0, 100), (80, 200, 25), (95, 215, 2))
    assert offsets(known, 85, 98) == [85, 98]
    known.observe(97, 217, 3)
    assert offsets(known, 85, 98) == [205, 218]


def test_what_a_crash_kept_out_of_the_index_is_not_passed_when_the_target_loses_the_rest() -> None:
    #  1 was copied to 1 unseen and to 2; the target lost 2, and 2 was copied there
    known = index((0, 0, 1), (1, 2, 1), (2, 2, 1), atomic=False)
    assert offsets(known, 1, 2) == [1, 2]


def test_truncation_in_copies_made_again_leaves_the_old_ones_in_force() -> None:
    known = index((0, 0, 2), (0, 2, 2), (2, 3, 1))
    assert offsets(known, 0, 1, 2) == [0, 1, 3]
    few = index((0, 0, 2), (0, 2, 2), (2, 3, 1), size=2)
    assert few.translate(1) == BeforeIndex(2)


def test_a_source_created_anew_is_told_by_the_ring_too() -> None:
    known = index((0, 0, 100), (150, 100, 5))
    ring = dict(known.take_changed())
    known.begin(20, 105)
    assert known.translate(50) == known.translate_back(50) == Empty()
    ring.update(known.take_changed())
    assert sorted(ring) == [0, 1, 2]
    assert OffsetIndex(8, ring.values()).translate(10) == Empty()
    known.observe(20, 105, 5)
    assert known.take_changed() == [(2, StoredRun(number=2, run=run(20, 105, 5)))]
    assert known.translate(10) == BeforeIndex(20)


def test_copies_of_which_nothing_was_stored_before_a_crash() -> None:
    begun = OffsetIndex(8)
    begun.begin(0, 1000)  # others have written to the target before
    again = OffsetIndex(8, [entry for _, entry in begun.take_changed()])
    again.observe(0, 1020, 19)
    assert again.translate(5) == Empty()
    again.observe(19, 1039, 1)
    assert offsets(again, 5, 20) == [1025, 1040]


def test_copies_made_again_do_not_count_alone_when_the_old_ones_have_left_the_ring() -> None:
    known = index((0, 0, 100), (50, 100, 10), (65, 110, 10), size=2)
    assert known.translate(55) == known.translate(99) == BeforeIndex(100)
    assert offsets(known, 100, 101) == [120, 120]
    assert known.translate_back(115) == BeforeIndex(120)
    known.observe(75, 120, 26)
    assert offsets(known, 50, 100, 101) == [100, 145, 146]


def test_the_way_back_waits_for_older_records_that_are_copied() -> None:
    known = index((1000, 0, 10), (0, 10, 5))
    assert offsets(known, 0, 1005) == [0, 5]
    assert known.translate_back(10) == BeforeIndex(15)
    truncated = index((0, 0, 2), (3, 1, 1), (1, 2, 1))
    assert truncated.translate_back(2) == BeforeIndex(3)


def test_copies_that_a_crash_kept_out_of_the_index_may_be_the_only_ones() -> None:
    #  100 … 149 were copied to 100 … 149, which nobody stored; they are copied again from 150 on
    known = index((0, 0, 100), (90, 150, 20), atomic=False)
    assert offsets(known, 95, 105, 130) == [95, 100, 100]
    known.observe(110, 170, 39)
    assert offsets(known, 105, 130) == [100, 100]
    known.observe(149, 209, 1)
    assert offsets(known, 95, 105, 130, 150) == [155, 165, 190, 210]


def test_doubt_lasts_over_runs_and_restarts() -> None:
    known = index((0, 0, 100), (100, 110, 4), (105, 114, 4), atomic=False)
    known = OffsetIndex(8, [entry for _, entry in known.take_changed()])
    assert offsets(known, 103) == [100]
    known.observe(110, 118, 2)
    assert offsets(known, 103, 110) == [113, 118]
    alone = OffsetIndex(1, [StoredRun(number=7, run=run(100, 110, 4), after=100, reach=100, unseen=10)])
    assert alone.translate(103) == Empty()
    assert alone.translate_back(112) == Empty()


def stored(number: int, upstream: int, after: int | None) -> StoredRun:
    return StoredRun(number=number, run=run(upstream, upstream, 10), after=after, reach=after or 0)


@pytest.mark.parametrize(
    ("ring", "first"),
    [
        ([stored(2, 40, 30), stored(0, 0, None), stored(1, 20, 10)], 0),
        ([stored(0, 0, None), stored(2, 40, 30)], 40),  # run 1 was lost
        ([stored(0, 0, None), stored(1, 20, 10), stored(2, 40, 35)], 40),  # the end of run 1 was lost
        ([stored(5, 60, 50), stored(1, 20, 10), stored(6, 80, 70)], 60),  # run 1 is of the lap before
        ([stored(3, 20, 10), stored(4, 40, None)], 40),  # forgotten
        ([stored(number, number * 20, number * 20 - 10) for number in range(1, 9)], 100),  # the ring was larger
    ],
)
def test_nothing_counts_before_a_hole_in_the_ring(ring: list[StoredRun], first: int) -> None:
    for entries in (ring, ring[::-1]):
        assert OffsetIndex(4, entries).runs()[0].upstream == first


def test_numbers_go_on_after_a_restart() -> None:
    again = OffsetIndex(4, [stored(7, 140, 130)])
    again.observe(150, 150, 1)
    again.observe(160, 151, 1)
    assert [(slot, entry.number, entry.after) for slot, entry in again.take_changed()] == [(3, 7, 130), (0, 8, 151)]


def test_an_index_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="0 runs"):
        OffsetIndex(0)


def test_stored_bytes() -> None:
    entry = StoredRun(number=3, run=run(1000, 742, 9), after=None)
    assert entry.value() == b'{"number":3,"upstream":1000,"downstream":742,"count":9,"after":null,"reach":0,"unseen":0}'
    assert StoredRun.decode(entry.value()) == entry
    assert run_key("a__b", "orders", 7, 3) == b'["a__b","orders",7,3]'
    assert parse_run_key(b'["a__b","orders",7,3]') == ("a__b", "orders", 7, 3)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        b'{"number":3,"upstream":-1,"downstream":0,"count":9,"after":null,"reach":0,"unseen":0}',
        b'{"number":3,"upstream":0,"downstream":0,"count":-1,"after":null,"reach":0,"unseen":0}',
        b'{"number":3,"upstream":0}',
    ],
)
def test_other_bytes_are_refused(value: bytes) -> None:
    with pytest.raises(ValueError):
        StoredRun.decode(value)
    with pytest.raises(ValueError):
        parse_run_key(value)
