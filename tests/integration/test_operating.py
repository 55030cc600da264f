"""What operators see and do: metrics, status, control that every worker follows, and the commands."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.records import create_topic, numbered, produce, read_all, wait_for_count
from tests.support.worker import Worker, run, write_config

pytestmark = pytest.mark.integration

TOKEN = "not-to-be-guessed-0123"  # noqa: S105 - of the test's own workers


def text(worker: Worker, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}{path}", timeout=5) as answer:
        return answer.read().decode()


def post(worker: Worker, path: str, token: str | None = TOKEN) -> tuple[int, dict[str, str]]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{worker.port}{path}", method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - http, written above
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def metrics(worker: Worker) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text(worker, "/metrics")):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def wait_healthy(worker: Worker) -> None:
    worker.wait(lambda: worker.get("/health")[0] == 200, 60, "healthy")


def wait_state(worker: Worker, flow: str, state: str) -> None:
    worker.wait(lambda: worker.flow(flow).get("state") == state, 20, f"{flow} {state}")


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_paused_flow_stands_still_on_every_worker_and_over_restarts(scene, unique, delivery):
    topic = f"pause-{unique}"
    flow = scene([topic], delivery=delivery, more={"web": {"token": TOKEN}})
    create_topic(flow.source, topic, 4)
    produce(flow.source, topic, numbered(400, 4))
    one, two = flow.start("one"), flow.start("two")
    wait_for_count(flow.target, flow.remote(topic), 400)
    for worker in (one, two):
        wait_healthy(worker)

    assert post(one, f"/flows/{flow.flow}/pause")[0] == 202
    for worker in (one, two):
        wait_state(worker, flow.flow, "paused")
    produce(flow.source, topic, numbered(200, 4, 400))
    time.sleep(3)
    produce(flow.source, topic, numbered(200, 4, 600))
    assert len(read_all(flow.target, flow.remote(topic))) == 400
    assert one.get("/health")[0] == 200, "a pause is no failure"
    assert sum(len(worker.flow(flow.flow)["tasks"]["owned"]) for worker in (one, two)) == 8, "ownership stays"
    lag = lambda: sum(worker.flow(flow.flow)["lag"] for worker in (one, two))  # noqa: E731
    one.wait(lambda: lag() == 400, 15, "what waits is seen")

    assert one.stop() == 0
    three = flow.start("three")
    wait_state(three, flow.flow, "paused")
    time.sleep(3)
    assert len(read_all(flow.target, flow.remote(topic))) == 400

    ran = run(flow.config, "resume", flow.flow)
    assert ran.returncode == 0, ran.stderr
    values = [int(r.value) for r in wait_for_count(flow.target, flow.remote(topic), 800, 40)]
    assert sorted(values) == list(range(800))


def test_a_restart_builds_the_flow_anew_and_copies_nothing_twice(scene, unique):
    topic = f"restart-{unique}"
    flow = scene([topic], more={"web": {"token": TOKEN}})
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(100))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 100)
    wait_healthy(worker)
    assert post(worker, f"/flows/{flow.flow}/restart")[0] == 202
    worker.wait(lambda: "built anew on request" in worker.log, 20, "restart")
    worker.wait_running(flow.flow)
    produce(flow.source, topic, numbered(100, start=100))
    values = [int(r.value) for r in wait_for_count(flow.target, flow.remote(topic), 200)]
    assert values == list(range(200))
    assert worker.log.count("built anew on request") == 1


def test_only_who_shows_the_token_changes_anything(scene, unique):
    flow = scene([f"token-{unique}"], more={"web": {"token": TOKEN}})
    worker = flow.start()
    worker.wait_running(flow.flow)
    path = f"/flows/{flow.flow}/pause"
    for wrong in (None, "", "x", TOKEN[:-1], TOKEN + "x"):
        assert post(worker, path, wrong)[0] == 403, wrong
    assert post(worker, "/flows/nobody__knows/pause")[0] == 404
    assert post(worker, f"/flows/{flow.flow}/explode")[0] == 404
    assert worker.flow(flow.flow)["state"] == "running"
    for path in ("/", "/status", "/metrics", "/history"):
        assert TOKEN not in text(worker, path)
    assert TOKEN not in worker.log
    for closed in ("/table/", "/router/", "/graph/", "/assignment/"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            text(worker, closed)


def test_without_a_token_nobody_changes_anything(scene, unique):
    flow = scene([f"closed-{unique}"])
    worker = flow.start()
    worker.wait_running(flow.flow)
    code, answer = post(worker, f"/flows/{flow.flow}/pause", "")
    assert (code, "web.token" in answer["error"]) == (403, True)


def test_metrics_tell_of_what_a_worker_carries_and_of_nothing_else(scene, unique):
    topic = f"metrics-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic, 8)
    produce(flow.source, topic, numbered(800, 8))
    one = flow.start("one")
    wait_for_count(flow.target, flow.remote(topic), 800)
    one.wait(lambda: one.flow(flow.flow)["lag"] == 0, 20, "no lag")
    found = metrics(one)
    partitions = {
        labels["partition"] for labels, _ in found["krabka_replicator_lag_records"] if labels["topic"] == topic
    }
    assert partitions == {str(n) for n in range(8)}
    mirrored = found["kafka_connect_mirror_mirrorsourceconnector_record_count_total"]
    assert sum(value for labels, value in mirrored if labels["topic"] == flow.remote(topic)) == 800
    assert sum(value for _, value in found["krabka_replicator_records_total"]) >= 800
    assert sum(value for _, value in found["krabka_replicator_commits_total"]) > 0
    assert sum(value for _, value in found["krabka_replicator_rebalances_total"]) > 0
    latency = {labels["le"]: value for labels, value in found["krabka_replicator_replication_latency_seconds_bucket"]}
    assert latency["+Inf"] >= 800

    two = flow.start("two")
    two.wait_running(flow.flow)
    one.wait(lambda: 0 < len(one.flow(flow.flow)["tasks"]["owned"]) < 8, 30, "shared")
    owned = {str(row["partition"]) for row in one.flow(flow.flow)["partitions"] if row["topic"] == topic}
    assert 0 < len(owned) < 8
    now = {
        labels["partition"] for labels, _ in metrics(one)["krabka_replicator_lag_records"] if labels["topic"] == topic
    }
    assert now == owned, "gauges of partitions that moved away disappear"


def test_lag_and_flows_need_no_worker(scene, unique):
    topic = f"lag-{unique}"
    flow = scene([topic], delivery="exactly-once")
    create_topic(flow.source, topic, 2)
    produce(flow.source, topic, numbered(100, 2))
    before = json.loads(run(flow.config, "lag", "--json").stdout)["flows"][0]
    assert sum(row["lag"] for row in before["partitions"] if row["topic"] == topic) == 100, before
    assert before["lag"] == sum(row["lag"] for row in before["partitions"])
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 100)
    assert worker.stop() == 0
    produce(flow.source, topic, numbered(30, 2))
    after = json.loads(run(flow.config, "lag", flow.flow, "--json").stdout)["flows"][0]
    rows = {row["partition"]: (row["position"], row["lag"]) for row in after["partitions"] if row["topic"] == topic}
    assert rows == {0: (50, 15), 1: (50, 15)}
    shown = run(flow.config, "flows")
    assert shown.returncode == 0, shown.stderr
    assert "no worker" in shown.stdout
    assert run(flow.config, "lag", "nobody__knows").returncode == 2


def test_check_says_what_is_well_and_what_is_not(scene, unique, tmp_path):
    topic = f"check-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic)
    well = run(flow.config, "check")
    assert well.returncode == 0, well.stdout + well.stderr
    # the clusters are shared: heartbeats of other tests' flows are carried, too
    assert re.search(r"carries [1-9]\d* topics", well.stdout), well.stdout
    assert "no record" in well.stdout
    assert well.stdout.count("its Kafka has all requests that are used") == 2
    future = int(time.time() + 1800) * 1000
    produce(flow.source, topic, [{"value": b"early", "timestamp": future}])
    early = run(flow.config, "check")
    assert early.returncode == 0, early.stdout + early.stderr
    assert re.search(rf"warning .*a record of {topic}-0 on {flow.source_alias} is 1[78]\d\d s ahead", early.stdout)
    folder = tmp_path / "other"
    folder.mkdir()
    same = write_config(folder, {"a": flow.source, "b": flow.source}, [{"from": "a", "to": "b"}])
    ran = run(same, "check", "--json")
    assert ran.returncode == 1
    errors = [found for found in json.loads(ran.stdout)["findings"] if found["level"] == "error"]
    assert [found["about"] for found in errors] == ["clusters"]
    down = write_config(folder, {"a": flow.source, "b": "127.0.0.1:1"}, [{"from": "a", "to": "b"}])
    ran = run(down, "check")
    assert ran.returncode == 1
    assert "cluster b" in ran.stdout
