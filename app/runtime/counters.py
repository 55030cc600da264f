"""What a flow counts while it runs; it outlives the flow's pipelines, so that counts only grow."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field

from app.core.records import TopicPartition
from app.errors import RecordsRefused, TaskFenced

#: Upper bounds of the latency buckets, seconds.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)

#: Kept of what was set aside lately, to be shown.
REMEMBERED = 50


@dataclass(slots=True, kw_only=True)
class Histogram:
    """Counts by bucket; the last one is beyond all bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float, times: int) -> None:
        """Count an observation made `times` times over."""
        self.counts[bisect_left(BOUNDS, seconds)] += times
        self.total += seconds * times


@dataclass(slots=True, kw_only=True)
class Carried:
    """What was carried of a source partition. Times are seconds of the wall clock, None when nothing is known."""

    records: int = 0
    bytes: int = 0
    newest: float | None = None
    latency: float | None = None
    caught_up: float | None = None

    def lag_seconds(self, lag: int, now: float) -> float | None:
        """Return how old the oldest record that is not copied can be at most; None when nothing bounds it.

        It is younger than the newest copied record, and than the last time nothing was left to copy.
        """
        if lag == 0:
            return 0.0
        known = [now - moment for moment in (self.newest, self.caught_up) if moment is not None]
        return max(0.0, min(known)) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Records of a partition that went to the dead-letter topic together, for one reason; `time` in seconds."""

    time: float
    topic: str
    partition: int
    first: int
    last: int
    records: int
    reason: str


@dataclass(slots=True, kw_only=True)
class FlowCounters:
    """The counts of one flow on this worker."""

    commits: int = 0
    rebalances: int = 0
    fenced: int = 0
    refusals: int = 0
    dead_letters: int = 0
    task_failures: int = 0
    flow_failures: int = 0
    set_aside: deque[SetAside] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    losses: Counter[str] = field(default_factory=Counter)
    latency: Histogram = field(default_factory=Histogram)
    partitions: dict[TopicPartition, Carried] = field(default_factory=dict)

    def of(self, tp: TopicPartition) -> Carried:
        """Return the entry of a partition, made when it is first asked for."""
        found = self.partitions.get(tp)
        if found is None:
            found = self.partitions[tp] = Carried()
        return found

    def failed(self, error: Exception) -> None:
        """Count a task that has to be made anew."""
        self.task_failures += 1
        self.fenced += isinstance(error, TaskFenced)
        self.refusals += isinstance(error, RecordsRefused)

    def acknowledged(self, tp: TopicPartition, *, records: int, size: int, newest: float, now: float) -> None:
        """Count a batch that the target has; `newest` is its last record's timestamp, and stands for all of it."""
        carried = self.of(tp)
        carried.records += records
        carried.bytes += size
        carried.newest = newest
        # A timestamp that the producer set may be of any age; what was copied since nothing was left is younger.
        carried.latency = max(0.0, now - max(newest, carried.caught_up or newest))
        self.latency.observe(carried.latency, records)
