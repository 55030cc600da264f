"""How fast a flow may go: a token bucket of bytes. Time is given in, seconds of any clock that never goes back."""

from __future__ import annotations

#: What may pass at once after nothing passed for a while, in seconds of the rate.
BURST_SECONDS = 1.0


class TokenBucket:
    """Lets at most `rate` bytes pass in a second, begun empty, so that a restart is no way around it.

    Invariants:
        A. In any window of t seconds at most `rate * t + burst` bytes pass, or the largest batch in place of the burst
           where that is more: it passes when the bucket is full, and what it takes beyond that is paid back first.
        B. Whatever its size, a batch passes once nothing else did for `BURST_SECONDS` and the debt is paid.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._level = 0.0
        self._at = now

    @property
    def burst(self) -> float:
        """Bytes that a full bucket holds."""
        return self.rate * BURST_SECONDS

    def change(self, rate: float, now: float) -> None:
        """Go on at another rate; what was saved counts as far as the new burst allows, a debt stays one."""
        self._fill(now)
        self.rate = rate
        self._level = min(self._level, self.burst)

    def take(self, size: int, now: float) -> bool:
        """Tell whether a batch may pass now; if so it has."""
        self._fill(now)
        if self._level < min(size, self.burst):
            return False
        self._level -= size
        return True

    def delay(self, size: int, now: float) -> float:
        """Return the seconds until a batch may pass."""
        self._fill(now)
        return max(0.0, (min(size, self.burst) - self._level) / self.rate)

    def _fill(self, now: float) -> None:
        self._level = min(self.burst, self._level + self.rate * max(0.0, now - self._at))
        self._at = max(now, self._at)


def part_of(owned: frozenset[int], busy: frozenset[int]) -> float:
    """Return a worker's part of its flow's limit: that of the tasks with partitions to carry which it owns.

    All workers see the same tasks, so that their parts together make one. A worker that owns none of them has nothing
    to be held back.
    """
    return len(owned & busy) / len(busy) if owned & busy else 1.0
