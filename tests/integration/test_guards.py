"""Residency, loops, static members, and Faust's side not being in the data's way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.support.records import create_topic, numbered, produce, read_all, topics, wait_for_count
from tests.support.worker import Worker, write_config

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_topic_kept_back_leaves_nothing_on_the_target(make_broker, clusters, unique, tmp_path: Path, delivery):
    target = make_broker()
    target.start()
    target.wait_ready()
    a, b, secret, open_topic = f"a-{unique}", f"b-{unique}", f"customers-{unique}", f"open-{unique}"
    addresses = {
        a: {"bootstrap": clusters.source.bootstrap, "zones": ["eu"]},
        b: {"bootstrap": target.bootstrap, "zones": ["us"]},
    }
    flow = {"from": a, "to": b, "topics": {"include": [f"*-{unique}"]}, "delivery": delivery}
    policy = {"name": "gdpr", "topics": ["customers*"], "residency": {"allow_zones": ["eu"]}}
    for topic in (secret, open_topic):
        create_topic(clusters.source.bootstrap, topic, 2)
        produce(clusters.source.bootstrap, topic, numbered(50, 2))
    with Worker(write_config(tmp_path, addresses, [flow], policies=[policy]), tmp_path) as worker:
        wait_for_count(target.bootstrap, f"{a}.{open_topic}", 50)
        time.sleep(3)
        why = worker.flow(f"{a}__{b}")["not_selected"][secret]
        assert why == "policy 'gdpr' allows only eu, the target is in us"
        assert worker.stop() == 0
    for topic in topics(target.bootstrap):
        assert secret not in topic
        if topic != "__consumer_offsets":
            for record in read_all(target.bootstrap, topic, isolation="read_uncommitted"):
                assert secret.encode() not in (record.key or b"") + (record.value or b""), topic
    assert all(secret.encode() not in segment.read_bytes() for segment in target.directory.glob("data/*/*.log"))


def test_identity_in_a_ring_of_three_brings_nothing_home(clusters, third, unique, tmp_path: Path):
    a, b, c, topic = f"a-{unique}", f"b-{unique}", f"c-{unique}", f"ring-{unique}"
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap, c: third.bootstrap}
    flows = [
        {"from": one, "to": other, "topics": {"include": [topic]}, "naming": "identity", "delivery": "exactly-once"}
        for one, other in ((a, b), (b, c), (c, a))
    ]
    for number, address in enumerate(addresses.values()):
        create_topic(address, topic)
        produce(address, topic, numbered(10, start=100 * number))
    with Worker(write_config(tmp_path, addresses, flows), tmp_path):
        for address in addresses.values():
            wait_for_count(address, topic, 30)
        time.sleep(4)
        for address in addresses.values():
            numbers = sorted(int(record.value) for record in read_all(address, topic))
            assert numbers == [*range(10), *range(100, 110), *range(200, 210)]


def test_names_hidden_on_the_way_out_do_not_bring_records_home(clusters, unique, tmp_path: Path):
    a, b, topic = f"a-{unique}", f"b-{unique}", f"hidden-{unique}"
    flows = [
        {"from": a, "to": b, "topics": {"include": [topic]}, "naming": {"map": {topic: f"renamed-{unique}"}}},
        {"from": b, "to": a, "topics": {"include": [f"*-{unique}"]}},
    ]
    create_topic(clusters.source.bootstrap, topic)
    produce(clusters.source.bootstrap, topic, numbered(10))
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap}
    with Worker(write_config(tmp_path, addresses, flows), tmp_path) as worker:
        wait_for_count(clusters.target.bootstrap, f"renamed-{unique}", 10)
        produce(clusters.target.bootstrap, f"renamed-{unique}", [{"value": b"local"}])
        (only,) = wait_for_count(clusters.source.bootstrap, f"{b}.renamed-{unique}", 1)
        worker.wait(lambda: worker.flow(f"{b}__{a}")["lag"] == 0)
        time.sleep(2)
        assert only.value == b"local"
        assert len(read_all(clusters.source.bootstrap, f"{b}.renamed-{unique}")) == 1


def test_a_static_member_keeps_its_tasks_over_a_restart(scene, unique):
    topic = f"static-{unique}"
    flow = scene([topic], tasks=4, delivery="exactly-once")
    create_topic(flow.source, topic, 4)
    one = flow.start("one", KRABKA_REPLICATOR_GROUP_INSTANCE_ID="one")
    two = flow.start("two", KRABKA_REPLICATOR_GROUP_INSTANCE_ID="two")

    def owned(worker: Worker) -> list[int]:
        return worker.flow(flow.flow).get("tasks", {}).get("owned", [])

    one.wait(lambda: len(owned(one)) == 2 and len(owned(two)) == 2, 40, "two tasks each")
    before = owned(one)
    assert one.stop() == 0
    time.sleep(1)
    assert len(owned(two)) == 2
    one = flow.start("one", KRABKA_REPLICATOR_GROUP_INSTANCE_ID="one")
    one.wait(lambda: owned(one) == before, 20, "the same tasks")
    assert sorted(owned(one) + owned(two)) == [0, 1, 2, 3]
    produce(flow.source, topic, numbered(40, 4))
    assert len(wait_for_count(flow.target, flow.remote(topic), 40)) == 40


def test_faust_group_that_cannot_be_joined_shows_in_health_and_data_goes_on(scene, unique):
    topic = f"faust-{unique}"
    flow = scene([topic], more={"runtime": {"group_session_timeout": "6s"}})
    create_topic(flow.source, topic)
    create_topic(flow.target, f"squatted-{unique}")
    squatter = Consumer({"bootstrap.servers": flow.target, "group.id": f"krabka-replicator-{flow.target_alias}"})
    squatter.subscribe([f"squatted-{unique}"])
    deadline = time.monotonic() + 20
    while not squatter.assignment():
        assert time.monotonic() < deadline
        squatter.poll(0.2)
    try:
        worker = flow.start()
        for start in range(0, 50, 10):
            produce(flow.source, topic, numbered(10, start=start))
            wait_for_count(flow.target, flow.remote(topic), start + 10)
            squatter.poll(0.5)

        def complaint() -> list[str]:
            squatter.poll(0.1)
            return [reason for reason in worker.get("/health")[1]["reasons"] if flow.target_alias in reason]

        assert worker.wait(complaint, 40, "a reason in /health")
        assert worker.flow(flow.flow)["state"] == "running"
    finally:
        squatter.close()
