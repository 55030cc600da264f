"""Metrics made from a flow's state, and the rules and panels in deploy/ that are built on their names."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.config import load_settings
from app.core.records import TopicPartition
from app.metrics import FlowCollector
from app.observer import quantile
from app.runtime.counters import BOUNDS, Carried, FlowCounters, Histogram

DEPLOY = Path(__file__).parents[2] / "deploy"
TP = TopicPartition("orders", 3)


def a_flow(*partitions: TopicPartition) -> Any:
    counters = FlowCounters(losses=Counter(expired=2))
    for tp in partitions:
        counters.acknowledged(tp, records=10, size=100, newest=90.0, now=100.0)
    routes = {tp: SimpleNamespace(target=TopicPartition("a." + tp.topic, tp.partition)) for tp in partitions}
    task = SimpleNamespace(number=1, routes=routes, committed=dict.fromkeys(partitions, 5))
    pipeline = SimpleNamespace(
        share=SimpleNamespace(tasks={1: task}, refusals=SimpleNamespace(reasons={})),
        partitions=SimpleNamespace(
            beginnings=SimpleNamespace(held={}), catalog=SimpleNamespace(refused={}), refused={"broken": "why"}
        ),
        ends={},
        reader=SimpleNamespace(end=lambda _: SimpleNamespace(readable=12, written=12)),
    )
    return SimpleNamespace(
        config=SimpleNamespace(name="a__b", source="a", target="b", tasks=8),
        flow_state="running",
        counters=counters,
        pipeline=pipeline,
        totals=lambda: (10, 100),
        pace=SimpleNamespace(here=1024.0, held_back=True, waited=2.5),
    )


def exported(flow: Any) -> dict[str, dict[str, float]]:
    target = SimpleNamespace(leader=True, problem=lambda: None)
    supervisor: Any = SimpleNamespace(flows={"a__b": flow}, reachable={"a": True}, targets={"b": target})
    registry = CollectorRegistry()
    registry.register(FlowCollector(supervisor))
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
    assert len(rules) > 5
    assert used <= set(exported(a_flow(TP)))
    assert all({"summary", "action"} <= set(rule["annotations"]) for rule in rules)


def test_every_name_in_the_dashboard_is_exported() -> None:
    text = (DEPLOY / "grafana" / "dashboards" / "replicator.json").read_text()
    panels = json.loads(text)["panels"]
    used = names_in([target["expr"] for panel in panels for target in panel["targets"]])
    assert len(used) > 10
    assert used <= set(exported(a_flow(TP)))
    assert names_in([text]) <= set(exported(a_flow(TP)))


def test_compose_agrees_with_the_code() -> None:
    root = DEPLOY.parent
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    replicator = services["replicator"]
    assert (root / replicator["build"]["dockerfile"]).is_file()
    for service in services.values():
        for volume in service.get("volumes", ()):
            assert (root / volume.split(":")[0]).exists(), volume
    settings = load_settings(DEPLOY / "replicator.yaml", {"REPLICATOR_TOKEN": "0123456789abcdef"})
    hosts = {cluster.bootstrap.split(":")[0] for cluster in settings.clusters.values()}
    assert hosts <= set(services)
    for host in hosts:
        assert f"INSIDE://{host}:9092" in services[host]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert set(replicator["environment"]) == {"KRABKA_REPLICATOR_CONFIG", "REPLICATOR_TOKEN"}
    mounted = {volume.split(":")[1] for volume in replicator["volumes"]}
    assert replicator["environment"]["KRABKA_REPLICATOR_CONFIG"] in mounted
    port = re.search(r'"--web-port", "(\d+)"', dockerfile)
    assert port is not None
    assert f"EXPOSE {port[1]}" in dockerfile
    assert all(entry.endswith(f":{port[1]}") for entry in replicator["ports"])
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]["dns_sd_configs"][0]
    assert (scraped["names"], scraped["port"]) == (["replicator"], int(port[1]))
    assert re.search(r"^USER (?!root|0)\w+", dockerfile, re.MULTILINE)
