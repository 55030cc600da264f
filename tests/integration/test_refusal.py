"""Records that the target refuses hold their partition and nothing else, until somebody changes something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.support.records import create_topic, numbered, produce, read_all, wait_for_count

pytestmark = pytest.mark.integration

Bad = Callable[[], dict[str, Any]]


def set_config(bootstrap: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.incremental_alter_configs([resource])[resource].result(20)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize(
    ("config", "record", "remedy"),
    [
        (("max.message.bytes", "2000", "3000000"), {"value": b"x" * 100_000}, "max.message.bytes"),
        (
            ("message.timestamp.before.max.ms", "60000", "9000000000000"),
            {"value": b"old", "timestamp": 1000},
            "message.timestamp.before.max.ms",
        ),
        (("cleanup.policy", "compact", "delete"), {"value": b"no key", "key": None}, "cleanup.policy=compact"),
    ],
    ids=["too large", "too old", "no key"],
)
def test_a_refused_record_holds_its_partition_alone(scene, unique, delivery, config, record, remedy):
    """failures.md B42, B53, B54."""
    topic, other = f"no-{unique}", f"no-{unique}-other"
    flow = scene([f"no-{unique}*"], delivery=delivery, tasks=1, sync={"topic_configs": False})
    name, refusing, taking = config
    create_topic(flow.source, topic, 2)
    create_topic(flow.source, other)
    create_topic(flow.target, flow.remote(topic), 2, **{name.replace(".", "_"): refusing})
    now = int(time.time() * 1000)
    small = {"key": b"k", "value": b"1", "partition": 0, "timestamp": now}
    produce(flow.source, topic, [small, {"key": b"k", "partition": 0, "timestamp": now, **record}, small])
    produce(flow.source, topic, [{**small, "partition": 1, "value": b"%d" % n} for n in range(3)])
    produce(flow.source, other, numbered(5))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(other), 5)
    held = worker.wait(lambda: (f := worker.flow(flow.flow)) and f["held"] and f["held"], what="held")
    assert held.keys() == {f"{topic}-0"}
    assert remedy in held[f"{topic}-0"]
    produce(flow.source, other, numbered(5, start=5))
    wait_for_count(flow.target, flow.remote(other), 10)
    time.sleep(4)  # tried again meanwhile
    rows = [record for record in read_all(flow.target, flow.remote(topic)) if record.partition == 0]
    assert all(row.value == b"1" for row in rows)
    assert len(rows) <= 1 or delivery == "at-least-once"
    others = [int(r.value) for r in read_all(flow.target, flow.remote(other))]
    assert sorted(set(others)) == list(range(10))
    if delivery == "exactly-once":
        assert len(others) == 10
    tries = worker.log.count("task 0 again")
    assert tries <= 6

    set_config(flow.target, flow.remote(topic), name, taking)
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0 and not worker.flow(flow.flow)["held"], 40, "going on")
    copied = [record.value for record in read_all(flow.target, flow.remote(topic)) if record.partition == 0]
    expected = [b"1", record["value"], b"1"]
    assert copied[-3:] == expected
    if delivery == "exactly-once":
        assert copied == expected


def test_several_refused_partitions_of_a_task_do_not_starve_the_others(scene, unique):
    topic, other = f"many-{unique}", f"many-{unique}-other"
    flow = scene([f"many-{unique}*"], delivery="exactly-once", tasks=1, sync={"topic_configs": False})
    create_topic(flow.source, topic, 4)
    create_topic(flow.source, other)
    create_topic(flow.target, flow.remote(topic), 4, message_timestamp_before_max_ms="60000")
    produce(flow.source, topic, [{"value": b"old", "timestamp": 1000, "partition": n} for n in range(4)])
    produce(flow.source, other, numbered(5))
    worker = flow.start()
    assert len(wait_for_count(flow.target, flow.remote(other), 5)) == 5
    worker.wait(lambda: len(worker.flow(flow.flow).get("held", ())) == 4, what="all four held")


def test_the_limits_follow_the_topic_s_own(scene, unique):
    """failures.md B54: large records where the topic allows them, small batches where it allows no more."""
    large, narrow = f"size-{unique}-large", f"size-{unique}-narrow"
    flow = scene([f"size-{unique}*"])
    create_topic(flow.source, large, max_message_bytes="3000000")
    create_topic(flow.source, narrow, max_message_bytes="10000")
    options = {"message.max.bytes": 4_000_000}
    values = [b"0", b"x" * 2_500_000, b"1"]
    produce(flow.source, large, [{"value": value} for value in values], **options)
    produce(flow.source, narrow, [{"value": b"y" * 400} for _ in range(500)], **{"batch.size": 9000})
    flow.start()
    assert [r.value for r in wait_for_count(flow.target, flow.remote(large), 3)] == values
    assert len(wait_for_count(flow.target, flow.remote(narrow), 500)) == 500
