"""The token bucket, for every sequence of batches and every clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.limits import TokenBucket, part_of

RATES = st.integers(1024, 1 << 30)
SIZES = st.integers(0, 1 << 24)
STEPS = st.lists(st.tuples(st.floats(0, 5), SIZES), max_size=60)

#: Of additions in floating point, relative to what was added.
ROUNDING = 1e-6


def passed(bucket: TokenBucket, steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Offer a batch after each step of time; return when which sizes passed."""
    now, found = 0.0, []
    for step, size in steps:
        now += step
        if bucket.take(size, now):
            found.append((now, size))
    return found


@given(RATES, STEPS)
def test_no_window_lets_more_pass_than_rate_and_burst(rate: int, steps: list[tuple[float, int]]) -> None:
    bucket = TokenBucket(rate, 0.0)
    found = passed(bucket, steps)
    largest = max((size for _, size in found), default=0)
    for first, (begin, _) in enumerate(found):
        total = 0
        for at, size in found[first:]:
            total += size
            assert total <= (rate * (at - begin) + max(bucket.burst, largest)) * (1 + ROUNDING)


@given(RATES, st.lists(SIZES, min_size=1, max_size=40))
def test_whoever_waits_as_long_as_told_passes_in_turn(rate: int, sizes: list[int]) -> None:
    bucket, now = TokenBucket(rate, 0.0), 0.0
    for size in sizes:
        now += bucket.delay(size, now) * (1 + ROUNDING) + ROUNDING
        assert bucket.take(size, now)
    assert now <= sum(sizes) / rate * (1 + ROUNDING) + 1 + len(sizes) * 10 * ROUNDING


@given(RATES, RATES, SIZES, st.floats(0, 100))
def test_another_rate_keeps_debts_and_no_more_than_its_own_burst(one: int, two: int, size: int, later: float) -> None:
    bucket = TokenBucket(one, 0.0)
    assert bucket.take(size, 1.0)
    bucket.change(two, 1.0)
    owed = max(0, size - one)
    assert bucket.take(1, 1.0) == (size < one)
    now = 1.0 + bucket.delay(1, 1.0) + later
    assert owed == 0 or now - 1.0 >= owed / two
    assert not bucket.take(two, now) or not bucket.take(two, now), "two bursts at once"


@given(st.integers(1, 64), st.integers(1, 8), st.data())
def test_the_parts_of_all_workers_make_one(tasks: int, workers: int, data: st.DataObject) -> None:
    owners = data.draw(st.lists(st.integers(0, workers - 1), min_size=tasks, max_size=tasks))
    busy = data.draw(st.frozensets(st.integers(0, tasks - 1), min_size=1))
    owned = [frozenset(task for task, owner in enumerate(owners) if owner == one) for one in range(workers)]
    parts = [part_of(mine, busy) for mine in owned if mine & busy]
    assert abs(sum(parts) - 1) < ROUNDING
    assert all(0 < part <= 1 for part in parts)
