"""Consumer groups move to the target, and back, without missing or repeating a record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.groups import checkpoint, checkpoints, commit, committed, consume, transactions
from tests.support.records import create_topic, end_offsets, numbered, produce, wait_for_count
from tests.support.worker import ROOT, Worker, write_config

pytestmark = pytest.mark.integration

DELIVERIES = pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])

#: Intervals of a second, as in the reports that the cases are taken from.
FAST = {"runtime": {"checkpoint_interval": "1s"}}


def settled(worker: Any, flow: Any, group: str, topic: str, upstream: int, partition: int = 0) -> Any:
    """Wait until the newest checkpoint is that of the group's offset, and return it."""
    newest = lambda: checkpoint(flow.target, flow.source_alias, group, topic, partition)  # noqa: E731
    return worker.wait(lambda: (c := newest()) and c.upstream == upstream and c, 30, f"checkpoint of {group}")


@DELIVERIES
@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactions"])
def test_groups_move_without_a_miss_or_a_repeat(scene, unique, delivery, transactional):
    """At the end, behind it, and behind a crash of the worker; members of the classic and of the new protocol."""
    topic, half, total = f"moved-{unique}", 6000, 12_000
    flow = scene([topic], delivery=delivery, sync={"group_offsets": True}, more=FAST)
    remote = flow.remote(topic)
    create_topic(flow.source, topic)

    def write(start: int) -> None:
        if transactional:
            values = [b"%d" % number for number in range(start, start + half)]
            transactions(flow.source, topic, f"tx-{unique}", values, 200)
        else:
            produce(flow.source, topic, numbered(half, start=start))

    first = flow.start("first")
    write(0)
    wait_for_count(flow.target, remote, half)
    first.kill()
    worker = flow.start("second")
    write(half)
    wait_for_count(flow.target, remote, total)
    groups = [(lag, protocol) for lag in (0, 1000, 10_000) for protocol in ("classic", "consumer")]
    if transactional:
        groups = groups[::2]
    for lag, protocol in groups:
        group = f"g-{unique}-{lag}-{protocol}"
        options = {"group.protocol": protocol}
        assert len(consume(flow.source, group, topic, total - lag, **options)) == total - lag
    for lag, protocol in groups:
        group = f"g-{unique}-{lag}-{protocol}"
        settled(worker, flow, group, remote, committed(flow.source, group)[topic, 0])
        worker.wait(lambda g=group: (remote, 0) in committed(flow.target, g), 30, f"{group} written back")

    produce(flow.source, topic, numbered(100, start=total))
    wait_for_count(flow.target, remote, total + 100)
    for lag, protocol in groups:
        group = f"g-{unique}-{lag}-{protocol}"
        rest = consume(flow.target, group, remote, lag + 100, **{"group.protocol": protocol})
        assert [int(value) for value in rest] == list(range(total - lag, total + 100)), group


@DELIVERIES
def test_a_group_behind_a_killed_worker_moves_exactly(scene, unique, delivery):
    topic, group = f"killed-{unique}", f"movers-{unique}"
    flow = scene([topic], delivery=delivery, more=FAST)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(5000))
    first = flow.start("first")
    wait_for_count(flow.target, flow.remote(topic), 5000)
    time.sleep(1)
    first.kill()
    produce(flow.source, topic, numbered(5000, start=5000))
    offsets = (1, 37, 4999, 5001, 9999, 10_000)
    for offset in offsets:
        commit(flow.source, f"{group}-{offset}", topic, {0: offset})
    second = flow.start("second")
    copied = wait_for_count(flow.target, flow.remote(topic), 10_000)
    assert [int(record.value) for record in copied] == list(range(10_000))
    places = [record.offset for record in copied] + [copied[-1].offset + 1]
    for offset in offsets:
        name = f"{group}-{offset}"
        previous = places[offset - 1] if offset else -1
        fits = lambda n=name, o=offset, p=previous: (  # noqa: E731
            (c := checkpoint(flow.target, flow.source_alias, n, flow.remote(topic)))
            and c.upstream == o
            and p < c.downstream <= places[o]
        )
        second.wait(fits, 30, f"exact checkpoint of {name}")


def test_a_group_that_was_reset_gets_a_lower_checkpoint_and_keeps_its_offset_on_the_target(scene, unique):
    topic, group = f"reset-{unique}", f"g-{unique}"
    flow = scene([topic], sync={"group_offsets": True}, more=FAST)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(10_000))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 10_000)
    commit(flow.source, group, topic, {0: 10_000})
    settled(worker, flow, group, flow.remote(topic), 10_000)
    worker.wait(lambda: committed(flow.target, group) == {(flow.remote(topic), 0): 10_000}, 10)
    commit(flow.source, group, topic, {0: 100})
    assert settled(worker, flow, group, flow.remote(topic), 100).downstream == 100
    time.sleep(2.5)
    assert committed(flow.target, group) == {(flow.remote(topic), 0): 10_000}


def test_each_partition_is_written_back_by_itself(scene, unique):
    topic, group = f"parts-{unique}", f"g-{unique}"
    flow = scene([topic], sync={"group_offsets": True}, more=FAST)
    create_topic(flow.source, topic, 4)  # nothing is ever written to the last one
    produce(flow.source, topic, numbered(600, 3))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 600)
    commit(flow.target, group, flow.remote(topic), {0: 40, 2: 150})
    commit(flow.source, group, topic, {0: 100, 1: 101, 2: 120, 3: 0})
    remote = flow.remote(topic)
    expected = {(remote, 0): 100, (remote, 1): 101, (remote, 2): 150, (remote, 3): 0}
    worker.wait(lambda: committed(flow.target, group) == expected, 20, "written back")


def test_odd_names_and_texts_are_carried_and_other_topics_are_not_named(scene, unique):
    topic, secret = f"t-{unique}", f"secret-{unique}"
    flow = scene([topic], groups={"exclude": ["left-*"]}, more=FAST)
    for name in (topic, secret):
        create_topic(flow.source, name)
        produce(flow.source, name, numbered(10))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 10)
    texts = {"g": None, "a->b": "", "team x.y": '{"n":1}', "ümlaut": "日" * 1300}
    for name, text in texts.items():
        commit(flow.source, f"{name}-{unique}", topic, {0: 3}, text)
        commit(flow.source, f"{name}-{unique}", secret, {0: 3})
    commit(flow.source, f"left-{unique}", topic, {0: 3})
    for name, text in texts.items():
        found = settled(worker, flow, f"{name}-{unique}", flow.remote(topic), 3)
        # confluent-kafka, which commits here, writes a missing text as one NUL.
        assert (found.downstream, found.metadata.rstrip("\0")) == (3, text or "")
    everything = checkpoints(flow.target, flow.source_alias)
    assert {c.topic for c in everything} <= {flow.remote(topic), flow.remote("heartbeats")}
    assert f"left-{unique}" not in {c.group for c in everything}


def test_a_group_that_reads_copies_is_led_back_to_the_originals(clusters, unique, tmp_path):
    a, b, topic, group = f"a-{unique}", f"b-{unique}", f"home-{unique}", f"g-{unique}"
    flows = [
        {"from": a, "to": b, "topics": {"include": [topic]}},
        {"from": b, "to": a, "topics": {"include": [topic]}},
    ]
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap}
    create_topic(addresses[a], topic)
    create_topic(addresses[b], topic)
    transactions(addresses[a], topic, f"tx-{unique}", [b"%d" % n for n in range(30)], 10)
    with Worker(write_config(tmp_path, addresses, flows, **FAST), tmp_path) as worker:
        wait_for_count(addresses[b], f"{a}.{topic}", 30)
        commit(addresses[b], group, f"{a}.{topic}", {0: 17})
        found = worker.wait(lambda: checkpoint(addresses[a], b, group, topic), 30, "checkpoint of the original")
        # before the 18th record lie, on its original side, the end of a transaction and an aborted one: 3 offsets
        assert (found.upstream, found.downstream) == (17, 20)


def command(config: Path, *arguments: str) -> tuple[int, Any]:
    """Run `faust -A app …` as an operator does; return the exit code and the JSON it prints."""
    faust = Path(sys.executable).parent / "faust"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KRABKA_")}
    done = subprocess.run(
        [str(faust), "-A", "app", *arguments, "--json"],
        cwd=ROOT,
        env=environment | {"KRABKA_REPLICATOR_CONFIG": str(config)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_commands_translate_and_move_a_group_without_a_worker_and_without_the_source(scene, make_broker, unique):
    source = make_broker()
    source.start()
    source.wait_ready()
    topic, group = f"by-hand-{unique}", f"g-{unique}"
    flow = scene([topic], source=source.bootstrap, more=FAST)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(100))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 100)
    commit(flow.source, group, topic, {0: 50})
    settled(worker, flow, group, flow.remote(topic), 50)
    assert worker.stop() == 0

    code, shown = command(flow.config, "translate", group)
    (row,) = shown["flows"][0]["partitions"]
    assert code == 0
    assert (row["source_offset"], row["target_offset"], row["exact"], row["lag_on_target"]) == (50, 50, True, 50)
    assert committed(flow.target, group) == {}
    code, told = command(flow.config, "explain", group)
    (row,) = told["flows"][0]["partitions"]
    assert (code, row["translated"], told["flows"][0]["state_on_target"]) == (0, "exact", "ABSENT")
    assert row["written_back"].startswith("no: sync.group_offsets is off")
    source.stop()
    code, moved = command(flow.config, "failover", group, "--apply")
    assert (code, moved["flows"][0]["basis"], moved["flows"][0]["applied"]) == (0, "checkpoints", True)
    assert committed(flow.target, group) == {(flow.remote(topic), 0): 50}
    assert [int(v) for v in consume(flow.target, group, flow.remote(topic), 60)] == list(range(50, 100))


def test_a_group_goes_over_and_comes_home_by_command(clusters, unique, tmp_path):
    a, b, topic, group = f"a-{unique}", f"b-{unique}", f"trip-{unique}", f"g-{unique}"
    flows = [
        {"from": a, "to": b, "topics": {"include": [topic]}, "delivery": "exactly-once"},
        {"from": b, "to": a, "topics": {"include": [topic]}, "delivery": "exactly-once"},
    ]
    here, there = clusters.source.bootstrap, clusters.target.bootstrap
    create_topic(here, topic)
    create_topic(there, topic)
    transactions(here, topic, f"tx-{unique}", [b"%d" % n for n in range(300)], 10)
    config = write_config(tmp_path, {a: here, b: there}, flows, **FAST)
    with Worker(config, tmp_path) as worker:
        copies = f"{a}.{topic}"
        wait_for_count(there, copies, 300)
        read = consume(here, group, topic, 95)
        over, back = f"{a}__{b}", f"{b}__{a}"
        code, moved = command(config, "failover", group, "--flow", over, "--apply")
        assert (code, moved["flows"][0]["applied"]) == (0, True), moved
        read += consume(there, group, copies, 100)
        code, moved = command(config, "failover", group, "--flow", back, "--apply")
        assert (code, moved["flows"][0]["applied"]) == (0, True), moved
        read += consume(here, group, topic, 205)
        assert [int(value) for value in read] == list(range(300))
        assert worker.stop() == 0


def test_names_that_stay_the_same_are_the_names_in_checkpoints(scene, unique):
    topic, group = f"same-{unique}", f"g-{unique}"
    flow = scene([topic], naming="identity", sync={"group_offsets": True}, more=FAST)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(10))
    worker = flow.start()
    wait_for_count(flow.target, topic, 10)
    commit(flow.source, group, topic, {0: 4})
    worker.wait(lambda: committed(flow.target, group) == {(topic, 0): 4}, 20, "written back")


@DELIVERIES
def test_no_offset_is_written_beyond_the_target_s_end(scene, unique, delivery):
    topic, group = f"end-{unique}", f"g-{unique}"
    flow = scene(
        [topic], delivery=delivery, sync={"group_offsets": True}, more={"runtime": {"checkpoint_interval": "200ms"}}
    )
    create_topic(flow.source, topic)
    worker = flow.start()
    worker.wait_running(flow.flow)
    worker.wait(lambda: worker.get("/status")[1]["worker"]["leader"], 30, "a leader")
    sampled = 0
    for start in range(0, 100_000, 5000):
        produce(flow.source, topic, numbered(5000, start=start))
        commit(flow.source, group, topic, {0: start + 5000})
        if offset := committed(flow.target, group).get((flow.remote(topic), 0)):
            assert offset <= end_offsets(flow.target, flow.remote(topic))[0]
            sampled += 1
    worker.wait(lambda: committed(flow.target, group).get((flow.remote(topic), 0), 0) >= 100_000, 20, "all of it")
    assert sampled


def test_another_worker_goes_on_with_the_index_and_the_checkpoints(scene, unique):
    topic, group = f"taken-{unique}", f"g-{unique}"
    flow = scene([topic], delivery="exactly-once", more=FAST)
    create_topic(flow.source, topic, 4)
    one = flow.start("one")
    transactions(flow.source, topic, f"tx-{unique}", [b"%d" % n for n in range(300)], 10)
    wait_for_count(flow.target, flow.remote(topic), 300)
    upstream = consumed_up_to(flow, topic, group, 120)
    before = settled(one, flow, group, flow.remote(topic), upstream)
    two = flow.start("two")
    two.wait(lambda: len(two.flow(flow.flow).get("tasks", {}).get("owned", ())) == 4, 30, "its share")
    one.kill()
    two.wait(lambda: two.get("/status")[1]["worker"]["leader"], 40, "the lead")
    for name, count in ((f"{group}-old", 75), (f"{group}-new", 300)):
        upstream = consumed_up_to(flow, topic, name, count)
        settled(two, flow, name, flow.remote(topic), upstream)
    kept = [c for c in checkpoints(flow.target, flow.source_alias) if c.group == group]
    assert {c.downstream for c in kept} == {before.downstream}
    copies = wait_for_count(flow.target, flow.remote(topic), 300)
    old = checkpoint(flow.target, flow.source_alias, f"{group}-old", flow.remote(topic))
    assert copies[74].offset < old.downstream <= copies[75].offset


def consumed_up_to(flow: Any, topic: str, group: str, count: int) -> int:
    assert len(consume(flow.source, group, topic, count)) == count
    return committed(flow.source, group)[topic, 0]
