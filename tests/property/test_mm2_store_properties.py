"""MM2's rules for every history: the invariants of the store, and translation that never overshoots."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.mm2_store import SLOTS, OffsetSyncStore, Sync, SyncEmitter, Translated

steps = st.integers(1, 5) | st.integers(1, 1000) | st.integers(1, 2**40)
batches = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 40)), min_size=1, max_size=30)


def slots(store: OffsetSyncStore) -> list[Sync]:
    """All 64, from the first slot of each sync."""
    first = dict(store.held())
    filled: list[Sync] = []
    for at in range(SLOTS):
        filled.append(first.get(at) or filled[-1])
    return filled


@settings(max_examples=200)
@given(st.lists(steps, min_size=1, max_size=80))
def test_the_invariants_hold_after_every_sync(distances: list[int]) -> None:
    store, offset = OffsetSyncStore(must_read_to_end=False), 0
    store.loaded()
    for distance in distances:
        offset += distance
        store.observe(offset, offset)
        held = slots(store)
        assert held[0].upstream == offset
        for at in range(SLOTS - 1):
            if held[at] != held[at + 1]:
                assert held[at].upstream <= held[at + 1].upstream + 2 ** (at + 1) - 2**at
                assert held[at].upstream >= held[at + 1].upstream + 2 ** max(at - 2, 0)


@settings(max_examples=200)
@given(st.integers(0, 20), batches, st.booleans())
def test_emitted_syncs_never_translate_past_the_truth(
    offset_lag_max: int, history: list[tuple[int, int, int]], commits: bool
) -> None:
    emitter, store = SyncEmitter(offset_lag_max), OffsetSyncStore(must_read_to_end=False)
    store.loaded()
    copies: list[tuple[int, int]] = []
    upstream = downstream = 0
    for source_gap, target_gap, count in history:
        upstream, downstream = upstream + source_gap, downstream + target_gap
        for sync in emitter.observe(upstream, downstream, count):
            store.observe(sync.upstream, sync.downstream)
        delayed = emitter.commit() if commits else None
        if delayed:
            store.observe(delayed.upstream, delayed.downstream)
        copies += [(upstream + at, downstream + at) for at in range(count)]
        upstream, downstream = upstream + count, downstream + count
    for offset in range(upstream + 2):
        answer = store.translate(offset)
        exact = next((target for source, target in copies if source >= offset), downstream)
        if isinstance(answer, Translated):
            assert answer.offset <= exact
        else:
            assert offset < copies[0][0] or offset < min(sync.upstream for _, sync in store.held())


@settings(max_examples=100)
@given(st.integers(0, 20), batches)
def test_a_batch_is_as_good_as_its_records(offset_lag_max: int, history: list[tuple[int, int, int]]) -> None:
    whole, single = SyncEmitter(offset_lag_max), SyncEmitter(offset_lag_max)
    upstream = downstream = 0
    for source_step, target_step, count in history:
        upstream, downstream = max(0, upstream + source_step - 1), max(0, downstream + target_step - 1)
        expected = [sync for at in range(count) for sync in single.observe(upstream + at, downstream + at)]
        assert whole.observe(upstream, downstream, count) == expected
        assert whole.commit() == single.commit()
        upstream, downstream = upstream + count, downstream + count
