"""Look-alike names, heartbeats, and what is kept on the target (failures.md B20, B28, B31 to B34, B48)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from app.core.formats import Heartbeat, Position, position_key
from app.core.tasks import POSITION_SLOTS, slot_of
from app.runtime.task import POSITIONS_TOPIC
from tests.support.records import by_partition, create_topic, end_offsets, numbered, produce, read_all, topics
from tests.support.records import wait_for_count as wait
from tests.support.worker import Worker, write_config

pytestmark = pytest.mark.integration


def test_two_exactly_once_flows_into_one_target_do_not_fence_each_other(clusters, third, unique, tmp_path: Path):
    """B20: transactional ids name the flow and the task."""
    a, b, c, topic = f"a-{unique}", f"b-{unique}", f"c-{unique}", f"two-{unique}"
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap, c: third.bootstrap}
    flows = [
        {"from": source, "to": b, "topics": {"include": [topic]}, "delivery": "exactly-once", "tasks": 2}
        for source in (a, c)
    ]
    for source in (a, c):
        create_topic(addresses[source], topic, 2)
        produce(addresses[source], topic, numbered(1000, 2))
    with Worker(write_config(tmp_path, addresses, flows), tmp_path) as worker:
        for source in (a, c):
            copied = wait(addresses[b], f"{source}.{topic}", 1000)
            assert sorted(int(record.value) for record in copied) == list(range(1000))
            assert worker.flow(f"{source}__{b}")["counts"]["fenced"] == 0


def test_everything_selected_both_ways_copies_users_topics_and_nothing_else(make_broker, unique, tmp_path: Path):
    """B28, B31, B32: working topics stay where they are, also Faust's and MirrorMaker 2's; heartbeats keep apart."""
    brokers = [make_broker(), make_broker()]
    for broker in brokers:
        broker.start()
    for broker in brokers:
        broker.wait_ready()
    a, b = "A", "B"
    users = ["a", "x-__y", "billing.internal", "notes-internal", "mm2x"]
    working = ["mm2-offset-syncs.A.internal", "C.checkpoints.internal", "app-__assignor-__leader", "__strimzi_canary"]
    for topic in users + working:
        create_topic(brokers[0].bootstrap, topic)
        produce(brokers[0].bootstrap, topic, [{"key": b"k", "value": b"v"}])
    flows = [
        {"from": a, "to": b, "naming": "identity", "topics": {"include": ["*"]}},
        {"from": b, "to": a, "naming": "default", "topics": {"include": ["*"]}},
    ]
    addresses = {a: brokers[0].bootstrap, b: brokers[1].bootstrap}
    with Worker(write_config(tmp_path, addresses, flows), tmp_path) as worker:
        for topic in users:
            assert len(wait(addresses[b], topic, 1)) == 1
        wait(addresses[b], "A.heartbeats", 3)
        worker.wait(lambda: worker.flow("B__A").get("lag") == 0, 20, "the way back has nothing to do")
        time.sleep(3)
        ours = ("krabka-replicator", "__")
        on_b = {name for name in topics(addresses[b]) if not name.startswith(ours)}
        assert on_b == {
            *users,
            "heartbeats",
            "A.heartbeats",
            "mm2-offset-syncs.A.internal",  # of the flow A to B, written here
            "A.checkpoints.internal",
        }
        on_a = {name for name in topics(addresses[a]) if not name.startswith(ours)} - set(working)
        # On B nothing in a name tells that it came from A, but the records do: their way back is empty.
        back = {f"B.{topic}" for topic in users}
        own = {"heartbeats", "B.heartbeats", "mm2-offset-syncs.B.internal", "B.checkpoints.internal"}
        assert on_a == {*users, *own, *back}
        assert not [record for topic in back for record in read_all(addresses[a], topic)]
        hidden = {"mm2-offset-syncs.A.internal", "app-__assignor-__leader"}
        assert hidden <= set(worker.flow("A__B")["not_selected"])
        assert all(record.value is not None for record in read_all(addresses[b], "A.heartbeats"))
        beats = [Heartbeat.decode(r.key, r.value) for r in read_all(addresses[b], "A.heartbeats")]
        assert {(beat.source, beat.target) for beat in beats} == {(b, a)}, "only beats that were written on A"


def test_names_that_glue_together_alike_are_kept_apart(scene, unique):
    """B34: `a` partition 12, `a-1` partition 2 and `a-1-2` partition 0, over a restart."""
    names = {f"{unique}": (13, 12), f"{unique}-1": (3, 2), f"{unique}-1-2": (1, 0)}
    flow = scene(list(names))
    for name, (partitions, _) in names.items():
        create_topic(flow.source, name, partitions)
    for count in (1, 2):
        for name, (_, partition) in names.items():
            produce(flow.source, name, [{"value": name.encode(), "partition": partition}])
        worker = flow.start()
        for name in names:
            wait(flow.target, flow.remote(name), count)
        assert worker.stop() == 0
    for name, (_, partition) in names.items():
        found = by_partition(read_all(flow.target, flow.remote(name)))
        assert {p: [r.value for r in records] for p, records in found.items()} == {partition: [name.encode()] * 2}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_positions_are_found_in_a_large_log_with_holes(make_broker, clusters, unique, scene, delivery):
    """B48: 100 000 positions of others, a head that is deleted, tombstones at the end, empty slots."""
    target = make_broker()
    target.start()
    target.wait_ready()
    topic = f"state-{unique}"
    flow = scene([topic], target=target.bootstrap, delivery=delivery)
    create_topic(target.bootstrap, POSITIONS_TOPIC, POSITION_SLOTS, cleanup_policy="compact,delete")
    others = [("x__y", f"old-{n}", 0) for n in range(100_000)]
    produce(
        target.bootstrap,
        POSITIONS_TOPIC,
        (
            {"key": position_key(*key), "value": Position(offset=n, tasks=8).value(), "partition": slot_of(*key) // 2}
            for n, key in enumerate(others)
        ),
    )
    halves = [
        TopicPartition(POSITIONS_TOPIC, p, end // 2)
        for p, end in end_offsets(target.bootstrap, POSITIONS_TOPIC).items()
    ]
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    for future in admin.delete_records([tp for tp in halves if tp.offset]).values():
        future.result(20)
    create_topic(flow.source, topic, 3)
    for round_ in range(3):
        produce(flow.source, topic, numbered(30, 3, 30 * round_))
        worker = flow.start()
        begun = time.monotonic()
        wait(flow.target, flow.remote(topic), 30 * (round_ + 1))
        assert time.monotonic() - begun < 30
        worker.wait_running(flow.flow)
        assert worker.stop() == 0
        produce(
            target.bootstrap,
            POSITIONS_TOPIC,
            ({"key": position_key(*key), "value": None, "partition": slot_of(*key) // 2} for key in others[:100]),
        )
    copied = [int(record.value) for record in read_all(flow.target, flow.remote(topic))]
    assert sorted(copied) == list(range(90))
