"""Consumer groups while clusters are busy, away or changed: what users of other replicators reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from app.core.formats import Checkpoint
from tests.support.groups import checkpoint, checkpoints, commit, committed
from tests.support.records import create_topic, numbered, produce, topics, wait_for_count
from tests.support.worker import Worker

pytestmark = pytest.mark.integration

FAST = {"runtime": {"checkpoint_interval": "1s"}}


def settled(worker: Worker, flow: Any, group: str, topic: str, upstream: int, seconds: float = 60) -> Checkpoint:
    def newest() -> Checkpoint | None:
        found = checkpoint(flow.target, flow.source_alias, group, flow.remote(topic))
        return found if found and found.upstream == upstream else None

    found: Checkpoint = worker.wait(newest, seconds, f"checkpoint of {group} at {upstream}")
    return found


@contextmanager
def burst(bootstrap: str, topic: str) -> Iterator[None]:
    """Write to a topic without a pause while the block runs."""
    end = threading.Event()

    def write() -> None:
        while not end.is_set():
            produce(bootstrap, topic, numbered(5000))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        end.set()
        writer.join()


def test_quiet_topics_are_checkpointed_beside_a_busy_one(scene, unique):
    quiet, busy = [f"quiet-{unique}-{number}" for number in range(200)], f"burst-{unique}"
    flow = scene([f"quiet-{unique}-*", busy], more=FAST)
    source, target = (AdminClient({"bootstrap.servers": side}) for side in (flow.source, flow.target))
    results(source.create_topics([NewTopic(name, 1, 1) for name in [*quiet, busy]]))
    worker = flow.start()
    worker.wait_running(flow.flow)
    worker.wait(lambda: len(worker.flow(flow.flow)["partitions"]) >= 201, 60, "every topic")
    try:
        with burst(flow.source, busy):
            write_one_each(flow.source, quiet)
            commit(flow.source, f"g-{quiet[0]}", quiet[0], {0: 1})
            for name in quiet:
                request = ConsumerGroupTopicPartitions(f"g-{name}", [TopicPartition(name, 0, 1)])
                results(source.alter_consumer_group_offsets([request]))
            expected = {(f"g-{name}", flow.remote(name), 1, 1) for name in quiet}
            worker.wait(lambda: written(flow) >= expected, 90, "200 checkpoints")
            rows = worker.flow(flow.flow)["partitions"]
            assert next(row["records"] for row in rows if row["topic"] == busy) > 0
    finally:
        worker.kill()  # lest it creates them again
        results(source.delete_topics(quiet))
        results(target.delete_topics([name for name in map(flow.remote, quiet) if name in topics(flow.target)]))


def results(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(60)


def write_one_each(bootstrap: str, names: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for name in names:
        producer.produce(name, b"one")
    assert producer.flush(60) == 0


def written(flow: Any) -> set[tuple[str, str, int, int]]:
    found = checkpoints(flow.target, flow.source_alias)
    return {(c.group, c.topic, c.upstream, c.downstream) for c in found}


def test_checkpoints_come_after_a_slow_beginning_of_the_source(make_broker, scene, unique):
    source = make_broker()
    source.start()
    source.wait_ready()
    runtime = {"checkpoint_interval": "1s", "client_request_timeout": "5s"}
    topic, group = f"outage-{unique}", f"g-{unique}"
    flow = scene([topic], source=source.bootstrap, more={"runtime": runtime})
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(100))
    commit(flow.source, group, topic, {0: 50})
    problems = lambda: (worker.flow(flow.flow).get("groups") or {}).get("problems")  # noqa: E731

    source.pause()
    worker = flow.start()
    worker.wait(problems, 60, "a round that failed")
    source.resume()
    assert settled(worker, flow, group, topic, 50).downstream == 50
    worker.wait(lambda: problems() == [], 30, "no problem left")
    (row,) = worker.flow(flow.flow)["groups"]["first"]
    assert (row["group"], row["topic"], row["source_offset"], row["target_offset"]) == (group, topic, 50, 50)


def test_a_copy_deleted_on_the_target_holds_up_no_other_topic_of_the_group(scene, unique):
    kept, gone, group = f"x-{unique}", f"y-{unique}", f"g-{unique}"
    flow = scene([kept, gone], sync={"group_offsets": True}, more=FAST)
    for name in (kept, gone):
        create_topic(flow.source, name)
        produce(flow.source, name, numbered(10))
        commit(flow.source, group, name, {0: 5})
    worker = flow.start()
    there = lambda: committed(flow.target, group)  # noqa: E731
    worker.wait(lambda: there() == {(flow.remote(kept), 0): 5, (flow.remote(gone), 0): 5}, 30, "both written back")

    client = AdminClient({"bootstrap.servers": flow.target})
    results(client.delete_topics([flow.remote(gone)]))
    worker.wait(lambda: flow.remote(gone) not in topics(flow.target) or told(worker, flow, gone), 30, "deleted")
    for name in (kept, gone):
        commit(flow.source, group, name, {0: 8})
    worker.wait(lambda: there().get((flow.remote(kept), 0)) == 8, 30, "the kept one goes on")
    worker.wait(lambda: told(worker, flow, gone) or refilled(flow, gone), 60, "told of, or filled again")
    if flow.remote(gone) in topics(flow.target):
        assert there().get((flow.remote(gone), 0), 0) <= 8


def told(worker: Worker, flow: Any, topic: str) -> bool:
    status = worker.flow(flow.flow)
    problems = (status.get("groups") or {}).get("problems", [])
    return any(topic in name for name in status.get("held", {})) or any(topic in problem for problem in problems)


def refilled(flow: Any, topic: str) -> bool:
    if flow.remote(topic) not in topics(flow.target):
        return False
    return len(wait_for_count(flow.target, flow.remote(topic), 10)) == 10


def test_checkpoints_come_back_after_an_outage_of_the_source(make_broker, scene, unique):
    """B13: a pause longer than every session, then a stop and a start; no restart of the worker."""
    source = make_broker()
    source.start()
    source.wait_ready()
    runtime = {"checkpoint_interval": "1s", "client_request_timeout": "5s"}
    topic, group = f"back-{unique}", f"g-{unique}"
    flow = scene([topic], source=source.bootstrap, more={"runtime": runtime})
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(100))
    commit(flow.source, group, topic, {0: 50})
    worker = flow.start()
    settled(worker, flow, group, topic, 50)

    source.pause()
    time.sleep(12)
    source.resume()
    commit(flow.source, group, topic, {0: 70})
    assert settled(worker, flow, group, topic, 70).downstream == 70
    source.stop()
    time.sleep(3)
    source.restart()
    commit(flow.source, group, topic, {0: 80})
    assert settled(worker, flow, group, topic, 80).downstream == 80
    produce(flow.source, topic, numbered(10, start=100))
    assert len(wait_for_count(flow.target, flow.remote(topic), 110)) == 110
    worker.wait(lambda: worker.get("/health")[0] == 200, 30, "healthy")
