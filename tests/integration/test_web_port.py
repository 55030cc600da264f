"""failures.md B69: workers of one machine that were given one port for their web servers."""

from __future__ import annotations

import pytest

from tests.support.records import create_topic, numbered, produce, wait_for_count

pytestmark = pytest.mark.integration


def test_a_worker_whose_port_is_taken_replicates_all_the_same_and_says_so_once(scene, unique):
    topic = f"port-{unique}"
    flow = scene([topic], tasks=4)
    create_topic(flow.source, topic, 4)
    first = flow.start("first")
    first.wait_running(flow.flow)
    second = flow.start("second", port=first.port)
    owned = lambda: first.flow(flow.flow)["tasks"]["owned"]  # noqa: E731
    first.wait(lambda: len(owned()) == 2, 30, "two tasks are the second worker's")
    assert second.process.poll() is None
    assert second.log.count(f"port {first.port} is taken") == 1
    assert "Traceback" not in second.log
    produce(flow.source, topic, numbered(40, 4))
    wait_for_count(flow.target, flow.remote(topic), 40)
    first.kill()
    produce(flow.source, topic, numbered(40, 4, start=40))
    wait_for_count(flow.target, flow.remote(topic), 80, 40)
    assert second.stop() == 0
