"""`make bench`: this replicator beside MirrorMaker 2 on the same backlogs; QUICK=1 for a run of less than four minutes.

Prints what it finds and keeps it in docs/benchmarks.md and docs/benchmarks.svg; BENCH_RECORD=0 leaves those alone.
BENCH_RUNS sets how often each contestant copies each backlog.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from confluent_kafka import KafkaException

from dev.bench.cases import FULL, QUICK
from dev.bench.failures import BenchFailed
from dev.bench.keep import keep
from dev.bench.measure import Bench
from dev.kafka import BrokerFailed, JarsMissing

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run it; return the exit code."""
    os.chdir(ROOT)  # contestants are started as modules
    for name in [name for name in os.environ if name.startswith("KRABKA_")]:
        del os.environ[name]
    plan = QUICK if os.environ.get("QUICK") == "1" else FULL
    if runs := os.environ.get("BENCH_RUNS"):
        plan = replace(plan, runs=int(runs))
    bench = Bench(plan)
    try:
        with tempfile.TemporaryDirectory(prefix="krabka-bench-") as folder:
            bench.run(Path(folder))
    except (BenchFailed, BrokerFailed, JarsMissing, KafkaException) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    if os.environ.get("BENCH_RECORD") != "0":
        keep(ROOT / "docs", f"{datetime.now(timezone.utc):%Y-%m-%d}", bench.lines, bench.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
