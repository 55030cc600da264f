"""The index against brute force: whatever happens on either side, no record is missed, and inside it none repeats.

The oracle keeps every copy that lies on the target. It knows nothing of runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.offset_index import BeforeIndex, Exact, OffsetIndex, Translation
from app.core.runs import StoredRun

small = st.integers(0, 6)
copy = st.tuples(st.just("copy"), st.lists(st.booleans(), min_size=1, max_size=8))
marker = st.tuples(st.just("marker"), small)
again = st.tuples(st.just("again"), st.integers(1, 30))
truncate = st.tuples(st.just("truncate"), st.integers(0, 30))
crash = st.tuples(st.just("crash"), st.lists(st.booleans(), min_size=1, max_size=8))
rebuild = st.tuples(st.just("rebuild"), st.just(0))
lose = st.tuples(st.just("lose"), st.lists(st.booleans(), min_size=8, max_size=8))
recreate = st.tuples(st.just("recreate"), small)

forward = st.lists(copy | copy | copy | marker | rebuild, max_size=25)
anything = st.lists(copy | copy | copy | marker | again | crash | truncate | rebuild | lose | recreate, max_size=30)


@dataclass
class World:
    """A partition, its copies and the index; the source's offset `o` is readable as `readable` said when first read."""

    size: int
    atomic: bool  # runs and records are written in one transaction, or the runs some time after the records
    first: int = 0
    position: int = 0
    end: int = 0  # of the target's log
    readable: dict[int, bool] = field(default_factory=dict)
    copies: list[tuple[int, int]] = field(default_factory=list)  # target offset, source offset; ascending by the first
    fragile: bool = False  # a truncation or a new topic is known only from the run behind it: that one must not be lost
    ring: dict[int, StoredRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = OffsetIndex(self.size, atomic=self.atomic)
        if not self.atomic:
            self.index.begin(0, 0)
            self.ring.update(self.index.take_changed())

    def copy(self, readable: list[bool]) -> None:
        """Copy the next records, as one batch per stretch; what was read before reads the same."""
        for offset, here in enumerate(readable, self.position):
            if self.readable.setdefault(offset, here):
                self.index.observe(offset, self.end, 1)
                self.copies.append((self.end, offset))
                self.end += 1
        self.position += len(readable)
        self.ring.update(self.index.take_changed())

    def marker(self, count: int) -> None:
        self.end += count

    def crash(self, readable: list[bool]) -> None:
        """Copy records of which nothing is stored, as a transaction that is aborted or not as one, and start again."""
        for offset, here in enumerate(readable, self.position):
            if self.readable.setdefault(offset, here):
                if not self.atomic:
                    self.copies.append((self.end, offset))
                self.end += 1
        self.rebuild(0)

    def again(self, count: int) -> None:
        """Come back with older positions; the index was stored before them, or not."""
        self.position = max(self.first, self.position - count)

    def truncate(self, count: int) -> None:
        """Lose the target's last offsets, which is seen with the next copy: make one."""
        self.end, self.fragile = max(0, self.end - count), True
        self.copies = [copied for copied in self.copies if copied[0] < self.end]
        held = len(self.copies)
        while len(self.copies) == held:
            self.copy([True])

    def rebuild(self, _: int) -> None:
        self.index = OffsetIndex(self.size, self.ring.values(), atomic=self.atomic)

    def lose(self, lost: list[bool]) -> None:
        """Lose some of the ring, and go on from where the rest ends."""
        kept = {slot: entry for slot, entry in self.ring.items() if not lost[slot % len(lost)]}
        if self.atomic or self.fragile or not kept:
            return
        self.ring = kept
        self.index = OffsetIndex(self.size, self.ring.values(), atomic=self.atomic)
        newest = max(kept.values(), key=lambda entry: entry.number)
        self.position = min(self.position, newest.run.upstream_end)

    def recreate(self, first: int) -> None:
        """Begin with a new topic on the source; the copies of the old one are nobody's business any more."""
        self.readable, self.copies, self.first, self.position, self.fragile = {}, [], first, first, True
        self.index.begin(first, self.end)
        self.ring.update(self.index.take_changed())


def play(size: int, atomic: bool, events: list[tuple[str, list[bool] & int]]) -> World:  # type: ignore[operator]
    world = World(size, atomic)
    for kind, argument in events:
        getattr(world, kind)(argument)
    return world


def misses(world: World, offset: int, translated: int) -> list[int]:
    """Return the source offsets a group at `offset` still needs that were copied, but not to `translated` or later."""
    needed = {source for _, source in world.copies if source >= offset}
    return sorted(needed - {source for target, source in world.copies if target >= translated})


def next_read(world: World, translated: int) -> int | None:
    return next((source for target, source in world.copies if target >= translated), None)


def asked(world: World) -> range:
    return range(max(world.readable, default=0) + 3)


@settings(max_examples=300)
@given(st.integers(1, 6), st.booleans(), anything)
def test_a_translated_offset_never_misses_a_copied_record(
    size: int, atomic: bool, events: list[tuple[str, int]]
) -> None:
    world = play(size, atomic, events)
    for offset in asked(world):
        answer = world.index.translate(offset)
        if isinstance(answer, Exact):
            assert answer.offset <= world.end
            assert misses(world, offset, answer.offset) == []
        elif isinstance(answer, BeforeIndex):
            assert offset < answer.first


@settings(max_examples=300)
@given(st.integers(1, 100), forward)
def test_what_is_read_next_is_the_copy_of_what_the_group_would_read_next(
    size: int, events: list[tuple[str, int]]
) -> None:
    world = play(size, True, events)
    sources = [source for _, source in world.copies]
    for offset in asked(world):
        answer = world.index.translate(offset)
        if isinstance(answer, Exact):
            assert next_read(world, answer.offset) == next((source for source in sources if source >= offset), None)
        elif isinstance(answer, BeforeIndex):
            assert offset < answer.first
            assert answer.first > 0
        else:
            assert sources == []


@settings(max_examples=200)
@given(forward)
def test_a_ring_large_enough_answers_for_all_that_was_copied(events: list[tuple[str, int]]) -> None:
    world = play(1000, True, events)
    for target, source in world.copies:
        assert world.index.translate(source) == Exact(target)
        assert world.index.translate_back(target) == Exact(source)
    if world.copies:
        target, source = world.copies[-1]
        assert world.index.translate(source + 1) == world.index.translate(source + 100) == Exact(target + 1)


@settings(max_examples=300)
@given(st.integers(1, 6), st.booleans(), anything)
def test_the_way_back_never_misses_a_record(size: int, atomic: bool, events: list[tuple[str, int]]) -> None:
    # What a truncation took and a crash copied again unseen lies before all that the index knows: no way back tells.
    left_out = "crash" if len(events) % 2 else "truncate"
    world = play(size, atomic, [event for event in events if event[0] != left_out])
    for offset in range(world.end + 3):
        answer = world.index.translate_back(offset)
        if isinstance(answer, Exact):
            unread = {source for target, source in world.copies if target >= offset}
            read = {source for target, source in world.copies if target < offset}
            assert all(source >= answer.offset for source in unread - read)


@settings(max_examples=200)
@given(st.integers(1, 6), st.booleans(), anything)
def test_answers_rise_with_the_offsets(size: int, atomic: bool, events: list[tuple[str, int]]) -> None:
    world = play(size, atomic, events)
    for translate in (world.index.translate, world.index.translate_back):
        answers: list[Translation] = [translate(offset) for offset in range(max(world.end, max(asked(world))) + 3)]
        exact = [answer.offset for answer in answers if isinstance(answer, Exact)]
        assert exact == sorted(exact)
        assert len({type(answer) for answer in answers[len(answers) - len(exact) :]} - {Exact}) == 0


@settings(max_examples=200)
@given(st.integers(1, 6), st.booleans(), anything, st.randoms(use_true_random=False))
def test_the_ring_holds_all_that_the_index_knows(
    size: int, atomic: bool, events: list[tuple[str, int]], random: object
) -> None:
    world = play(size, atomic, events)
    entries = list(world.ring.values())
    random.shuffle(entries)  # type: ignore[attr-defined]
    assert len(world.ring) <= size
    assert all(number % size == slot for slot, number in ((slot, entry.number) for slot, entry in world.ring.items()))
    again = OffsetIndex(size, entries, atomic=atomic)
    assert again.runs() == world.index.runs()
    assert [again.translate_back(offset) for offset in asked(world)] == [
        world.index.translate_back(offset) for offset in asked(world)
    ]


@settings(max_examples=100)
@given(st.integers(1, 6), st.booleans(), anything)
def test_runs_are_apart_and_ascend_on_both_sides(size: int, atomic: bool, events: list[tuple[str, int]]) -> None:
    runs = play(size, atomic, events).index.runs()
    assert all(run.count > 0 for run in runs[1:])
    for one, two in pairwise(runs):
        assert one.upstream_end <= two.upstream
        assert one.downstream_end <= two.downstream
