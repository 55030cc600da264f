"""`/metrics` in Prometheus' text form, made from the supervisor's state whenever it is asked for.

Nothing is kept between two scrapes, so what belongs to a partition that moved to another worker is gone with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from app.observer import worst
from app.progress import progress
from app.runtime.counters import BOUNDS
from app.runtime.flow import FlowService
from app.runtime.supervisor import Supervisor
from app.status import held
from app.version import VERSION

OURS = "krabka_replicator"

#: What MM2's `MirrorSourceConnector` bean becomes under the usual lower-case rules of the JMX exporter.
MIRROR = "kafka_connect_mirror_mirrorsourceconnector"

FLOW = ("flow", "source", "target")
PARTITION = (*FLOW, "topic", "partition")
STATES = ("starting", "running", "paused", "draining", "stopped", "failed")


class FlowCollector(Collector):
    """Collects what a worker knows."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def describe(self) -> list[Metric]:
        """Nothing is known before there are flows."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from self._worker()
        flows = list(self._supervisor.flows.values())
        yield from _states(flows)
        yield from _counts(flows)
        yield from _limits(flows)
        yield from _partitions(flows)
        yield _latency(flows)
        yield from self._leader_work(flows)

    def _worker(self) -> Iterator[Metric]:
        supervisor = self._supervisor
        version = GaugeMetricFamily(f"{OURS}_build_info", "Version of this worker.", labels=["version"])
        version.add_metric([VERSION], 1)
        yield version
        up = GaugeMetricFamily(f"{OURS}_cluster_up", "Whether the cluster answers.", labels=["cluster"])
        for alias, reachable in supervisor.reachable.items():
            up.add_metric([alias], reachable)
        yield up
        leader = GaugeMetricFamily(f"{OURS}_leader", "Whether this worker leads the target.", labels=["cluster"])
        working = GaugeMetricFamily(f"{OURS}_target_ok", "Whether leader work has no problem.", labels=["cluster"])
        for alias, target in supervisor.targets.items():
            leader.add_metric([alias], target.leader)
            working.add_metric([alias], target.problem() is None)
        yield from (leader, working)

    def _leader_work(self, flows: list[FlowService]) -> Iterator[Metric]:
        """What only the leader of a flow's target knows."""
        beat = GaugeMetricFamily(f"{OURS}_heartbeat_age_seconds", "Since the target took the last one.", labels=FLOW)
        age = GaugeMetricFamily(f"{OURS}_checkpoint_age_seconds", "Since the last complete round.", labels=FLOW)
        groups = GaugeMetricFamily(f"{OURS}_checkpoint_groups", "Consumer groups that it translated.", labels=FLOW)
        wrong = GaugeMetricFamily(f"{OURS}_topic_problems", "What is wrong with settings and rights.", labels=FLOW)
        for flow in flows:
            target, labels = self._supervisor.targets[flow.config.target], _labels(flow)
            if (seconds := target.heartbeat_age(flow.config.source)) is not None:
                beat.add_metric(labels, seconds)
            checkpoints = target.checkpoints_of(flow.config.name)
            if checkpoints is not None and (seconds := checkpoints.age()) is not None:
                age.add_metric(labels, seconds)
                groups.add_metric(labels, checkpoints.groups.groups)
            if (sync := target.topics_of(flow.config.name)) is not None:
                wrong.add_metric(labels, len(sync.problems))
        yield from (beat, age, groups, wrong)


def _labels(flow: FlowService) -> tuple[str, str, str]:
    return flow.config.name, flow.config.source, flow.config.target


def _states(flows: list[FlowService]) -> Iterator[Metric]:
    state = GaugeMetricFamily(f"{OURS}_flow_state", "1 for the state that the flow is in.", labels=[*FLOW, "state"])
    owned = GaugeMetricFamily(f"{OURS}_flow_tasks_owned", "Tasks of the flow on this worker.", labels=FLOW)
    total = GaugeMetricFamily(f"{OURS}_flow_tasks", "Tasks of the flow in all.", labels=FLOW)
    blocked = GaugeMetricFamily(f"{OURS}_flow_held", "Topics and partitions that are held back.", labels=FLOW)
    for flow in flows:
        labels = _labels(flow)
        for name in STATES:
            state.add_metric([*labels, name], flow.flow_state == name)
        owned.add_metric(labels, len(flow.pipeline.share.tasks) if flow.pipeline else 0)
        total.add_metric(labels, flow.config.tasks)
        blocked.add_metric(labels, len(held(flow.pipeline)))
    yield from (state, owned, total, blocked)


def _counts(flows: list[FlowService]) -> Iterator[Metric]:
    names = {
        "commits": "Commits of tasks.",
        "rebalances": "Changes of this worker's share.",
        "fenced": "Tasks that another worker took over while they wrote.",
        "refusals": "Writes that the target refused for good.",
        "dead_letters": "Records set aside in the dead-letter topic.",
        "task_failures": "Tasks made anew after a failure.",
        "flow_failures": "Flows built anew after a failure.",
    }
    for name, text in names.items():
        family = CounterMetricFamily(f"{OURS}_{name}", text, labels=FLOW)
        for flow in flows:
            family.add_metric(_labels(flow), getattr(flow.counters, name))
        yield family
    records = CounterMetricFamily(f"{OURS}_records", "Records that the target acknowledged.", labels=FLOW)
    size = CounterMetricFamily(f"{OURS}_bytes", "Their bytes, keys and headers included.", labels=FLOW)
    losses = CounterMetricFamily(f"{OURS}_losses", "Losses found on the source or the target.", labels=[*FLOW, "kind"])
    for flow in flows:
        for family, count in zip((records, size), flow.totals(), strict=True):
            family.add_metric(_labels(flow), count)
        for kind, count in flow.counters.losses.items():
            losses.add_metric([*_labels(flow), kind], count)
    yield from (records, size, losses)


def _limits(flows: list[FlowService]) -> Iterator[Metric]:
    limit = GaugeMetricFamily(
        f"{OURS}_flow_limit_bytes_per_second", "This worker's part of the flow's limit.", labels=FLOW
    )
    held_back = GaugeMetricFamily(f"{OURS}_flow_limited", "Whether the limit holds the flow back now.", labels=FLOW)
    waited = CounterMetricFamily(f"{OURS}_limit_wait_seconds", "Time spent waiting for the limit.", labels=FLOW)
    for flow in flows:
        if (here := flow.pace.here) is not None:
            limit.add_metric(_labels(flow), here)
            held_back.add_metric(_labels(flow), flow.pace.held_back)
        waited.add_metric(_labels(flow), flow.pace.waited)
    yield from (limit, held_back, waited)


def _partitions(flows: list[FlowService]) -> Iterator[Metric]:
    lag = GaugeMetricFamily(f"{OURS}_lag_records", "Readable records that are not copied.", labels=PARTITION)
    age = GaugeMetricFamily(f"{OURS}_lag_seconds", "How old the oldest of them is at most.", labels=PARTITION)
    whole = GaugeMetricFamily(f"{OURS}_flow_lag_records", "Lag of this worker's partitions together.", labels=FLOW)
    worst_age = GaugeMetricFamily(f"{OURS}_flow_lag_seconds", "The longest lag among them.", labels=FLOW)
    names = ["source", "target", "topic", "partition"]
    count = CounterMetricFamily(f"{MIRROR}_record_count", "Records acknowledged, by remote topic.", labels=names)
    size = CounterMetricFamily(f"{MIRROR}_byte_count", "Their bytes, by remote topic.", labels=names)
    record_age = GaugeMetricFamily(f"{MIRROR}_record_age_ms", "Age of the newest copied record.", labels=names)
    latency = GaugeMetricFamily(f"{MIRROR}_replication_latency_ms", "Latency of the last batch.", labels=names)
    now = time.time()
    for flow in flows:
        rows = list(progress(flow))
        whole.add_metric(_labels(flow), sum(row.lag for row in rows))
        if (longest := worst(flow.counters, rows, now)) is not None:
            worst_age.add_metric(_labels(flow), longest)
        for row in rows:
            carried = flow.counters.of(row.source)
            labels = (*_labels(flow), row.source.topic, str(row.source.partition))
            lag.add_metric(labels, row.lag)
            if (seconds := carried.lag_seconds(row.lag, now)) is not None:
                age.add_metric(labels, seconds)
            mirror = (flow.config.source, flow.config.target, row.remote_topic, str(row.source.partition))
            count.add_metric(mirror, carried.records)
            size.add_metric(mirror, carried.bytes)
            if carried.newest is not None:
                record_age.add_metric(mirror, max(0.0, now - carried.newest) * 1000)
            if carried.latency is not None:
                latency.add_metric(mirror, carried.latency * 1000)
    yield from (lag, age, whole, worst_age, count, size, record_age, latency)


def _latency(flows: list[FlowService]) -> Metric:
    family = HistogramMetricFamily(
        f"{OURS}_replication_latency_seconds",
        "From a record's timestamp on the source to the target's acknowledgement.",
        labels=FLOW,
    )
    for flow in flows:
        histogram, running, buckets = flow.counters.latency, 0, []
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
            running += count
            buckets.append((bound, running))
        family.add_metric(_labels(flow), buckets, histogram.total)
    return family


class Metrics:
    """The page's text, from a registry of its own."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(FlowCollector(supervisor))

    def text(self) -> bytes:
        """Return what Prometheus reads."""
        return generate_latest(self._registry)
