"""What is measured, for how long: the short run and the full one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A backlog: `records` values of `size` bytes, in source batches of at most `batch` bytes."""

    size: int
    records: int
    partitions: int = 6
    codec: str = "none"
    batch: int = 65536
    tuned_more: bool = False

    @property
    def title(self) -> str:
        """What tells the case from others, for people."""
        size = f"{self.size // 1000} kB" if self.size >= 1000 else f"{self.size} B"
        parts = [size]
        if self.codec != "none":
            parts.append(self.codec)
        if self.partitions != 6:
            parts.append(f"{self.partitions} partitions")
        if self.batch != 65536:
            parts.append(f"{self.batch // 1024} kB batches")
        return ", ".join(parts)

    @property
    def topic(self) -> str:
        """The topic that holds the backlog."""
        return f"backlog-{self.size}-{self.codec}-{self.partitions}-{self.batch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole measurement. Times in seconds; `limit` bounds one copy of a backlog, `budget` everything together."""

    cases: tuple[Case, ...]
    runs: int
    limit: float
    budget: float
    warm_up: float
    measured: float
    rates: tuple[int, ...] = (200, 5000)


QUICK = Plan(
    cases=(Case(size=100, records=1_200_000), Case(size=1000, records=200_000)),
    runs=1,
    limit=30,
    budget=200,
    warm_up=3,
    measured=6,
)

FULL = Plan(
    cases=(
        Case(size=100, records=2_000_000, tuned_more=True),
        Case(size=1000, records=300_000, tuned_more=True),
        Case(size=10_000, records=40_000),
        Case(size=1000, records=300_000, codec="lz4"),
        Case(size=1000, records=300_000, codec="zstd"),
        Case(size=1000, records=300_000, partitions=100),
        Case(size=100, records=1_000_000, batch=4096),
    ),
    runs=3,
    limit=60,
    budget=3000,
    warm_up=8,
    measured=20,
)
