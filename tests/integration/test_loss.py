"""Losses on real brokers are named, held or gone on behind; where a flow begins."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.records import create_topic, numbered, produce, read_all, wait_for_count
from tests.support.worker import Worker

pytestmark = pytest.mark.integration


def delete(bootstrap: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.delete_topics([topic])[topic].result(20)


def expire(bootstrap: str, topic: str, before: int) -> None:
    """Delete a partition's records before an offset, as retention does."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    for done in client.delete_records([TopicPartition(topic, 0, before)]).values():
        done.result(20)


def values(bootstrap: str, topic: str) -> list[int]:
    return [int(record.value) for record in read_all(bootstrap, topic)]


def carried(worker: Worker, flow: Any, records: int) -> None:
    """Wait until so many records are copied and committed."""
    worker.wait(lambda: (f := worker.flow(flow.flow)) and f["records"] >= records and f["lag"] == 0, what="all copied")


def losses(worker: Worker, flow: Any, kind: str) -> list[dict[str, Any]]:
    return [loss for loss in worker.flow(flow.flow).get("losses", ()) if loss["kind"] == kind]


DELIVERIES = pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])


@DELIVERIES
def test_a_target_that_was_wiped_is_filled_again(scene, unique, delivery):
    """failures.md B45."""
    topic = f"wiped-{unique}"
    flow = scene([topic], delivery=delivery)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(100))
    worker = flow.start()
    carried(worker, flow, 100)
    assert worker.stop() == 0
    delete(flow.target, flow.remote(topic))
    produce(flow.source, topic, numbered(1, start=100))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 101)
    assert values(flow.target, flow.remote(topic)) == list(range(101))
    (loss,) = losses(worker, flow, "target-emptied")
    assert (loss["topic"], loss["partition"], loss["first"], loss["last"]) == (topic, 0, 0, 99)


@DELIVERIES
def test_a_target_topic_that_is_deleted_under_an_idle_flow_is_made_and_filled_again(scene, unique, delivery):
    topic, other = f"vanishes-{unique}", f"vanishes-{unique}-other"
    flow = scene([f"vanishes-{unique}*"], delivery=delivery, tasks=1)
    for name in (topic, other):
        create_topic(flow.source, name)
        produce(flow.source, name, numbered(30))
    worker = flow.start()
    carried(worker, flow, 60)
    delete(flow.target, flow.remote(topic))
    wait_for_count(flow.target, flow.remote(topic), 30)
    carried(worker, flow, 90)
    assert values(flow.target, flow.remote(topic)) == list(range(30))
    assert values(flow.target, flow.remote(other)) == list(range(30))
    (loss,) = losses(worker, flow, "target-emptied")
    assert (loss["topic"], loss["first"], loss["last"]) == (topic, 0, 29)


def test_a_target_topic_that_others_made_anew_and_filled_further_is_no_copy(scene, unique):
    topic = f"usurped-{unique}"
    flow = scene([topic], delivery="exactly-once")
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(20))
    worker = flow.start()
    carried(worker, flow, 20)
    assert worker.stop() == 0
    delete(flow.target, flow.remote(topic))
    time.sleep(1)
    create_topic(flow.target, flow.remote(topic))
    produce(flow.target, flow.remote(topic), numbered(50, start=1000))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 70)
    assert values(flow.target, flow.remote(topic)) == [*range(1000, 1050), *range(20)]
    (loss,) = losses(worker, flow, "target-emptied")
    assert (loss["first"], loss["last"]) == (0, 19)


@pytest.mark.parametrize("records", [5, 50])
def test_a_source_topic_that_was_created_anew_is_copied_from_its_start(scene, unique, records):
    topic = f"anew-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(20))
    worker = flow.start()
    carried(worker, flow, 20)
    assert worker.stop() == 0
    delete(flow.source, topic)
    time.sleep(1)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(records, start=1000))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 20 + records)
    assert values(flow.target, flow.remote(topic)) == [*range(20), *range(1000, 1000 + records)]
    assert [loss["topic"] for loss in losses(worker, flow, "recreated")] == [topic]


def test_a_source_topic_that_is_created_anew_while_the_flow_runs(scene, unique):
    topic = f"live-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(20))
    worker = flow.start()
    carried(worker, flow, 20)
    delete(flow.source, topic)
    worker.wait(lambda: not [p for p in worker.flow(flow.flow)["partitions"] if p["topic"] == topic], what="gone")
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(5, start=1000))
    wait_for_count(flow.target, flow.remote(topic), 25)
    assert values(flow.target, flow.remote(topic)) == [*range(20), *range(1000, 1005)]
    assert [loss["topic"] for loss in losses(worker, flow, "recreated")] == [topic]


def test_records_that_expired_before_they_were_copied_are_named(scene, unique):
    topic = f"late-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(10))
    worker = flow.start()
    carried(worker, flow, 10)
    assert worker.stop() == 0
    produce(flow.source, topic, numbered(20, start=10))
    expire(flow.source, topic, 25)
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 15)
    assert values(flow.target, flow.remote(topic)) == [*range(10), *range(25, 30)]
    (loss,) = losses(worker, flow, "expired")
    assert (loss["first"], loss["last"], loss["resume"]) == (10, 24, 25)
    assert f"{topic}-0: offsets 10 to 24 are gone from the source before they were copied" in worker.log


def test_a_loss_holds_the_partition_when_the_flow_says_stop(scene, unique):
    topic, other = f"stop-{unique}", f"stop-{unique}-other"
    flow = scene([f"stop-{unique}*"], on_loss="stop")
    for name in (topic, other):
        create_topic(flow.source, name)
        produce(flow.source, name, numbered(10))
    worker = flow.start()
    carried(worker, flow, 20)
    assert worker.stop() == 0
    produce(flow.source, topic, numbered(20, start=10))
    expire(flow.source, topic, 25)
    produce(flow.source, other, numbered(5, start=10))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(other), 15)
    held = worker.wait(lambda: worker.flow(flow.flow)["held"])
    assert "offsets 10 to 24" in held[f"{topic}-0"]
    time.sleep(3)
    assert values(flow.target, flow.remote(topic)) == list(range(10))
    assert worker.log.count("offsets 10 to 24") == 1


@DELIVERIES
def test_a_flow_that_starts_at_the_end_copies_what_comes_and_topics_born_later_in_full(scene, unique, delivery):
    """failures.md B46."""
    old, quiet, born = f"end-{unique}", f"end-{unique}-quiet", f"end-{unique}-born"
    flow = scene([f"end-{unique}*"], start="latest", delivery=delivery)
    for name in (old, quiet):
        create_topic(flow.source, name)
        produce(flow.source, name, numbered(10))
    worker = flow.start()
    ready = lambda: len([p for p in worker.flow(flow.flow).get("partitions", ()) if unique in p["topic"]]) == 2  # noqa: E731
    worker.wait(ready, what="both topics taken up")
    produce(flow.source, old, numbered(5, start=10))
    create_topic(flow.source, born)
    produce(flow.source, born, numbered(7))
    wait_for_count(flow.target, flow.remote(born), 7)
    wait_for_count(flow.target, flow.remote(old), 5)
    assert worker.stop() == 0

    produce(flow.source, quiet, numbered(3, start=10))  # while nobody watches
    while_away = f"end-{unique}-away"
    create_topic(flow.source, while_away)
    produce(flow.source, while_away, numbered(4))
    flow.start()
    wait_for_count(flow.target, flow.remote(while_away), 4)
    wait_for_count(flow.target, flow.remote(quiet), 3)
    assert values(flow.target, flow.remote(old)) == list(range(10, 15))
    assert values(flow.target, flow.remote(quiet)) == [10, 11, 12]


def test_a_flow_that_starts_at_a_time_copies_from_there(scene, unique):
    topic = f"time-{unique}"
    start = datetime(2026, 1, 31, tzinfo=timezone.utc)
    flow = scene([topic], start=start.isoformat())
    create_topic(flow.source, topic)
    at = int(start.timestamp() * 1000)
    produce(flow.source, topic, [{"value": b"%d" % n, "timestamp": at + n - 5} for n in range(10)])
    flow.start()
    wait_for_count(flow.target, flow.remote(topic), 5)
    assert values(flow.target, flow.remote(topic)) == [5, 6, 7, 8, 9]
