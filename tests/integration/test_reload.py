"""A running worker takes up another configuration: what changed, and nothing else, is built anew."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
import yaml

from tests.support.records import create_topic, numbered, produce, read_all, wait_for_count
from tests.support.steady import Steady
from tests.support.worker import Worker, run

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOKEN = "a-token-that-is-long-enough"  # noqa: S105 - of a test


def edit(flow: Any, change: Any) -> None:
    document = yaml.safe_load(flow.config.read_text(encoding="utf-8"))
    change(document)
    flow.config.write_text(yaml.safe_dump(document), encoding="utf-8")


def configuration(worker: Worker) -> dict[str, Any]:
    _, status = worker.get("/status")
    return status["configuration"] if status else {}


def test_flows_change_come_and_go_under_traffic_and_others_do_not_notice(scene, unique):
    """One at least once, where an end that commits too little would double records; the one that comes exactly once."""
    first, second, third = (f"{name}-{unique}" for name in ("one", "two", "three"))
    flow = scene([first], delivery="at-least-once", more={"web": {"token": TOKEN}})
    back = f"{flow.target_alias}__{flow.source_alias}"
    for topic in (first, second):
        create_topic(flow.source, topic, 2)
    create_topic(flow.target, third)
    worker = flow.start()
    worker.wait_running(flow.flow)
    url = f"http://127.0.0.1:{worker.port}"

    with Steady(flow.source, first, 2, 300) as steady:
        wait_for_count(flow.target, flow.remote(first), 100)
        before = worker.flow(flow.flow)["counts"]
        edit(flow, lambda d: d["flows"][0].update(limits={"bytes_per_second": 10_000_000}))
        ran = run(flow.config, "reload", "--url", url)
        assert (ran.returncode, ran.stdout.strip()) == (0, f"{url}: another limit for {flow.flow}"), ran.stderr
        assert worker.flow(flow.flow)["limits"]["bytes_per_second"] == 10_000_000
        assert worker.flow(flow.flow)["counts"]["rebalances"] == before["rebalances"]  # it did not notice

        # A flow that leads back makes a circle, so the first one's rules are others: both change.
        edit(
            flow,
            lambda d: d["flows"].append(
                {
                    "from": flow.target_alias,
                    "to": flow.source_alias,
                    "topics": {"include": [third]},
                    "delivery": "exactly-once",
                }
            ),
        )
        edit(flow, lambda d: d["flows"][0]["topics"].update(include=[first, second]))
        code, answer = worker.post("/reload", TOKEN)
        assert (code, answer["started"], answer["rebuilt"]) == (200, [back], [flow.flow])
        produce(flow.source, second, numbered(50, 2))
        produce(flow.target, third, numbered(20))
        wait_for_count(flow.target, flow.remote(second), 50)
        wait_for_count(flow.source, f"{flow.target_alias}.{third}", 20)

        rebalances = worker.flow(flow.flow)["counts"]["rebalances"]
        edit(flow, lambda d: d["flows"][0].update(tasks="many"))
        loaded = configuration(worker)["loaded"]
        code, answer = worker.post("/reload", TOKEN)
        assert code == 409
        assert "flows[0].tasks" in answer["error"]
        assert "flows[0].tasks" in configuration(worker)["problem"]
        assert configuration(worker)["loaded"] == loaded
        assert run(flow.config, "reload", "--url", url).returncode == 2
        assert worker.flow(flow.flow)["state"] == "running"
        edit(flow, lambda d: d["flows"][0].update(tasks=8))
        edit(flow, lambda d: d["runtime"].update(drain_timeout="4s"))
        code, answer = worker.post("/reload", TOKEN)
        assert (code, "runtime" in answer["error"]) == (409, True)
        edit(flow, lambda d: d["runtime"].pop("drain_timeout"))

        # nothing leads back any more: the flow that stays has its first rules again
        edit(flow, lambda d: d["flows"].pop())
        worker.process.send_signal(signal.SIGHUP)
        worker.wait(lambda: configuration(worker)["problem"] is None, 20, "reloaded")
        _, status = worker.get("/status")
        assert list(status["flows"]) == [flow.flow]
        assert list(status["targets"]) == [flow.target_alias]
        worker.wait(lambda: worker.flow(flow.flow)["counts"]["rebalances"] > rebalances, 20, "built anew")
    assert worker.post("/reload", "not the token")[0] == 403
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 30, "no lag")
    produce(flow.target, third, numbered(5))
    time.sleep(2)
    assert len(read_all(flow.source, f"{flow.target_alias}.{third}")) == 20  # its flow is gone
    values = [record.value for record in read_all(flow.target, flow.remote(first))]
    originals = [record.value for record in read_all(flow.source, first)]
    assert sorted(values) == sorted(originals)  # nothing was lost or doubled by all that
    assert len(originals) == steady.count
    assert worker.stop() == 0
