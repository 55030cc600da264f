"""What everyone expects of a replicator, on two real brokers and a real worker process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.records import (
    by_partition,
    create_topic,
    numbered,
    produce,
    read_all,
    topics,
    wait_for_count,
)
from tests.support.worker import Worker, write_config

pytestmark = pytest.mark.integration

DELIVERIES = pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])


@DELIVERIES
def test_topic_arrives_with_its_partitions_in_order_and_restart_copies_nothing_again(scene, unique, delivery):
    orders = f"orders-{unique}"
    flow = scene([orders], delivery=delivery)
    create_topic(flow.source, orders, 3)
    produce(flow.source, orders, numbered(3000, 3))
    worker = flow.start()
    copied = by_partition(wait_for_count(flow.target, flow.remote(orders), 3000))
    assert topics(flow.target)[flow.remote(orders)] == 3
    for partition, records in copied.items():
        assert [int(record.value) for record in records] == list(range(partition, 3000, 3))

    status = worker.wait(lambda: (f := worker.flow(flow.flow)) and f["lag"] == 0 and f["records"] and f)
    ours = [(p["partition"], p["position"]) for p in status["partitions"] if p["topic"] == orders]
    assert ours == [(0, 1000), (1, 1000), (2, 1000)]
    begun = time.monotonic()
    assert worker.stop() == 0
    assert time.monotonic() - begun < 10

    for extra in range(2):
        worker = flow.start()
        worker.wait_running(flow.flow)
        produce(flow.source, orders, numbered(3, 3, 3000 + 3 * extra))
        wait_for_count(flow.target, flow.remote(orders), 3003 + 3 * extra)
        assert worker.stop() == 0
    values = sorted(int(record.value) for record in read_all(flow.target, flow.remote(orders)))
    assert values == list(range(3006))


ODD_RECORDS: list[dict[str, Any]] = [
    {"key": None, "value": None},
    {"key": b"", "value": b""},
    {"key": b"tombstone", "value": None},
    {"key": None, "value": b"no key"},
    {"key": b"\x00\xff\xfe", "value": bytes(range(256))},
    {"key": b"h", "value": b"v", "headers": [("a", b"1"), ("a", b"2"), ("", b"empty name"), ("n", None), ("e", b"")]},
    {"key": b"own", "value": b"v", "headers": [("__krabka_origin", b"elsewhere")]},
    {"key": "ümlaut".encode(), "value": "日本".encode(), "headers": [("ключ", "значение".encode())]},
    {"key": b"big", "value": b"x" * 700_000},
]


@DELIVERIES
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_keep_every_byte(scene, unique, delivery, codec):
    topic = f"odd-{unique}"
    flow = scene([topic], delivery=delivery)
    create_topic(flow.source, topic)
    produce(
        flow.source,
        topic,
        [record | {"timestamp": 1000 + n} for n, record in enumerate(ODD_RECORDS)],
        **{"compression.type": codec},
    )
    flow.start()
    copied = wait_for_count(flow.target, flow.remote(topic), len(ODD_RECORDS))
    assert len(copied) == len(ODD_RECORDS)
    for number, (record, original) in enumerate(zip(copied, ODD_RECORDS, strict=True)):
        assert record.timestamp == 1000 + number
        assert (record.key, record.value) == (original["key"], original["value"])
        origin = ("__krabka_origin", flow.source_alias.encode())
        assert record.headers == (*original.get("headers", ()), origin)


def test_sigkill_loses_nothing(scene, unique):
    topic = f"killed-{unique}"
    flow = scene([topic], tasks=4)
    create_topic(flow.source, topic, 4)
    produce(flow.source, topic, numbered(20_000, 4))
    worker = flow.start("first")
    worker.wait(lambda: worker.flow(flow.flow).get("records"), what="first records")
    worker.kill()
    produce(flow.source, topic, numbered(20_000, 4, 20_000))
    flow.start("second")
    wait_for_count(flow.target, flow.remote(topic), 40_000, 40)
    time.sleep(1)
    for partition, records in by_partition(read_all(flow.target, flow.remote(topic))).items():
        first_seen = list(dict.fromkeys(int(record.value) for record in records))
        assert first_seen == list(range(partition, 40_000, 4))


@DELIVERIES
def test_two_workers_share_and_one_is_killed(scene, unique, delivery):
    topic = f"shared-{unique}"
    flow = scene([topic], delivery=delivery, tasks=12)
    create_topic(flow.source, topic, 12)
    one, two = flow.start("one"), flow.start("two")
    one.wait(lambda: len(one.flow(flow.flow).get("tasks", {}).get("owned", ())) == 6, what="half of the tasks")
    two.wait(lambda: len(two.flow(flow.flow).get("tasks", {}).get("owned", ())) == 6, what="half of the tasks")
    produce(flow.source, topic, numbered(12_000, 12))
    wait_for_count(flow.target, flow.remote(topic), 12_000)
    shares = [
        {p["partition"] for p in worker.flow(flow.flow)["partitions"] if p["topic"] == topic} for worker in (one, two)
    ]
    assert len(shares[0]) == len(shares[1]) == 6
    assert not shares[0] & shares[1]

    two.kill()
    produce(flow.source, topic, numbered(12_000, 12, 12_000))
    one.wait(lambda: len(one.flow(flow.flow)["tasks"]["owned"]) == 12, 20, "all tasks after the kill")
    wait_for_count(flow.target, flow.remote(topic), 24_000)
    copied = read_all(flow.target, flow.remote(topic))
    for partition, records in by_partition(copied).items():
        numbers = [int(record.value) for record in records]
        assert list(dict.fromkeys(numbers)) == list(range(partition, 24_000, 12))
        if delivery == "exactly-once":
            assert len(numbers) == 2000


@pytest.mark.parametrize("naming", ["default", "identity"])
def test_both_directions_do_not_loop(clusters, unique, tmp_path: Path, naming):
    a, b, topic = f"a-{unique}", f"b-{unique}", f"both-{unique}"
    flows = [
        {"from": a, "to": b, "topics": {"include": [f"*{topic}"]}, "naming": naming},
        {"from": b, "to": a, "topics": {"include": [f"*{topic}"]}, "naming": naming},
    ]
    config = write_config(tmp_path, {a: clusters.source.bootstrap, b: clusters.target.bootstrap}, flows)
    for broker, count in ((clusters.source, 10), (clusters.target, 5)):
        create_topic(broker.bootstrap, topic)
        produce(broker.bootstrap, topic, numbered(count, start=count * 100))
    with Worker(config, tmp_path) as worker:
        worker.wait_running(f"{a}__{b}")
        worker.wait_running(f"{b}__{a}")
        names = (topic, topic) if naming == "identity" else (f"{b}.{topic}", f"{a}.{topic}")
        expected = (15, 15) if naming == "identity" else (5, 10)
        wait_for_count(clusters.source.bootstrap, names[0], expected[0])
        wait_for_count(clusters.target.bootstrap, names[1], expected[1])
        time.sleep(4)  # several refreshes: a loop would show now
        assert len(read_all(clusters.source.bootstrap, names[0])) == expected[0]
        assert len(read_all(clusters.target.bootstrap, names[1])) == expected[1]
        for broker in (clusters.source, clusters.target):
            assert f"{a}.{b}.{topic}" not in topics(broker.bootstrap)
            assert f"{b}.{a}.{topic}" not in topics(broker.bootstrap)
        origins = {r.headers for r in read_all(clusters.source.bootstrap, topic)}
        expected_origins = {(), (("__krabka_origin", b.encode()),)} if naming == "identity" else {()}
        assert origins == expected_origins


def test_target_down_at_start_and_other_flow_unharmed(clusters, make_broker, unique, tmp_path: Path):
    """failures.md B39."""
    late = make_broker()
    late.start()
    late.wait_ready()
    late.stop()
    a, b, c, topic = f"a-{unique}", f"b-{unique}", f"c-{unique}", f"late-{unique}"
    flows = [{"from": a, "to": c, "topics": {"include": [topic]}}, {"from": a, "to": b, "topics": {"include": [topic]}}]
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap, c: late.bootstrap}
    config = write_config(tmp_path, addresses, flows)
    create_topic(clusters.source.bootstrap, topic, 2)
    produce(clusters.source.bootstrap, topic, numbered(100, 2))
    with Worker(config, tmp_path) as worker:
        wait_for_count(clusters.target.bootstrap, f"{a}.{topic}", 100)
        begun = time.monotonic()
        code, status = worker.get("/status")
        assert time.monotonic() - begun < 2
        assert code == 200
        assert status["clusters"][c]["reachable"] is False
        code, health = worker.get("/health")
        assert code == 503
        assert any(f"{a}__{c}" in reason for reason in health["reasons"])
        late.start()
        late.wait_ready()
        wait_for_count(late.bootstrap, f"{a}.{topic}", 100, 45)
        worker.wait(lambda: worker.get("/health")[0] == 200, 30, "healthy")
