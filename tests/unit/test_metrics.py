"""Metrics made from a flow's state, and the rules and panels in deploy/ that are built on their names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.core.records import TopicPartition
from app.metrics import FlowCollector
from app.observer import quantile
from app.runtime.counters import BOUNDS, Carried, Histogram
from tests.support.flows import a_flow, a_supervisor

DEPLOY = Path(__file__).parents[2] / "deploy"
TP = TopicPartition("orders", 3)
LEADERS = ("heartbeat_age_seconds", "checkpoint_age_seconds", "checkpoint_groups", "topic_problems")


def exported(flow: Any, *, leader: bool = True) -> dict[str, dict[str, float]]:
    registry = CollectorRegistry()
    registry.register(FlowCollector(a_supervisor(flow, leader=leader)))
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_what_a_partition_shows() -> None:
    found = exported(a_flow(TP))
    place = "flow=a__b,partition=3,source=a,target=b,topic=orders"
    assert found["krabka_replicator_lag_records"] == {place: 7.0}
    mirror = "partition=3,source=a,target=b,topic=a.orders"
    assert found["kafka_connect_mirror_mirrorsourceconnector_record_count_total"] == {mirror: 10.0}
    assert found["kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms"] == {mirror: 10_000.0}
    assert found["krabka_replicator_flow_held"] == {"flow=a__b,source=a,target=b": 1.0}
    assert found["krabka_replicator_losses_total"] == {"flow=a__b,kind=expired,source=a,target=b": 2.0}


def test_what_a_limit_shows() -> None:
    flow, place = a_flow(TP), "flow=a__b,source=a,target=b"
    found = exported(flow)
    assert found["krabka_replicator_flow_limit_bytes_per_second"] == {place: 1024.0}
    assert found["krabka_replicator_flow_limited"] == {place: 1.0}
    assert found["krabka_replicator_limit_wait_seconds_total"] == {place: 2.5}
    flow.pace.here = None
    assert "krabka_replicator_flow_limited" not in exported(flow)


def test_a_partition_that_moved_away_is_gone() -> None:
    flow = a_flow(TP)
    assert "krabka_replicator_lag_records" in exported(flow)
    flow.pipeline.share.tasks.clear()
    found = exported(flow)
    assert "krabka_replicator_lag_records" not in found
    assert "kafka_connect_mirror_mirrorsourceconnector_record_count_total" not in found
    assert found["krabka_replicator_flow_tasks_owned"] == {"flow=a__b,source=a,target=b": 0.0}


def test_partitions_come_and_go_with_their_tasks() -> None:
    other = TopicPartition("orders", 4)
    flow = a_flow(TP, other)
    both = exported(flow)["krabka_replicator_lag_records"]
    del flow.pipeline.share.tasks[1].routes[other]
    kept = exported(flow)["krabka_replicator_lag_records"]
    assert (len(both), list(kept)) == (2, ["flow=a__b,partition=3,source=a,target=b,topic=orders"])
    flow.pipeline = None
    assert "krabka_replicator_lag_records" not in exported(flow)


def test_only_the_leader_tells_of_heartbeats_checkpoints_and_topics() -> None:
    flow = a_flow(TP)
    found = exported(flow)
    told = {name: found[f"krabka_replicator_{name}"] for name in LEADERS}
    assert [list(values) for values in told.values()] == [["flow=a__b,source=a,target=b"]] * 4
    assert [value for values in told.values() for value in values.values()] == [1.5, 4.0, 3.0, 1.0]
    silent = exported(flow, leader=False)
    assert not {f"krabka_replicator_{name}" for name in LEADERS} & set(silent)


def test_a_flow_that_is_not_built_shows_its_state() -> None:
    flow = a_flow()
    flow.pipeline, flow.flow_state = None, "failed"
    found = exported(flow)
    states = {labels: value for labels, value in found["krabka_replicator_flow_state"].items() if value}
    assert states == {"flow=a__b,source=a,state=failed,target=b": 1.0}


@pytest.mark.parametrize(
    ("newest", "caught_up", "lag", "seconds"),
    [
        (None, None, 0, 0.0),
        (None, None, 5, None),
        (40.0, None, 5, 60.0),  # a backlog: as old as where the copying is
        (40.0, 95.0, 5, 5.0),  # nothing was left five seconds ago, so nothing waits longer
        (None, 90.0, 5, 10.0),
        (200.0, None, 5, 0.0),  # a producer's clock ahead of ours
    ],
)
def test_lag_in_seconds(newest: float | None, caught_up: float | None, lag: int, seconds: float | None) -> None:
    assert Carried(newest=newest, caught_up=caught_up).lag_seconds(lag, 100.0) == seconds


def test_a_quantile_is_its_bucket_s_bound() -> None:
    histogram = Histogram()
    histogram.observe(0.004, 90)
    histogram.observe(0.2, 10)
    assert quantile(histogram.counts, 0.5) == 0.005
    assert quantile(histogram.counts, 0.95) == 0.25
    assert quantile([0] * (len(BOUNDS) + 1), 0.95) is None


def names_in(expressions: list[str]) -> set[str]:
    return {name for text in expressions for name in re.findall(r"\b(?:krabka_replicator|kafka_connect)_\w+", text)}


def test_every_name_in_the_alert_rules_is_exported() -> None:
    document = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    used = names_in([rule["expr"] for rule in rules])
    assert {f"krabka_replicator_{name}" for name in LEADERS} - {"krabka_replicator_checkpoint_groups"} <= used
    assert used <= set(exported(a_flow(TP)))
    assert all({"summary", "action"} <= set(rule["annotations"]) for rule in rules)


def test_every_name_in_the_dashboard_is_exported() -> None:
    text = (DEPLOY / "grafana" / "dashboards" / "replicator.json").read_text()
    panels = json.loads(text)["panels"]
    used = names_in([target["expr"] for panel in panels for target in panel["targets"]])
    assert {f"krabka_replicator_{name}" for name in LEADERS} <= used
    assert used <= set(exported(a_flow(TP)))
    assert names_in([text]) <= set(exported(a_flow(TP)))
