"""Looks at the flows every few seconds, so that the dashboard can show the last minutes as soon as it is opened."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mode import Service

from app.core.tasks import spans
from app.events import Event, EventLog
from app.progress import Progress, progress
from app.runtime.counters import BOUNDS, FlowCounters
from app.runtime.flow import FlowService
from app.runtime.supervisor import Supervisor

INTERVAL = 2.0

#: Samples kept: ten minutes.
KEPT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A flow at a moment: totals since the worker started, and its lag then."""

    time: float
    records: int
    bytes: int
    lag: int
    lag_seconds: float | None
    latency: tuple[int, ...]


class Observer(Service):  # type: ignore[misc]
    """Keeps the recent history of each flow, and of what was logged."""

    def __init__(self, supervisor: Supervisor, **options: Any) -> None:
        super().__init__(**options)
        self.supervisor = supervisor
        self.events = EventLog()
        self.samples: dict[str, deque[Sample]] = {name: deque(maxlen=KEPT) for name in supervisor.flows}
        self._shares: dict[str, tuple[int, frozenset[int]]] = {}
        self._watch: asyncio.Task[None] | None = None

    async def on_start(self) -> None:
        """Begin; returns at once."""
        self.events.attach()
        self._watch = asyncio.create_task(self._keep_looking(), name="observer")

    async def on_stop(self) -> None:
        """End."""
        if self._watch is not None:
            self._watch.cancel()

    async def _keep_looking(self) -> None:
        while True:
            self._forget(self.samples.keys() - self.supervisor.flows.keys())
            for name, flow in self.supervisor.flows.items():
                self.samples.setdefault(name, deque(maxlen=KEPT)).append(sample(flow, time.time()))
                self.note_rebalance(name, flow)
            await asyncio.sleep(INTERVAL)

    def _forget(self, flows: Iterable[str]) -> None:
        for name in flows:
            del self.samples[name]
            self._shares.pop(name, None)

    def note_rebalance(self, name: str, flow: FlowService) -> None:
        """Make an event of a rebalance: logged at INFO, it would be missed with Faust's usual log level."""
        count, before = self._shares.get(name, (0, frozenset[int]()))
        if flow.counters.rebalances == count or flow.pipeline is None:
            return
        now = flow.pipeline.share.wanted
        self._shares[name] = (flow.counters.rebalances, now)
        text = f"{name}: tasks of this worker: {spans(now)} (before: {spans(before)}), of {flow.config.tasks}"
        self.events.add(Event(time=time.time(), level="info", kind="rebalance", text=text))

    def history(self) -> dict[str, Any]:
        """Return rates and lag of each flow as columns, oldest first: a stable document."""
        return {
            "interval": INTERVAL,
            "flows": {name: _columns(list(samples)) for name, samples in self.samples.items()},
        }


def sample(flow: FlowService, now: float) -> Sample:
    """Look at a flow, and note which partitions have nothing left to copy."""
    rows = list(progress(flow))
    for row in rows:
        if row.lag == 0:
            flow.counters.of(row.source).caught_up = now
    records, size = flow.totals()
    return Sample(
        time=now,
        records=records,
        bytes=size,
        lag=sum(row.lag for row in rows),
        lag_seconds=worst(flow.counters, rows, now),
        latency=tuple(flow.counters.latency.counts),
    )


def worst(counters: FlowCounters, rows: list[Progress], now: float) -> float | None:
    """Return the longest lag in seconds of these partitions; None when it is known of none that has a lag."""
    lags = [counters.of(row.source).lag_seconds(row.lag, now) for row in rows if row.lag]
    known = [lag for lag in lags if lag is not None]
    return max(known) if known else None if lags else 0.0


def _columns(samples: list[Sample]) -> dict[str, list[Any]]:
    pairs = list(pairwise(samples))
    return {
        "time": [round(after.time, 1) for _, after in pairs],
        "records_per_second": [_rate(a.records, b.records, b.time - a.time) for a, b in pairs],
        "bytes_per_second": [_rate(a.bytes, b.bytes, b.time - a.time) for a, b in pairs],
        "lag": [after.lag for _, after in pairs],
        "lag_seconds": [after.lag_seconds for _, after in pairs],
        "latency": [quantile([y - x for x, y in zip(a.latency, b.latency, strict=True)], 0.95) for a, b in pairs],
    }


def _rate(before: int, after: int, seconds: float) -> float:
    return round(max(0, after - before) / seconds, 1) if seconds > 0 else 0.0


def quantile(counts: list[int], share: float) -> float | None:
    """Return the upper bound, in seconds, of the bucket that holds this share of the observations; None without any."""
    left = share * sum(counts)
    if not left:
        return None
    for count, bound in zip(counts, BOUNDS, strict=False):
        left -= count
        if left <= 0:
            return bound
    return BOUNDS[-1]
