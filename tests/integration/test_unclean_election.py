"""A source whose log was cut off and has grown again: what others would pass over is found by the leader epochs."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.records import create_topic, numbered, produce, read_all, wait_for_count

pytestmark = pytest.mark.integration


def cut_off(folder: Path, topic: str, batches: int) -> None:
    """Leave the first batches in the log of partition 0 of a broker that does not run, as on a replica that lagged."""
    partition = folder / "data" / f"{topic}-0"
    (segment,) = partition.glob("*.log")
    data, place = segment.read_bytes(), 0
    for _ in range(batches):
        place += 12 + struct.unpack_from(">i", data, place + 8)[0]
    segment.write_bytes(data[:place])
    for derived in (*partition.glob("*.index"), *partition.glob("*.timeindex"), *partition.glob("*.snapshot")):
        derived.unlink()


def values(bootstrap: str, topic: str) -> list[int]:
    return [int(record.value) for record in read_all(bootstrap, topic)]


def test_a_log_that_was_cut_off_and_has_grown_again_is_copied_from_where_it_was_cut(
    make_broker: Any, scene: Any, unique: str
):
    topic = f"cut-{unique}"
    source = make_broker()
    source.start()
    source.wait_ready()
    flow = scene([topic], source=source.bootstrap, delivery="exactly-once", tasks=1)
    create_topic(flow.source, topic)
    for start in range(0, 100, 10):
        produce(flow.source, topic, numbered(10, start=start))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 100)
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0)

    # While the worker runs; it sees nothing of it before the log has grown beyond its position.
    worker.freeze()
    source.kill()
    cut_off(source.directory, topic, 5)
    source.restart()
    produce(flow.source, topic, numbered(100, start=1000))
    worker.thaw()
    expected = [*range(100), *range(1000, 1100)]
    wait_for_count(flow.target, flow.remote(topic), 200, 60)
    assert values(flow.target, flow.remote(topic)) == expected
    losses = worker.wait(lambda: worker.flow(flow.flow)["losses"])
    assert [(loss["kind"], loss["first"], loss["last"], loss["resume"]) for loss in losses] == [
        ("truncated", 50, 99, 50)
    ]
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0)
    assert worker.stop() == 0

    # While no worker runs. The log: ten batches of old ones of which five are left, and one or more of the new ones.
    source.kill()
    cut_off(source.directory, topic, 3)
    source.restart()
    produce(flow.source, topic, numbered(200, start=2000))
    worker = flow.start("second")
    wait_for_count(flow.target, flow.remote(topic), 400, 60)
    assert values(flow.target, flow.remote(topic)) == [*expected, *range(2000, 2200)]
    losses = worker.wait(lambda: worker.flow(flow.flow)["losses"])
    assert [(loss["kind"], loss["first"], loss["last"]) for loss in losses] == [("truncated", 30, 149)]
