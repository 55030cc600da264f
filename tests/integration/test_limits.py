"""A flow's limit on real brokers: held over a window, by one worker and by two, and everything arrives in the end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.records import create_topic, produce, read_all, wait_for_count
from tests.support.worker import Worker

pytestmark = pytest.mark.integration

SIZE = 10_000
LIMIT = 400_000
LIMITED = {"limits": {"bytes_per_second": LIMIT}}

#: In a window of four seconds a burst is a quarter; and a busy machine counts late.
SLACK = 1.5

#: Smaller than the burst, which is a second's worth.
SMALL_BATCHES = {"batch.size": 40_000}


def blocks(count: int, partitions: int) -> list[dict[str, Any]]:
    """Records that no codec makes smaller, each with a number of its own in front."""
    return [{"value": b"%06d" % n + os.urandom(SIZE - 6), "partition": n % partitions} for n in range(count)]


def values(records: Iterable[Any]) -> list[bytes]:
    return sorted(record.value for record in records)


def bytes_there(flow: Any, topic: str) -> int:
    return len(read_all(flow.target, flow.remote(topic))) * SIZE


def rate(flow: Any, topic: str, seconds: float) -> float:
    """Return bytes per second that come to be readable on the target."""
    before, begun = bytes_there(flow, topic), time.monotonic()
    time.sleep(seconds)
    return (bytes_there(flow, topic) - before) / (time.monotonic() - begun)


def limits(worker: Worker, flow: Any) -> dict[str, Any]:
    return worker.flow(flow.flow).get("limits") or {}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_limit_holds_and_holds_up_no_end(scene, unique, delivery):
    topic = f"limit-{unique}"
    flow = scene([topic], delivery=delivery, **LIMITED)
    create_topic(flow.source, topic, 4)
    sent = blocks(600, 4)
    produce(flow.source, topic, sent, **SMALL_BATCHES)
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 20)
    found = rate(flow, topic, 4)
    assert 0 < found <= SLACK * LIMIT
    partitions = {record.partition for record in read_all(flow.target, flow.remote(topic))}
    assert partitions == {0, 1, 2, 3}, "none waits for all of another"
    shown = limits(worker, flow)
    assert (shown["bytes_per_second"], shown["here"], shown["held_back"]) == (LIMIT, LIMIT, True)
    assert shown["waited_seconds"] > 1

    begun = time.monotonic()
    assert worker.stop() == 0
    assert time.monotonic() - begun < 6, "what waits for the limit holds up no end"
    there = bytes_there(flow, topic)
    assert there < len(sent) * SIZE
    again = flow.start("again")
    arrived = wait_for_count(flow.target, flow.remote(topic), len(sent), 40)
    if delivery == "exactly-once":
        assert values(arrived) == sorted(record["value"] for record in sent)
    assert {record.value for record in arrived} == {record["value"] for record in sent}
    again.wait(lambda: limits(again, flow)["held_back"] is False, 10, "not held back")
    counts = again.flow(flow.flow)["counts"]
    assert (counts["task_failures"], counts["flow_failures"]) == (0, 0)
    assert "reading again" not in worker.log + again.log, "what waits is not taken for lost"


def test_workers_share_a_limit_and_a_pause_is_followed_at_once(scene, unique):
    topic = f"limits-{unique}"
    token = "not-to-be-guessed-0123"  # noqa: S105 - of the test's own workers
    flow = scene([topic], more={"web": {"token": token}}, **LIMITED)
    create_topic(flow.source, topic, 8)
    one, two = flow.start("one"), flow.start("two")
    for worker in (one, two):
        worker.wait(lambda w=worker: len(w.flow(flow.flow).get("tasks", {}).get("owned", [])) == 4, 40, "shared")
    one.wait(lambda: limits(one, flow)["here"] + limits(two, flow)["here"] == LIMIT, 20, "parts that make one")
    sent = blocks(600, 8)
    produce(flow.source, topic, sent, **SMALL_BATCHES)
    wait_for_count(flow.target, flow.remote(topic), 20)
    assert 0 < rate(flow, topic, 4) <= SLACK * LIMIT

    assert one.post(f"/flows/{flow.flow}/pause", token)[0] == 202
    for worker in (one, two):
        worker.wait(lambda w=worker: w.flow(flow.flow)["state"] == "paused", 20, "paused")
    time.sleep(1)  # for what was handed on before
    before = bytes_there(flow, topic)
    time.sleep(7)  # longer than it takes to think that something is lost
    assert bytes_there(flow, topic) == before < len(sent) * SIZE
    assert one.post(f"/flows/{flow.flow}/resume", token)[0] == 202
    arrived = wait_for_count(flow.target, flow.remote(topic), len(sent), 40)
    assert {record.value for record in arrived} == {record["value"] for record in sent}
    assert "reading again" not in one.log + two.log
