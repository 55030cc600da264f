"""`make bench`: throughput, CPU, memory and latency of a worker, both deliveries; QUICK=1 for one run of each.

The table is printed and appended, dated, to docs/benchmarks.md when BENCH_RECORD=1.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from dev.bench.contest import BenchFailed, Throughput, fill, latency, throughput
from dev.kafka import Broker, BrokerFailed, JarsMissing, start_all

DELIVERIES = ("at-least-once", "exactly-once")
REPORT = Path("docs/benchmarks.md")


def main() -> int:
    """Run it; return the exit code."""
    quick = os.environ.get("QUICK") == "1"
    try:
        with tempfile.TemporaryDirectory(prefix="krabka-bench-") as folder:
            lines = measure(Path(folder), runs=1 if quick else 3)
    except (BenchFailed, BrokerFailed, JarsMissing) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if os.environ.get("BENCH_RECORD") == "1":
        with REPORT.open("a", encoding="utf-8") as report:
            report.write("\n" + "\n".join(lines) + "\n")
    return 0


def measure(folder: Path, runs: int) -> list[str]:
    """Measure everything, printing as it goes; return the report's lines."""
    brokers = [Broker("source", folder / "source"), Broker("target", folder / "target")]
    start_all(brokers)
    source, target = brokers
    lines = [
        f"## {datetime.now(timezone.utc):%Y-%m-%d}",
        "",
        f"{os.cpu_count()} cores shared by both brokers, the load and the worker; Python {platform.python_version()}, "
        f"Kafka 4.3.1, {runs} run(s) each, median (lowest to highest).",
        "",
        "| value | delivery | records/s | CPU-s per million records | peak MB | s to first record |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    try:
        for count, size in ((2_000_000, 100), (300_000, 1000)):
            topic = f"backlog-{size}"
            fill(source, topic, count, size, 6)
            for delivery in DELIVERIES:
                results = [throughput(folder / "run", source, target, topic, count, delivery) for _ in range(runs)]
                lines.append(row(size, delivery, results))
                print(lines[-1], flush=True)
        lines += ["", "| records/s | delivery | p50 ms | p95 ms | p99 ms |", "|---|---|---|---|---|"]
        print("\n".join(lines[-3:]), flush=True)
        for delivery in DELIVERIES:
            found = latency(folder / "run", source, target, delivery, 200, 15)
            lines.append(f"| 200 | {delivery} | {found.p50:.1f} | {found.p95:.1f} | {found.p99:.1f} |")
            print(lines[-1], flush=True)
    finally:
        for broker in brokers:
            broker.stop()
    return lines


def row(size: int, delivery: str, results: list[Throughput]) -> str:
    """Return a line of the throughput table."""

    def spread(values: list[float], form: str) -> str:
        if len(values) == 1:
            return format(values[0], form)
        return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

    return (
        f"| {size} B | {delivery} | {spread([r.records for r in results], ',.0f')} "
        f"| {spread([r.cpu for r in results], '.2f')} | {spread([r.resident for r in results], '.0f')} "
        f"| {spread([r.first for r in results], '.1f')} |"
    )


if __name__ == "__main__":
    sys.exit(main())
