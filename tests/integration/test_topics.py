"""Topics on real brokers: settings, rights, growth, names, many at once, and the plan of it all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from dev.kafka.security import AUTHORIZED
from tests.support.records import create_topic, end_offsets, numbered, produce, read_all, topics, wait_for_count
from tests.support.worker import ROOT

pytestmark = pytest.mark.integration


def result(bootstrap: str, call: Callable[[AdminClient], Any]) -> Any:
    """Return what an admin call leads to; the client has to live as long."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    answer = call(client)
    if isinstance(answer, Future):
        return answer.result(30)
    return {key: future.result(30) for key, future in answer.items()}


def delete(bootstrap: str, topic: str) -> None:
    result(bootstrap, lambda client: client.delete_topics([topic]))


def settings(bootstrap: str, topic: str) -> dict[str, str]:
    """Return what was set for the topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = result(bootstrap, lambda client: client.describe_configs([resource]))[resource]
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in found.items() if entry.source == own}


def alter(bootstrap: str, topic: str, **changes: str | None) -> None:
    entries = [
        ConfigEntry(
            name.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in changes.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    result(bootstrap, lambda client: client.incremental_alter_configs([resource]))


def plan(flow: Any) -> dict[str, Any]:
    """Return what `faust -A app plan --json` says of the flow."""
    faust = Path(sys.executable).parent / "faust"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KRABKA_")}
    environment["KRABKA_REPLICATOR_CONFIG"] = str(flow.config)
    done = subprocess.run(
        [str(faust), "-A", "app", "--datadir", str(flow.folder / "plan-data"), "plan", "--json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["flows"][0]


def test_settings_are_there_from_the_start_and_follow_later(scene, unique):
    """failures.md B36, and B37: a source that closed its topic to old records has old ones to copy all the same."""
    topic = f"set-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic, retention_ms="5000000", min_insync_replicas="1", max_message_bytes="3000000")
    produce(flow.source, topic, [{"value": b"%d" % n, "timestamp": 1_680_000_000_000} for n in range(5)])
    alter(flow.source, topic, message_timestamp_before_max_ms="60000")
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 5)
    copy = flow.remote(topic)
    assert settings(flow.target, copy) == {"retention.ms": "5000000", "max.message.bytes": "3000000"}

    alter(flow.target, copy, min_insync_replicas="1", follower_replication_throttled_replicas="*")  # by hand, excluded
    by_hand = {"min.insync.replicas": "1", "follower.replication.throttled.replicas": "*"}
    alter(flow.source, topic, retention_ms=None, cleanup_policy="compact,delete", max_message_bytes="2000000")
    expected = {"cleanup.policy": "compact,delete", "max.message.bytes": "2000000", **by_hand}
    worker.wait(lambda: settings(flow.target, copy) == expected, 20, "settings in step")


def test_settings_that_must_not_be_kept_in_step_stay(scene, unique):
    topic = f"still-{unique}"
    flow = scene([topic], sync={"topic_configs": False})
    create_topic(flow.source, topic, retention_ms="5000000")
    produce(flow.source, topic, numbered(1))
    flow.start()
    wait_for_count(flow.target, flow.remote(topic), 1)
    alter(flow.source, topic, retention_ms="6000000")
    assert [step for step in plan(flow)["steps"] if step["topic"] == topic] == []
    time.sleep(3)
    assert settings(flow.target, flow.remote(topic)) == {"retention.ms": "5000000"}


def test_names_that_the_target_refuses_hold_that_topic_alone(scene, unique):
    """failures.md B29 and B30."""
    flow = scene([f"*{unique}*"])
    room = 249 - len(flow.source_alias) - 1
    fits, long = f"{unique}".ljust(room, "x"), f"{unique}".ljust(249, "y")
    ok, clash = f"ok-{unique}", f"c.{unique}.y"
    local = flow.remote(clash).replace(".", "_")
    create_topic(flow.target, local)
    for topic in (fits, long, ok, clash):
        create_topic(flow.source, topic)
        produce(flow.source, topic, numbered(5))

    before = plan(flow)
    assert {step["topic"] for step in before["steps"] if unique in step["topic"]} == {fits, ok}
    assert [(r["topic"], "collides" in r["reason"]) for r in before["refused"]] == [(clash, True)]
    assert "249" in before["left"][long]
    assert topics(flow.target).keys() & {flow.remote(fits), flow.remote(ok)} == set()

    worker = flow.start()
    for topic in (fits, ok):
        wait_for_count(flow.target, flow.remote(topic), 5)
    status = worker.wait(lambda: (f := worker.flow(flow.flow)) and f["held"] and f)
    assert "collides" in status["held"][clash]
    assert "249" in status["not_selected"][long]
    assert not read_all(flow.target, local)

    delete(flow.target, local)
    wait_for_count(flow.target, flow.remote(clash), 5)


def test_a_larger_target_keeps_its_partitions(scene, unique):
    """failures.md B38."""
    topic = f"large-{unique}"
    flow = scene([topic])
    create_topic(flow.source, topic, 2)
    create_topic(flow.target, flow.remote(topic), 5)
    produce(flow.source, topic, numbered(20, 2))
    flow.start()
    wait_for_count(flow.target, flow.remote(topic), 20)
    assert list(end_offsets(flow.target, flow.remote(topic)).values()) == [10, 10, 0, 0, 0]


@pytest.mark.slow
def test_three_hundred_topics_flow_within_a_minute(scene, unique):
    """failures.md B70."""
    flow = scene([f"many-{unique}-*"])
    names = [f"many-{unique}-{number}" for number in range(300)]
    result(flow.source, lambda client: client.create_topics([NewTopic(name, 1, 1) for name in names]))
    producer = Producer({"bootstrap.servers": flow.source})
    for name in names:
        producer.produce(name, b"0")
    assert producer.flush(30) == 0
    begun = time.monotonic()
    worker, _ = flow.start("one"), flow.start("two")

    def arrived() -> bool:
        shares = [w.flow(flow.flow).get("partitions", ()) for w in flow.workers]
        return sum(row["position"] == 1 for share in shares for row in share if row["topic"] in set(names)) == 300

    worker.wait(arrived, 60, "300 topics copied")
    assert time.monotonic() - begun < 60
    late = names[:3]
    assert [len(read_all(flow.target, flow.remote(name))) for name in late] == [1, 1, 1]


def test_own_topics_with_other_values_are_reported(make_broker, clusters, scene, unique):
    """failures.md B41."""
    target = make_broker(num_partitions="8", log_cleanup_policy="delete")
    target.start()
    target.wait_ready()
    create_topic(target.bootstrap, "heartbeats", 8)
    topic = f"own-{unique}"
    flow = scene([topic], target=target.bootstrap)
    controls = f"krabka-replicator-{flow.target_alias}-controls"
    create_topic(target.bootstrap, controls, 2, cleanup_policy="delete")
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(1))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 1)
    worker.wait(lambda: "topic heartbeats has 8 partitions, 1 are expected" in worker.log, 20, "the report")
    assert "topic heartbeats has cleanup.policy=delete, compact is expected" in worker.log
    problems = worker.wait(lambda: worker.flow(flow.flow)["topic_problems"])
    assert f"topic {controls} has 2 partitions, 1 are expected" in problems
    assert f"topic {controls} has cleanup.policy=delete, compact is expected" in problems
    assert topics(flow.target)["krabka-replicator-offsets"] == 32
    assert settings(flow.target, "krabka-replicator-offsets")["cleanup.policy"] == "compact"
    assert settings(flow.target, f"krabka-replicator-{flow.flow}-tasks")["cleanup.policy"] == "delete"


def acl(
    name: str, operation: AclOperation, permission: str = "ALLOW", pattern: str = "LITERAL", who: str = "ann"
) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType[pattern],
        f"User:{who}",
        "*",
        operation,
        AclPermissionType[permission],
    )


def grant(bootstrap: str, acls: Iterable[AclBinding]) -> None:
    result(bootstrap, lambda client: client.create_acls(list(acls)))


def acls(bootstrap: str) -> set[AclBinding]:
    everything = AclBindingFilter(
        ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return set(result(bootstrap, lambda client: client.describe_acls(everything)))


@pytest.mark.slow
def test_rights_to_read_and_prohibitions_go_along_and_only_ours_are_removed(make_broker, scene, unique):
    """failures.md B40."""
    brokers = [make_broker(**AUTHORIZED), make_broker(**AUTHORIZED)]
    for broker in brokers:
        broker.start()
    for broker in brokers:
        broker.wait_ready()
    topic = f"rights-{unique}"
    flow = scene([topic], source=brokers[0].bootstrap, target=brokers[1].bootstrap, sync={"acls": True})
    create_topic(flow.source, topic)
    read = acl(topic, AclOperation.READ, who="bob")
    source = [
        acl(topic, AclOperation.ALL),
        acl(topic, AclOperation.WRITE),
        acl(topic, AclOperation.WRITE, "DENY"),
        acl("rights", AclOperation.DESCRIBE, pattern="PREFIXED"),
        acl("elsewhere", AclOperation.READ),
        read,
    ]
    grant(flow.source, source)
    by_hand = acl(flow.remote(topic), AclOperation.READ, who="carl")
    grant(flow.target, [by_hand])
    copies = {
        acl(flow.remote(topic), AclOperation.READ),
        acl(flow.remote(topic), AclOperation.WRITE, "DENY"),
        acl(flow.remote("rights"), AclOperation.DESCRIBE, pattern="PREFIXED"),
        acl(flow.remote(topic), AclOperation.READ, who="bob"),
    }
    produce(flow.source, topic, numbered(1))
    worker = flow.start()
    worker.wait(lambda: acls(flow.target) == copies | {by_hand}, 30, "rights carried")
    assert worker.stop() == 0

    worker = flow.start()  # what was added is remembered
    worker.wait_running(flow.flow)
    removed = AclBindingFilter(*read._to_tuple())
    result(flow.source, lambda client: client.delete_acls([removed]))
    copies.discard(acl(flow.remote(topic), AclOperation.READ, who="bob"))
    worker.wait(lambda: acls(flow.target) == copies | {by_hand}, 30, "the right removed")


def test_a_deleted_topic_is_deleted_on_the_target_only_if_the_flow_says_so(scene, unique):
    gone, stays = f"gone-{unique}", f"stays-{unique}"
    flow = scene([gone, stays], sync={"deletions": True})
    for topic in (gone, stays):
        create_topic(flow.source, topic)
        produce(flow.source, topic, numbered(3))
    worker = flow.start()
    for topic in (gone, stays):
        wait_for_count(flow.target, flow.remote(topic), 3)
    worker.wait(lambda: (f := worker.flow(flow.flow)) and f["lag"] == 0 and f["records"] >= 6)
    delete(flow.source, gone)
    worker.wait(lambda: flow.remote(gone) not in topics(flow.target), 20, "the copy deleted")
    produce(flow.source, stays, numbered(3, start=3))
    wait_for_count(flow.target, flow.remote(stays), 6)
    assert gone not in {row["topic"] for row in worker.flow(flow.flow)["partitions"]}
