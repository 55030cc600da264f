"""Java's MirrorClient and RemoteClusterUtils, as failover scripts use them, on a target that we fed."""

from __future__ import annotations

import pytest

from tests.support.groups import checkpoint, commit
from tests.support.java import MirrorJudge
from tests.support.records import by_partition, create_topic, numbered, produce, topics, wait_for_count

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("separator", [".", "_"])
def test_java_s_own_client_gives_the_right_answers(scene, unique, delivery, separator):
    topic, group = f"judged-{unique}", f"g-{unique}"
    intervals = {"runtime": {"checkpoint_interval": "1s"}}
    flow = scene([topic], delivery=delivery, separator=separator, more=intervals)
    remote = f"{flow.source_alias}{separator}{topic}"
    create_topic(flow.source, topic, 2)
    # heartbeats written on the source come along and tell the distance
    if "heartbeats" not in topics(flow.source):
        create_topic(flow.source, "heartbeats")
    produce(flow.source, topic, numbered(4000, 2))
    worker = flow.start()
    wait_for_count(flow.target, remote, 4000)
    commit(flow.source, group, topic, {0: 1234, 1: 2000})

    judge = MirrorJudge(flow.target, **{"replication.policy.separator": separator})
    expected = worker.wait(lambda: len(found := judge.translate(flow.source_alias, group)) == 2 and found, 30)
    written = [checkpoint(flow.target, flow.source_alias, group, remote, p, separator=separator) for p in (0, 1)]
    assert expected == {(remote, c.partition): c.downstream for c in written if c is not None}
    copies = by_partition(wait_for_count(flow.target, remote, 4000))
    assert copies[0][1233].offset < expected[remote, 0] <= copies[0][1234].offset
    assert expected[remote, 1] == copies[1][-1].offset + 1
    assert flow.source_alias in judge.upstream_clusters()
    assert judge.hops(flow.source_alias) == 1
    assert judge.hops("nowhere") == -1
    assert f"{flow.source_alias}{separator}checkpoints{separator}internal" in judge.checkpoint_topics()
    assert f"{flow.source_alias}{separator}heartbeats" in judge.heartbeat_topics()
    assert judge.remote_topics(flow.source_alias) == {remote, f"{flow.source_alias}{separator}heartbeats"}
