"""Clusters that ask who comes: every login, no right too many, what is missing is named, and secrets stay secret."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from app.core.needed_rights import Right
from tests.integration.conftest import Scene
from tests.support.groups import committed, consume
from tests.support.records import create_topic, numbered, produce, wait_for_count
from tests.support.secured import SECRET, USER, Secured, grant, secured, take
from tests.support.worker import run, write_config

pytestmark = [pytest.mark.integration, pytest.mark.slow]

#: The configuration names it; the process that reads it has it.
ENVIRONMENT = {"COPIER_SECRET": SECRET}
#: Six characters of it in a row are too many.
PARTS = [SECRET[start : start + 6] for start in range(len(SECRET) - 5)]

ALL_OF_USER = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{USER}", None, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture(scope="module")
def clusters_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured")) as found:
        yield found


@pytest.fixture
def guarded(clusters_of_module: Secured, unique: str, tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Return a function that makes a flow between the guarded clusters; nothing is granted yet."""
    brokers, made = clusters_of_module, []
    for broker in (brokers.source, brokers.target):
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in client.delete_acls([ALL_OF_USER]).values():
            future.result(20)

    def make(topic: str, login: str = "SCRAM-SHA-256", change: Any = None, **flow: Any) -> Scene:
        a, b = f"a-{unique}", f"b-{unique}"
        entry = {"from": a, "to": b, "topics": {"include": [topic]}, "groups": {"include": [f"g-{unique}"]}, **flow}
        entries = {a: brokers.cluster(brokers.source, login), b: brokers.cluster(brokers.target, login)}
        if change is not None:
            change(entries[a])
        config = write_config(tmp_path, entries, [entry], runtime={"checkpoint_interval": "1s"})
        text = config.read_text(encoding="utf-8")
        document = yaml.safe_load(text)
        for cluster in document["clusters"].values():
            security = cluster["security"]
            security |= {name: "${COPIER_SECRET}" for name, value in security.items() if value == SECRET}
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
        made.append(Scene(brokers.source.bootstrap, brokers.target.bootstrap, a, b, tmp_path, config))
        return made[-1]

    yield make
    for scene in made:
        for worker in scene.workers:
            worker.kill()


def documented(flow: Scene) -> list[Right]:
    """Return what `faust -A app rights` lists."""
    ran = run(flow.config, "rights", "--json", **ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    return [Right(**{**row, "operations": tuple(row["operations"])}) for row in json.loads(ran.stdout)["rights"]]


def grant_all(brokers: Secured, flow: Scene) -> list[Right]:
    rights = documented(flow)
    for broker, alias in ((brokers.source, flow.source_alias), (brokers.target, flow.target_alias)):
        grant(broker, [right for right in rights if right.cluster == alias])
    return rights


def denied(brokers: Secured, since: dict[Path, int]) -> list[str]:
    """Return what the brokers' authorizers refused to the user."""
    return [
        line
        for path, start in since.items()
        for line in path.read_text(encoding="utf-8", errors="replace")[start:].splitlines()
        if "is Denied" in line and f"User:{USER}" in line
    ]


def shows_a_secret(text: str) -> list[str]:
    return [part for part in PARTS if part in text or json.dumps(part)[1:-1] in text]


@pytest.mark.parametrize("login", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "certificate"])
def test_every_login_does_everything_with_the_rights_that_are_listed_and_shows_no_secret(
    clusters_of_module, guarded, unique, login
):
    """failures.md B66: at every level of logging, in every page, in what commands print."""
    brokers, topic, group = clusters_of_module, f"t-{unique}", f"g-{unique}"
    delivery = "at-least-once" if login == "SCRAM-SHA-512" else "exactly-once"
    flow = guarded(topic, login, delivery=delivery, sync={"group_offsets": True})
    grant_all(brokers, flow)
    logs = {broker.log_path: len(broker.log_path.read_text()) for broker in (brokers.source, brokers.target)}
    create_topic(flow.source, topic, 2)
    produce(flow.source, topic, numbered(60, 2))
    read = consume(flow.source, group, topic, 25)
    worker = flow.start(loglevel="debug", **ENVIRONMENT)
    wait_for_count(flow.target, flow.remote(topic), 60)
    moved = {(flow.remote(topic), partition) for _, partition in committed(flow.source, group)}
    worker.wait(lambda: committed(flow.target, group).keys() == moved, 40, "offsets of the group written back")
    rest = consume(flow.target, group, flow.remote(topic), 60)
    assert sorted(read + rest, key=int) == [b"%d" % n for n in range(60)]

    client = AdminClient({"bootstrap.servers": flow.source})
    client.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
    produce(flow.source, topic, [{"value": b"new", "partition": 2}])
    wait_for_count(flow.target, flow.remote(topic), 61)
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 20, "no lag")
    assert worker.get("/health") == (200, {"healthy": True, "reasons": []})
    assert worker.flow(flow.flow)["held"] == {}
    assert denied(brokers, logs) == []
    pages = json.dumps([worker.get(path) for path in ("/status", "/history", "/health")])
    commands = [run(flow.config, *words, **ENVIRONMENT) for words in (["check"], ["verify", flow.flow])]
    assert [ran.returncode for ran in commands] == [0, 0], [ran.stdout + ran.stderr for ran in commands]
    asked = time.monotonic()
    assert worker.stop() == 0
    assert time.monotonic() - asked < 10  # a TLS connection that waits for a farewell takes 30 s
    printed = "".join(ran.stdout + ran.stderr for ran in commands)
    assert not shows_a_secret(worker.log + pages + printed)


def lacking(rights: list[Right], cluster: str, resource: str, name: str, operation: str | None) -> Right:
    """Return what is taken away: an operation on a resource, or all of them."""
    (found,) = [right for right in rights if (right.cluster, right.resource, right.name) == (cluster, resource, name)]
    operations = found.operations if operation is None else (operation,)
    assert set(operations) <= set(found.operations)
    return Right(
        cluster=cluster, resource=found.resource, pattern=found.pattern, name=name, operations=operations, why=""
    )


@pytest.mark.parametrize(
    ("side", "resource", "name", "operation", "said"),
    [
        ("source", "topic", "TOPIC", "READ", "does not let this user read it"),
        ("source", "topic", "TOPIC", None, "does not show it to this user"),
        ("target", "topic", "COPIES", "WRITE", "not authorised"),
        ("target", "topic", "COPIES", "CREATE", "cannot be made on"),
        ("target", "topic", "krabka-replicator", None, "grant the right to"),
        ("target", "group", "krabka-replicator", None, "not authorised for the group"),
        ("target", "transactional-id", "krabka-replicator", None, "not authorised for the transactional id"),
    ],
)
def test_a_missing_right_is_named_and_work_goes_on_when_it_is_granted(
    clusters_of_module, guarded, unique, side, resource, name, operation, said
):
    brokers, topic = clusters_of_module, f"t-{unique}"
    flow = guarded(topic, delivery="exactly-once")
    rights = grant_all(brokers, flow)
    broker, alias = (brokers.source, flow.source_alias) if side == "source" else (brokers.target, flow.target_alias)
    name = {"TOPIC": topic, "COPIES": flow.remote("")}.get(name, name)
    missing = lacking(rights, alias, resource, name, operation)
    take(broker, [missing])
    if missing.operations == ("READ",):  # which implies DESCRIBE; without either it is the next case
        grant(broker, [replace(missing, operations=("DESCRIBE",))])
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(5))
    worker = flow.start(**ENVIRONMENT)

    def told() -> bool:
        found = worker.flow(flow.flow)
        return bool(found) and said in json.dumps([found["held"], found["error"]])

    worker.wait(told, 40, f"{said!r} in the status")
    log = worker.log
    assert said in log
    if (side, resource) != ("target", "group") and resource != "transactional-id":  # of these brokers tell nothing
        checked = run(flow.config, "check", "--json", **ENVIRONMENT)
        found = [finding for finding in json.loads(checked.stdout)["findings"] if finding["level"] != "ok"]
        assert found, checked.stdout
        assert all(finding["fix"] for finding in found)
    time.sleep(2)
    assert len(worker.log) - len(log) < 20_000, "the log is flooded"
    grant(broker, [missing])
    wait_for_count(flow.target, flow.remote(topic), 5)
    worker.wait(lambda: worker.flow(flow.flow)["held"] == {} and worker.get("/health")[0] == 200, 30, "healthy")


def wrong_password(cluster: dict[str, Any]) -> None:
    cluster["security"]["password"] = "not it, " + SECRET[::-1]


def wrong_authority(cluster: dict[str, Any]) -> None:
    del cluster["security"]["ca_location"]


def plain(cluster: dict[str, Any]) -> None:
    cluster["security"] = {"protocol": "SASL_PLAINTEXT", "username": USER, "password": SECRET}


def wrong_token(cluster: dict[str, Any]) -> None:
    cluster["security"]["client_secret"] = "not it"  # noqa: S105 - it is wrong


@pytest.mark.parametrize(
    ("login", "change", "said"),
    [
        ("PLAIN", wrong_password, "the login is refused"),
        ("SCRAM-SHA-256", wrong_password, "the login is refused"),
        ("certificate", wrong_authority, "its certificate is not trusted"),
        ("PLAIN", plain, "127.0.0.1"),
        ("OAUTHBEARER", wrong_token, "gives no token: 401 invalid_client"),
    ],
)
def test_a_login_that_fails_says_why(clusters_of_module, guarded, unique, login, change, said):
    topic = f"t-{unique}"
    flow = guarded(topic, login, change)
    worker = flow.start(loglevel="debug", **ENVIRONMENT)
    worker.wait(lambda: said in str(worker.flow(flow.flow).get("error")), 30, f"{said!r} as the flow's error")
    ran = run(flow.config, "check", **ENVIRONMENT)
    assert ran.returncode == 1
    assert said in ran.stdout
    worker.kill()
    assert not shows_a_secret(worker.log + ran.stdout + ran.stderr)
