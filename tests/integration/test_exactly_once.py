"""Transactions on both sides, zombies, and workers and tasks that come and go (failures.md B20 to B23, B49, B56)."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from tests.support.records import by_partition, create_topic, end_offsets, numbered, produce, read_all, wait_for_count
from tests.support.steady import Steady
from tests.support.worker import Worker

pytestmark = pytest.mark.integration

DELIVERIES = pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])

#: The shortest session that brokers allow by default, so that a takeover is seen sooner.
SHORT_SESSION = {"runtime": {"group_session_timeout": "6s"}}


@contextlib.contextmanager
def transactions(bootstrap: str, name: str) -> Any:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(20)
    yield producer


def owned(worker: Worker, flow: str) -> list[int]:
    return worker.flow(flow).get("tasks", {}).get("owned", [])


def rows(worker: Worker, flow: str, topic: str) -> dict[int, dict[str, Any]]:
    return {row["partition"]: row for row in worker.flow(flow)["partitions"] if row["topic"] == topic}


def assert_complete(records: list[Any], total: int, partitions: int, *, once: bool) -> None:
    """Each partition holds its numbers in order (by first appearance), once if `once`."""
    found = by_partition(records)
    for partition in range(partitions):
        numbers = [int(record.value) for record in found[partition]]
        assert list(dict.fromkeys(numbers)) == list(range(partition, total, partitions)), f"partition {partition}"
        if once:
            assert len(numbers) == len(set(numbers)), f"partition {partition}"


@DELIVERIES
def test_open_and_aborted_transactions_of_the_source(scene, unique, delivery):
    """B22: an open transaction is no lag and has a name; what is aborted never arrives."""
    topic = f"open-{unique}"
    flow = scene([topic], delivery=delivery)
    create_topic(flow.source, topic, 2)
    produce(flow.source, topic, [{"value": b"plain", "partition": 0}] * 10 + [{"value": b"other", "partition": 1}] * 5)
    with transactions(flow.source, f"open-{unique}") as producer:
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, b"aborted", partition=0)
        producer.flush(10)
        produce(flow.source, topic, [{"value": b"behind", "partition": 0}] * 8)
        worker = flow.start()
        wait_for_count(flow.target, flow.remote(topic), 15)
        expected = "held at offset 10 by an open transaction"
        worker.wait(lambda: rows(worker, flow.flow, topic)[0].get("held") == expected, 20, expected)
        time.sleep(2)
        status = rows(worker, flow.flow, topic)
        assert (status[0]["lag"], status[0]["position"], status[0]["held"]) == (0, 10, expected)
        assert (status[1]["lag"], status[1].get("held")) == (0, None)
        assert len(read_all(flow.target, flow.remote(topic))) == 15
        assert worker.get("/health")[0] == 200
        producer.abort_transaction(20)
    found = by_partition(wait_for_count(flow.target, flow.remote(topic), 23))
    assert [record.value for record in found[0]] == [b"plain"] * 10 + [b"behind"] * 8
    worker.wait(lambda: rows(worker, flow.flow, topic)[0]["position"] == 22, 20, "the marker counts as progress")
    assert "held" not in rows(worker, flow.flow, topic)[0]
    everything = read_all(flow.target, flow.remote(topic), isolation="read_uncommitted")
    assert all(record.value != b"aborted" for record in everything)


@DELIVERIES
def test_every_codec_between_empty_and_aborted_transactions(scene, unique, delivery):
    """B56: control batches and empty batches are passed over and count as progress."""
    topic = f"codecs-{unique}"
    flow = scene([topic], delivery=delivery)
    create_topic(flow.source, topic)
    worker = flow.start()
    written = []
    for number, codec in enumerate(["gzip", "snappy", "lz4", "zstd", "none"]):
        values = [b"%s %d" % (codec.encode(), n) * 20 for n in range(5)]
        produce(flow.source, topic, [{"value": value} for value in values], **{"compression.type": codec})
        written += values
        with transactions(flow.source, f"codecs-{unique}-{number}") as producer:
            producer.begin_transaction()
            if number == 2:
                producer.produce(topic, b"aborted")
                producer.flush(10)
                producer.abort_transaction(10)
            elif number in (0, 4):
                producer.produce(topic, b"committed")
                producer.commit_transaction(10)
                written.append(b"committed")
            else:
                producer.commit_transaction(10)  # empty
    copied = wait_for_count(flow.target, flow.remote(topic), len(written))
    assert [record.value for record in copied] == written
    (end,) = end_offsets(flow.source, topic).values()
    worker.wait(lambda: rows(worker, flow.flow, topic)[0]["position"] == end, 20, "progress to the end of the log")
    assert rows(worker, flow.flow, topic)[0]["lag"] == 0


@DELIVERIES
def test_a_zombie_that_wakes_after_takeover_harms_nothing(scene, unique, delivery):
    """A worker is frozen longer than its session, its tasks move, and it wakes in the midst of traffic."""
    topic = f"zombie-{unique}"
    flow = scene([topic], delivery=delivery, tasks=4, more=SHORT_SESSION)
    create_topic(flow.source, topic, 4)
    one, two = flow.start("one"), flow.start("two")
    one.wait(lambda: len(owned(one, flow.flow)) == len(owned(two, flow.flow)) == 2, 40, "two tasks each")
    with Steady(flow.source, topic, 4, 500) as traffic:
        time.sleep(2)
        two.freeze()
        began = time.monotonic()
        one.wait(lambda: len(owned(one, flow.flow)) == 4, 15, "takeover")
        took = {partition: row["position"] for partition, row in rows(one, flow.flow, topic).items()}
        one.wait(
            lambda: (
                all(row["position"] > took.get(p, -1) for p, row in rows(one, flow.flow, topic).items())
                and len(rows(one, flow.flow, topic)) == 4
            ),
            max(1.0, began + 15 - time.monotonic()),
            "every partition flows again within 15 s",
        )
        two.thaw()
        two.wait(lambda: len(owned(two, flow.flow)) == 2, 30, "the zombie is a member again")
        time.sleep(2)
    one.wait(lambda: one.flow(flow.flow)["lag"] == two.flow(flow.flow)["lag"] == 0, 30, "no lag")
    copied = wait_for_count(flow.target, flow.remote(topic), traffic.count)
    assert_complete(copied, traffic.count, 4, once=delivery == "exactly-once")
    positions = {}
    for worker in (one, two):
        positions |= {partition: row["position"] for partition, row in rows(worker, flow.flow, topic).items()}
    assert positions == end_offsets(flow.source, topic)


def test_a_worker_frozen_longer_than_its_transaction_rebuilds_its_task(scene, unique):
    """B23: the target aborts the transaction and moves the producer's epoch; nothing is retried for ever."""
    topic = f"frozen-{unique}"
    more = {"runtime": {"group_session_timeout": "6s", "transaction_timeout": "2s"}}
    flow = scene([topic], delivery="exactly-once", tasks=1, more=more)
    create_topic(flow.source, topic)
    worker = flow.start()
    with Steady(flow.source, topic, 1, 1000) as traffic:
        wait_for_count(flow.target, flow.remote(topic), 1000)
        for _ in range(3):
            worker.freeze()
            time.sleep(4)
            worker.thaw()
            reached = traffic.count
            wait_for_count(flow.target, flow.remote(topic), reached)
    copied = wait_for_count(flow.target, flow.remote(topic), traffic.count)
    assert_complete(copied, traffic.count, 1, once=True)
    assert worker.process.poll() is None


@DELIVERIES
def test_workers_come_and_go_under_load(scene, unique, delivery):
    """B21 and B49: one worker, three, two (one is stopped), one (one is killed)."""
    topic = f"storm-{unique}"
    flow = scene([topic], delivery=delivery, tasks=12, more=SHORT_SESSION)
    create_topic(flow.source, topic, 12)

    def positions(workers: list[Worker]) -> dict[int, int]:
        return {p: row["position"] for w in workers for p, row in rows(w, flow.flow, topic).items()}

    def settled(workers: list[Worker], seconds: float) -> None:
        share, first = 12 // len(workers), workers[0]
        shared = lambda: all(len(owned(w, flow.flow)) == share for w in workers) and positions(workers)  # noqa: E731
        first.wait(lambda: len(shared() or ()) == 12, seconds, f"{share} tasks each")
        before = positions(workers)
        first.wait(lambda: all(o > before[p] for p, o in positions(workers).items()), 15, "every partition flows")

    with Steady(flow.source, topic, 12, 500) as traffic:
        one = flow.start("one")
        settled([one], 30)
        two, three = flow.start("two"), flow.start("three")
        settled([one, two, three], 40)
        assert three.stop() == 0
        settled([one, two], 15)
        two.kill()
        settled([one], 15)
    copied = wait_for_count(flow.target, flow.remote(topic), traffic.count)
    assert_complete(copied, traffic.count, 12, once=delivery == "exactly-once")


def test_the_number_of_tasks_changes_over_restarts(scene, unique):
    """Tasks 8, 3, 5: positions go on, and whoever slept through the change is fenced and let in no more."""
    topic = f"tasks-{unique}"
    flow = scene([topic], delivery="exactly-once", tasks=8, more=SHORT_SESSION)
    create_topic(flow.source, topic, 6)
    document = yaml.safe_load(flow.config.read_text(encoding="utf-8"))
    zombie = None
    for round_, tasks in enumerate((8, 3, 5)):
        document["flows"][0]["tasks"] = tasks
        flow.config.write_text(yaml.safe_dump(document), encoding="utf-8")
        produce(flow.source, topic, numbered(300, 6, 600 * round_))
        worker = flow.start(f"with-{tasks}")
        assert worker.wait_running(flow.flow, 40)["tasks"]["owned"] == list(range(tasks))
        wait_for_count(flow.target, flow.remote(topic), 600 * round_ + 300)
        if zombie is not None:
            zombie.thaw()
            disagrees = "but workers that run already use"
            zombie.wait(lambda z=zombie, d=disagrees: d in (z.flow(flow.flow).get("error") or ""), 30, disagrees)
            assert owned(zombie, flow.flow) == []
            zombie.kill()
        produce(flow.source, topic, numbered(300, 6, 600 * round_ + 300))
        wait_for_count(flow.target, flow.remote(topic), 600 * (round_ + 1))
        assert owned(worker, flow.flow) == list(range(tasks))
        if tasks != 5:
            worker.freeze()
            time.sleep(7)  # its session is over: for the group it is gone
            zombie = worker
    assert_complete(read_all(flow.target, flow.remote(topic)), 1800, 6, once=True)


def test_a_worker_that_slept_before_its_first_commit_copies_nothing(scene, unique):
    """No position tells of its number of tasks then; its transactional ids are fenced all the same."""
    topic = f"early-{unique}"
    flow = scene([topic], delivery="exactly-once", tasks=8, more=SHORT_SESSION)
    create_topic(flow.source, topic, 6)
    first = flow.start("with-8")
    first.wait_running(flow.flow)
    first.wait(lambda: len(rows(first, flow.flow, topic)) == 6, 40, "all partitions are taken up at their start")
    first.freeze()
    produce(flow.source, topic, numbered(600, 6))
    document = yaml.safe_load(flow.config.read_text(encoding="utf-8"))
    document["flows"][0]["tasks"] = 3
    flow.config.write_text(yaml.safe_dump(document), encoding="utf-8")
    time.sleep(7)
    second = flow.start("with-3")
    second.wait_running(flow.flow, 40)
    first.thaw()
    refused = "but workers that run already use"
    first.wait(lambda: refused in (first.flow(flow.flow).get("error") or ""), 30, "a refusal")
    wait_for_count(flow.target, flow.remote(topic), 600)
    time.sleep(2)
    assert_complete(read_all(flow.target, flow.remote(topic)), 600, 6, once=True)


def test_workers_that_disagree_about_tasks_do_not_both_work(scene, unique):
    topic = f"agree-{unique}"
    flow = scene([topic], delivery="exactly-once", tasks=4, more=SHORT_SESSION)
    create_topic(flow.source, topic, 4)
    produce(flow.source, topic, numbered(40, 4))
    one = flow.start("one")
    wait_for_count(flow.target, flow.remote(topic), 40)
    document = yaml.safe_load(flow.config.read_text(encoding="utf-8"))
    document["flows"][0]["tasks"] = 6
    flow.config.write_text(yaml.safe_dump(document), encoding="utf-8")
    two = flow.start("two")
    two.wait(lambda: "tasks" in (two.flow(flow.flow).get("error") or ""), 40, "a refusal that names tasks")
    assert owned(two, flow.flow) == []
    produce(flow.source, topic, numbered(40, 4, 40))
    wait_for_count(flow.target, flow.remote(topic), 80)
    assert one.stop() == 0
    two.wait(lambda: owned(two, flow.flow) == list(range(6)), 40, "the new number of tasks")
    produce(flow.source, topic, numbered(40, 4, 80))
    copied = wait_for_count(flow.target, flow.remote(topic), 120)
    assert_complete(copied, 120, 4, once=True)


def test_a_worker_without_a_task_says_so_and_takes_over(scene, unique):
    topic = f"idle-{unique}"
    flow = scene([topic], delivery="exactly-once", tasks=1, more=SHORT_SESSION)
    create_topic(flow.source, topic)
    one = flow.start("one")
    one.wait_running(flow.flow)
    two = flow.start("two")
    workers = [one, two]

    def idle() -> list[Worker]:
        return [worker for worker in workers if worker.flow(flow.flow).get("tasks", {}).get("idle")]

    one.wait(lambda: len(idle()) == 1, 40, "one is idle")
    (spare,) = idle()
    (busy,) = [worker for worker in workers if worker is not spare]
    assert spare.flow(flow.flow)["tasks"]["idle"] == "all 1 tasks of the flow are other workers'"
    assert "idle: all 1 tasks" in spare.log
    spare.wait(lambda: spare.get("/health")[0] == 200, 20, "to be idle is no failure")
    produce(flow.source, topic, numbered(10))
    wait_for_count(flow.target, flow.remote(topic), 10)
    busy.kill()
    produce(flow.source, topic, numbered(10, start=10))
    copied = wait_for_count(flow.target, flow.remote(topic), 20, 15)
    assert_complete(copied, 20, 1, once=True)
    assert "idle" not in spare.flow(flow.flow)["tasks"]
