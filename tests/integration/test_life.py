"""Outages, growth, several flows, heartbeats, and the front door of an installed wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
import venv
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from app.core.formats import Heartbeat
from tests.support.records import by_partition, create_topic, numbered, produce, read_all, topics, wait_for_count
from tests.support.worker import ROOT, Worker, write_config

pytestmark = pytest.mark.integration


def metrics(worker: Worker) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def gauges(worker: Worker, topic: str) -> set[int]:
    """Return the partitions of a topic for which a worker exports a lag; none while it does not answer."""
    try:
        text = metrics(worker)
    except OSError:
        return set()
    found = re.findall(r"^krabka_replicator_lag_records\{(.*)\}", text, re.MULTILINE)
    labels = [dict(re.findall(r'(\w+)="([^"]*)"', one)) for one in found]
    return {int(one["partition"]) for one in labels if one["topic"] == topic}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_broker_away_and_back_is_survived(make_broker, scene, unique, side, delivery):
    """failures.md B50."""
    brokers = {"source": make_broker(), "target": make_broker()}
    for broker in brokers.values():
        broker.start()
    for broker in brokers.values():
        broker.wait_ready()
    topic = f"away-{unique}"
    addresses = {name: broker.bootstrap for name, broker in brokers.items()}
    # shorter than the outage: exactly once, what was under way is aborted by the target
    flow = scene([topic], **addresses, delivery=delivery, more={"runtime": {"transaction_timeout": "5s"}})
    create_topic(flow.source, topic, 3)
    produce(flow.source, topic, numbered(3000, 3))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 3000)

    brokers[side].pause()
    time.sleep(12)  # longer than the session time-out
    brokers[side].resume()
    produce(flow.source, topic, numbered(3000, 3, 3000))
    wait_for_count(flow.target, flow.remote(topic), 6000, 60)

    brokers[side].kill()
    time.sleep(3)
    brokers[side].restart()
    produce(flow.source, topic, numbered(3000, 3, 6000))
    wait_for_count(flow.target, flow.remote(topic), 9000, 60)
    worker.wait(lambda: worker.get("/health")[0] == 200, 30, "healthy again")
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 30, "no lag")
    for partition, records in by_partition(read_all(flow.target, flow.remote(topic))).items():
        numbers = [int(record.value) for record in records]
        assert list(dict.fromkeys(numbers)) == list(range(partition, 9000, 3))
        if delivery == "exactly-once":
            assert len(numbers) == 3000


def test_new_topics_and_new_partitions_flow_from_their_first_record(scene, unique):
    """failures.md B38, B46 and B51."""
    grown, born = f"grow-{unique}", f"grow-{unique}-born"
    flow = scene([f"grow-{unique}*"])
    create_topic(flow.source, grown, 1)
    create_topic(flow.target, flow.remote(grown), 1)
    produce(flow.source, grown, numbered(100))
    flow.start()
    wait_for_count(flow.target, flow.remote(grown), 100)
    admin = AdminClient({"bootstrap.servers": flow.source})
    admin.create_partitions([NewPartitions(grown, 3)])[grown].result(20)
    create_topic(flow.source, born, 2)
    time.sleep(0.5)
    produce(flow.source, grown, [{"value": b"%d" % n, "partition": 2} for n in range(100)])
    produce(flow.source, born, numbered(20, 2))

    copied = by_partition(wait_for_count(flow.target, flow.remote(grown), 200, 15))
    assert {partition: len(records) for partition, records in copied.items()} == {0: 100, 2: 100}
    assert [int(record.value) for record in copied[2]] == list(range(100))
    assert len(wait_for_count(flow.target, flow.remote(born), 20, 15)) == 20
    assert topics(flow.target)[flow.remote(grown)] == 3


def test_a_chain_of_three_clusters(clusters, third, unique, tmp_path: Path):
    a, b, c, topic = f"a-{unique}", f"b-{unique}", f"c-{unique}", f"chain-{unique}"
    flows = [
        {"from": a, "to": b, "topics": {"include": [f"*{topic}"]}},
        {"from": b, "to": c, "topics": {"include": [f"*{topic}"]}, "delivery": "exactly-once"},
        {"from": c, "to": a, "topics": {"include": [f"*{topic}"]}},
    ]
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap, c: third.bootstrap}
    create_topic(addresses[a], topic)
    produce(addresses[a], topic, numbered(50))
    with Worker(write_config(tmp_path, addresses, flows), tmp_path):
        copied = wait_for_count(addresses[c], f"{b}.{a}.{topic}", 50)
        assert [int(record.value) for record in copied] == list(range(50))
        assert copied[0].headers == (("__krabka_origin", a.encode()), ("__krabka_origin", b.encode()))
        time.sleep(3)
        assert f"{c}.{b}.{a}.{topic}" not in topics(addresses[a])


def test_heartbeats_are_mm2s_and_one_worker_writes_them(scene, unique):
    flow = scene([f"none-{unique}"])
    flow.start("one")
    flow.start("two")
    key = Heartbeat(source=flow.source_alias, target=flow.target_alias, timestamp=0).key()

    def beats() -> list[int]:
        ours = [r for r in read_all(flow.target, "heartbeats") if r.key == key]
        assert all(Heartbeat.decode(r.key, r.value).timestamp == r.timestamp for r in ours)
        return [r.timestamp for r in ours]

    deadline = time.monotonic() + 30
    while not beats():
        assert time.monotonic() < deadline
        time.sleep(0.5)
    before, begun = len(beats()), time.monotonic()
    time.sleep(5)
    rate = (len(beats()) - before) / (time.monotonic() - begun)
    assert 0.6 < rate < 1.4  # one a second; two leaders would make it two


def test_each_worker_tells_who_runs_what_and_the_leader_what_only_it_knows(scene, unique):
    topic = f"moved-{unique}"
    flow = scene([topic], tasks=4)
    create_topic(flow.source, topic, 8)
    workers = [flow.start("one")]
    workers[0].wait(lambda: gauges(workers[0], topic) == set(range(8)), what="all partitions at the first worker")
    workers.append(flow.start("two"))

    def crews(worker: Worker) -> dict[str, list[int]]:
        return {crew["worker"]: crew["tasks"] for crew in worker.flow(flow.flow).get("workers") or ()}

    def leads(worker: Worker) -> bool:
        return worker.flow(flow.flow)["heartbeat"]["age_seconds"] is not None

    for worker in workers:
        worker.wait_running(flow.flow)
        worker.wait(lambda w=worker: len(crews(w)) == 2, what="a list of two workers")
    names = [worker.get("/status")[1]["worker"]["name"] for worker in workers]
    assert [set(crews(worker)) for worker in workers] == [set(names)] * 2
    assert sorted(task for tasks in crews(workers[0]).values() for task in tasks) == [0, 1, 2, 3]

    shares = lambda: [gauges(worker, topic) for worker in workers]  # noqa: E731
    workers[0].wait(lambda: sum(map(len, shares())) == 8, what="the gauges of what moved away to be gone")
    assert set.union(*shares()) == set(range(8))
    assert all(shares())

    workers[0].wait(lambda: sum(map(leads, workers)) == 1, what="one that writes heartbeats")
    leader, other = sorted(workers, key=leads, reverse=True)
    other_name = other.get("/status")[1]["worker"]["name"]
    leader.wait(lambda: leader.flow(flow.flow)["heartbeat"]["age_seconds"] < 3, what="a heartbeat")
    complete = lambda groups: (groups["checkpoint_age_seconds"] or 99) < 8 and not groups["problems"]  # noqa: E731
    leader.wait(lambda: complete(leader.flow(flow.flow)["groups"]), what="a complete round")
    told = ("heartbeat_age_seconds", "checkpoint_age_seconds", "checkpoint_groups", "topic_problems")
    assert [f"krabka_replicator_{name}{{" in metrics(leader) for name in told] == [True] * 4
    assert [f"krabka_replicator_{name}{{" in metrics(other) for name in told] == [False] * 4
    assert other.flow(flow.flow)["groups"] is None
    led_by = lambda worker: worker.get("/status")[1]["targets"][flow.target_alias]["led_by"]  # noqa: E731
    other.wait(lambda: led_by(other) == led_by(leader) != other_name, what="the leader's name at the other")

    assert leader.stop() == 0
    other.wait(lambda: crews(other) == {other_name: [0, 1, 2, 3]}, what="all tasks at the one that is left")
    other.wait(lambda: gauges(other, topic) == set(range(8)), what="the gauges of what came back")
    other.wait(lambda: leads(other), what="the next leader")
    events = other.get("/status")[1]["events"]
    assert any(event["kind"] == "rebalance" and "tasks of this worker: 0-3" in event["text"] for event in events)


def test_one_cluster_under_two_aliases_is_refused(clusters, unique, tmp_path: Path):
    a, b = f"a-{unique}", f"b-{unique}"
    config = write_config(
        tmp_path, {a: clusters.source.bootstrap, b: clusters.source.bootstrap}, [{"from": a, "to": b}]
    )
    worker = Worker(config, tmp_path)
    assert worker.process.wait(20) == 2
    assert f"clusters {a} and {b} are one cluster" in worker.log
    assert "Traceback" not in worker.log


@pytest.mark.slow
def test_installed_wheel_runs_from_any_folder(clusters, unique, tmp_path: Path):
    home = tmp_path / "env"
    venv.create(home, with_pip=False, system_site_packages=False)
    python = home / "bin" / "python"
    # The dependencies are those of the environment that runs the tests; the replicator itself comes from its wheel.
    site = next((home / "lib").glob("python*/site-packages"))
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)],
        check=True,
    )
    (wheel,) = tmp_path.glob("krabka_replicator-*.whl")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)],
        check=True,
    )
    (site / "dependencies.pth").write_text(_copy_without_editable(Path(ours), tmp_path / "deps"), encoding="utf-8")
    (home / "bin" / "faust").write_text(f"#!{python}\nfrom faust.cli.faust import cli\ncli()\n", encoding="utf-8")
    (home / "bin" / "faust").chmod(0o755)

    a, b, topic = f"a-{unique}", f"b-{unique}", f"wheel-{unique}"
    create_topic(clusters.source.bootstrap, topic)
    produce(clusters.source.bootstrap, topic, numbered(10))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    addresses = {a: clusters.source.bootstrap, b: clusters.target.bootstrap}
    config = write_config(folder, addresses, [{"from": a, "to": b, "topics": {"include": [topic]}}])
    with Worker(config, tmp_path, python=python):
        wait_for_count(clusters.target.bootstrap, f"{a}.{topic}", 10)


def _copy_without_editable(site: Path, links: Path) -> str:
    """Link everything that is installed except the editable checkout, and return the folder to put on the path."""
    links.mkdir()
    for entry in site.iterdir():
        if "krabka" not in entry.name.lower():
            (links / entry.name).symlink_to(entry)
    return f"{links}\n"


def test_sigterm_ends_within_ten_seconds_while_both_clusters_hang(make_broker, scene, unique):
    brokers = [make_broker(), make_broker()]
    for broker in brokers:
        broker.start()
    for broker in brokers:
        broker.wait_ready()
    topic = f"hang-{unique}"
    flow = scene([topic], source=brokers[0].bootstrap, target=brokers[1].bootstrap)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(10))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 10)
    brokers[1].pause()
    produce(flow.source, topic, numbered(1000))
    time.sleep(1)
    brokers[0].pause()
    begun = time.monotonic()
    worker.stop(30)
    assert time.monotonic() - begun < 10
