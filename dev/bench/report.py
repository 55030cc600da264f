"""Tables and ratios of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from dev.bench.cases import Case
from dev.bench.contestants import AT_LEAST_ONCE, EXACTLY_ONCE, MM2_DEFAULT, MM2_TUNED, Contestant
from dev.bench.latency import Latency
from dev.bench.throughput import Throughput

Results = Mapping[tuple[Case, Contestant], Sequence[Throughput]]
Measure = Callable[[Throughput], float]


def rate(run: Throughput) -> float:
    """Records per second."""
    return run.rate


def cpu(run: Throughput) -> float:
    """CPU-seconds per million records."""
    return run.cpu_per_million


def resident(run: Throughput) -> float:
    """Peak of resident memory in MB."""
    return run.resident


THROUGHPUT_HEAD = (
    "| values | contestant | records/s | MB/s | CPU-s per million records | CPU-s per GB | peak MB "
    "| s to first record (CPU-s) |",
    "|---|---|---|---|---|---|---|---|",
)
LATENCY_HEAD = ("| records/s | contestant | p50 ms | p95 ms | p99 ms |", "|---|---|---|---|---|")
RATIO_HEAD = ("| values | against | delivery | throughput | CPU per record | memory |", "|---|---|---|---|---|---|")


def throughput_row(case: Case, contestant: Contestant, runs: Sequence[Throughput]) -> str:
    """Return a line of the throughput table."""
    cells = [
        case.title,
        contestant.name if all(run.whole for run in runs) else f"{contestant.name} (a part, the time was up)",
        _spread(runs, rate, ",.0f"),
        _spread(runs, lambda run: run.rate * run.payload / 1e6, ",.0f"),
        _spread(runs, cpu, ".2f"),
        _spread(runs, lambda run: run.cpu_per_gigabyte, ".1f"),
        _spread(runs, resident, ",.0f"),
        f"{middle(runs, lambda run: run.first):.1f} ({middle(runs, lambda run: run.start_cpu):.1f})",
    ]
    return f"| {' | '.join(cells)} |"


def latency_row(name: str, found: Latency) -> str:
    """Return a line of the latency table."""
    return f"| {found.rate:,} | {name} | {found.p50:.1f} | {found.p95:.1f} | {found.p99:.1f} |"


def ratio_rows(results: Results) -> list[str]:
    """Return how both deliveries compare with MM2: throughput as a multiple, CPU and memory as a part."""
    return [
        f"| {case.title} | {other.name} | {ours.name} "
        f"| {_ratio(results, case, ours, other, rate):.1f} x "
        f"| 1/{_ratio(results, case, other, ours, cpu):.1f} "
        f"| 1/{_ratio(results, case, other, ours, resident):.1f} |"
        for case in dict.fromkeys(case for case, _ in results)
        for other in (MM2_DEFAULT, MM2_TUNED)
        for ours in (AT_LEAST_ONCE, EXACTLY_ONCE)
        if (case, ours) in results and (case, other) in results
    ]


def _ratio(results: Results, case: Case, over: Contestant, under: Contestant, measure: Measure) -> float:
    return middle(results[case, over], measure) / middle(results[case, under], measure)


def headline(results: Results) -> str | None:
    """Return the figures in one line; None when a case that it needs is missing."""
    base = [case for case in dict.fromkeys(case for case, _ in results) if case.codec == "none"][:2]
    runs = [results.get((case, AT_LEAST_ONCE)) for case in base]
    if len(base) < 2 or not all(runs):
        return None
    small, large = (
        f"{middle(found, rate) / 1000:.0f} k records/s, {middle(found, cpu):.2f} CPU-s per million records"
        for found in runs
        if found
    )
    return (
        f"{small} at 100 B; {large} at 1 kB (at-least-once). "
        "The prototype of the design had 354 k/s, 2.8 and 110 k/s, 8.4."
    )


def middle(runs: Sequence[Throughput], measure: Measure) -> float:
    """Return the median of a measure."""
    return median(measure(run) for run in runs)


def _spread(runs: Sequence[Throughput], measure: Measure, form: str) -> str:
    values = [measure(run) for run in runs]
    if len(values) == 1:
        return format(values[0], form)
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
