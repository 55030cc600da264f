"""MM2's published vectors: Kafka 4.3.1 gave these answers."""

import random

import pytest

from app.core.mm2_store import Behind, NoSync, OffsetSyncStore, Sync, SyncEmitter, Translated


def due(emitter: SyncEmitter, upstream: int, downstream: int) -> bool:
    return bool(emitter.observe(upstream, downstream))


def store(*syncs: tuple[int, int], must_read_to_end: bool = True) -> OffsetSyncStore:
    """A store that has loaded nothing and then got `syncs`."""
    made = OffsetSyncStore(must_read_to_end=must_read_to_end)
    made.loaded()
    for upstream, downstream in syncs:
        made.observe(upstream, downstream)
    return made


def translated(of: OffsetSyncStore, *offsets: int) -> list[int]:
    """MM2's numbers, -1 when every sync lies behind."""
    answers = [of.translate(offset) for offset in offsets]
    return [answer.offset if isinstance(answer, Translated) else -1 for answer in answers]


def held(of: OffsetSyncStore) -> str:
    return " ".join(f"{slot}:{sync.upstream}" for slot, sync in of.held())


def test_which_copies_are_due() -> None:
    emitter = SyncEmitter(offset_lag_max=50)
    assert due(emitter, 0, 100)  # the first after the start
    assert due(emitter, 2, 102)  # a gap on the source
    assert not due(emitter, 3, 152)  # 49 since the last
    assert due(emitter, 4, 153)  # 50 since the last
    assert not due(emitter, 5, 154)
    assert not due(emitter, 6, 203)
    assert due(emitter, 7, 204)
    assert due(emitter, 2, 206)  # the source went back
    assert not due(emitter, 3, 207)
    assert due(emitter, 4, 3)  # the target went back
    assert not due(emitter, 5, 4)
    assert due(emitter, 7, 6)
    assert due(emitter, 7, 6)  # the same again
    assert not due(emitter, 8, 7)
    assert due(emitter, 10, 57)
    assert not due(emitter, 11, 58)


def test_with_lag_0_every_copy_is_due() -> None:
    assert SyncEmitter(offset_lag_max=0).observe(5, 7, 3) == [
        Sync(upstream=5, downstream=7),
        Sync(upstream=6, downstream=8),
        Sync(upstream=7, downstream=9),
    ]


def test_a_batch_gives_the_syncs_that_its_records_would() -> None:
    emitter = SyncEmitter(offset_lag_max=100)
    assert [sync.upstream for sync in emitter.observe(0, 1000, 250)] == [0, 101, 202]
    assert emitter.observe(250, 1250, 52) == []
    assert [sync.upstream for sync in emitter.observe(302, 1302, 3)] == [303]


def test_the_newest_copy_that_was_not_due_is_written_at_the_next_commit() -> None:
    emitter = SyncEmitter(offset_lag_max=100)
    emitter.observe(0, 0)
    assert emitter.commit() is None
    emitter.observe(1, 1)
    emitter.observe(2, 2, 5)
    assert emitter.commit() == Sync(upstream=6, downstream=6)
    assert emitter.commit() is None
    emitter.observe(7, 7)
    emitter.observe(9, 8)  # due: it replaces the delayed one
    assert emitter.commit() is None


def test_offset_translation() -> None:
    of = store()
    assert of.translate(0) == NoSync()
    of.observe(100, 200)
    assert translated(of, 150) == [201]
    of.observe(150, 251)
    assert translated(of, 150, 5) == [251, -1]
    of.observe(200, 10)  # only the source going back clears the store
    assert translated(of, 200, 100) == [10, 200]
    of.observe(20, 20)
    assert translated(of, 20, 19) == [20, -1]


def test_an_answer_tells_what_it_leans_on() -> None:
    of = store((100, 200))
    assert of.translate(150) == Translated(201, Sync(upstream=100, downstream=200))
    assert of.translate(99) == Behind(100)


@pytest.mark.parametrize("must_read_to_end", [False, True])
def test_nothing_is_translated_before_all_is_loaded(must_read_to_end: bool) -> None:
    of = OffsetSyncStore(must_read_to_end=must_read_to_end)
    assert of.translate(0) == NoSync()
    of.observe(100, 200)
    assert of.translate(150) == NoSync()
    of.loaded()
    assert translated(of, 150) == [201]


def test_translation_of_the_past() -> None:
    of = OffsetSyncStore(must_read_to_end=True)
    for offset in range(0, 1001, 10):
        of.observe(offset, offset)
    of.loaded()
    assert held(of) == "0:1000"
    for offset in range(1010, 10001, 10):
        of.observe(offset, offset)
    slots = "0:10000 5:9990 6:9970 7:9940 8:9880 9:9640 10:9160 11:8680 12:6760 13:4840 14:1000"
    assert held(of) == slots
    asked = (999, 1000, 1001, 4839, 4840, 4841, 9999, 10000, 10001)
    assert translated(of, *asked) == [-1, 1000, 1001, 1001, 4840, 4841, 9991, 10000, 10001]
    of.observe(1500, 11000)
    assert held(of) == "0:1500"
    assert translated(of, 1499, 1500, 2000) == [-1, 11000, 11001]


def test_translation_of_the_past_with_earlier_checkpoints() -> None:
    of = OffsetSyncStore(must_read_to_end=False)
    for offset in range(0, 1001, 10):
        of.observe(offset, offset)
    of.loaded()
    assert held(of) == "0:1000 5:990 6:960 7:900 8:840 9:720 10:480 11:0"
    for offset in range(1000, 10001, 10):
        of.observe(offset, offset)
    assert held(of) == "0:10000 5:9990 6:9960 7:9900 8:9840 9:9600 10:9120 11:8640 12:7680 13:3840 14:0"
    assert translated(of, 0, 5, 1001, 4841) == [0, 1, 1, 3841]


def test_every_offset_a_sync() -> None:
    assert held(store(*((offset, offset) for offset in range(41)))) == "0:40 1:39 2:38 3:36 4:32 5:16 6:0"


def test_a_million_records_at_the_default_lag() -> None:
    of = store()
    for offset in range(0, 1_000_001, 100):
        of.observe(offset, offset)
    slots = "0:1000000 8:999900 9:999800 10:999600 11:999200 12:998400 13:995200 14:992000 15:985600 16:972800"
    assert held(of) == slots + " 17:921600 18:819200 19:614400 20:409600 21:0"
    assert translated(of, 990_000, 900_000, 400_000) == [985_601, 819_201, 1]


def test_the_store_after_a_restart() -> None:
    of = OffsetSyncStore(must_read_to_end=False)
    for offset in (175, 275, 375, 475):
        of.observe(offset, offset)
    of.loaded()
    assert [sync.upstream for _, sync in of.held()] == [475, 375, 175]
    assert translated(of, 250, 370, 400) == [176, 176, 376]


def test_a_store_may_lose_precision() -> None:
    of = store()
    answers = []
    for offset in range(11, 18):
        of.observe(offset, offset - 7)
        answers += translated(of, 13)
    assert answers[1:] == [6, 6, 6, 6, 6, 5]


def distinct(of: OffsetSyncStore) -> set[int]:
    return {sync.upstream for _, sync in of.held()}


@pytest.mark.parametrize("step", range(1, 50))
def test_evenly_spaced_syncs_expire_one_by_one(step: int) -> None:
    of = store((0, 0))
    for offset in range(step, 2000 * step, step):
        before = distinct(of)
        of.observe(offset, offset)
        assert len(before - distinct(of)) <= 1


@pytest.mark.parametrize("bits", range(1, 17))
def test_random_spacing_keeps_few_syncs(bits: int) -> None:
    chance = random.Random(bits)
    of, offset = store((0, 0)), 0
    for _ in range(1000):
        offset += chance.randrange(1 << bits)
        of.observe(offset, offset)
        assert len(distinct(of)) <= offset.bit_length() + 2  # by C, since a slot's distance doubles


@pytest.mark.parametrize("lost", range(1, 20))
def test_a_sync_that_is_missing_expires_at_most_two(lost: int) -> None:
    of = store((0, 0))
    for offset in range(1, 500):
        if offset % 20 == lost:
            continue
        before = distinct(of)
        of.observe(offset, offset)
        assert len(before - distinct(of)) <= 2
