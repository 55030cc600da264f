"""`make demo` as a person runs it, and the comparison that its exit code stands for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dev.demo.compare import Unreadable, differences
from dev.demo.settings import DemoFailed, DemoSettings
from dev.kafka import free_port
from tests.support.records import create_topic, produce

ROOT = Path(__file__).parents[2]
RECORDS = [
    {"value": b"1", "key": b"a", "timestamp": 1000, "headers": [("h", b"x"), ("h", b"")]},
    {"value": None, "key": b"a", "timestamp": 1001, "headers": []},
    {"value": b"", "key": None, "timestamp": 1002, "headers": []},
]


@pytest.mark.integration
@pytest.mark.slow
def test_it_ends_by_itself_when_every_record_is_compared(tmp_path):
    by_hand = tmp_path / ".demo" / "kafka" / "kept"
    by_hand.mkdir(parents=True)
    with demo(tmp_path, DEMO_SECONDS="4") as (running, ports):
        said = running.communicate(timeout=120)[0].splitlines()
        assert running.returncode == 0, said
        assert not listening(ports)
    produced = said[-2].split()[3].rstrip(",")
    assert int(produced) > 100
    assert said[-2] == f"demo: records produced {produced}, replicated and verified equal {produced}, lag 0"
    assert said[-1] == "demo: all arrived, in order and unchanged"
    assert f"demo: status: http://127.0.0.1:{ports[2]}/status" in "\n".join(said)
    assert by_hand.is_dir()


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "seconds", "code"),
    [
        (signal.SIGINT, "0", 0),
        (signal.SIGTERM, "600", 1),
        (signal.SIGKILL, "0", -signal.SIGKILL),
    ],
)
def test_nothing_is_left_behind_however_it_ends(tmp_path, ending, seconds, code):
    with demo(tmp_path, DEMO_SECONDS=seconds) as (running, ports):
        wait_until_running(running)
        assert listening(ports) == ports
        running.send_signal(ending)
        said = running.communicate(timeout=60)[0]
        assert running.returncode == code
        assert "Traceback" not in said
        if code >= 0:
            assert said.splitlines()[-1] == "demo: stopped"
            assert not listening(ports)
        else:
            wait_until_silent(ports)


@pytest.mark.parametrize("purpose", ["SOURCE", "TARGET", "WEB"])
def test_a_busy_port_is_one_line(tmp_path, purpose):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with demo(tmp_path, **{f"DEMO_{purpose}_PORT": str(port)}) as (running, _):
            said = running.communicate(timeout=30)[0]
    assert running.returncode == 1
    assert said.startswith(f"demo: stopped: port {port} for ")
    assert said.count("\n") == 1
    assert not (tmp_path / ".demo").exists()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("DEMO_SECONDS", "soon", "is not a number of seconds"),
        ("DEMO_SECONDS", "-1", "is not a number of seconds"),
        ("DEMO_SECONDS", "nan", "is not a number of seconds"),
        ("DEMO_SECONDS", "inf", "is not a number of seconds"),
        ("DEMO_WEB_PORT", "x", "is not a port"),
        ("DEMO_SOURCE_PORT", "0", "is not a port"),
        ("DEMO_TARGET_PORT", "65536", "is not a port"),
        ("DEMO_DELIVERY", "twice", "is not one of exactly-once, at-least-once"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(name, value, reason):
    with pytest.raises(DemoFailed, match=rf"^{name}={value} {reason}"):
        DemoSettings.read({name: value})


def test_ports_must_differ():
    with pytest.raises(DemoFailed, match="must differ"):
        DemoSettings.read({"DEMO_WEB_PORT": "19092"})


def test_defaults_also_stand_for_empty_variables():
    expected = DemoSettings(seconds=0, source_port=19092, target_port=29092, web_port=6066, delivery="exactly-once")
    assert DemoSettings.read({}) == expected
    assert DemoSettings.read({"DEMO_SECONDS": "", "DEMO_WEB_PORT": ""}) == expected


@pytest.mark.integration
@pytest.mark.parametrize(
    ("change", "equal"),
    [
        (lambda copies: copies, 3),
        (lambda copies: copies[:2], 2),
        (lambda copies: [*copies, copies[2]], 3),
        (lambda copies: [copies[1], copies[0], copies[2]], 1),
        (lambda copies: [copies[0] | {"value": b"2"}, *copies[1:]], 2),
        (lambda copies: [copies[0] | {"key": b"b"}, *copies[1:]], 2),
        (lambda copies: [copies[0] | {"timestamp": 1001}, *copies[1:]], 2),
        (lambda copies: [copies[0] | {"headers": copies[0]["headers"][::-1]}, *copies[1:]], 2),
        (lambda copies: [copies[0], copies[1] | {"value": b""}, copies[2]], 2),
        (lambda copies: [*copies[:2], copies[2] | {"key": b""}], 2),
        (lambda copies: [copies[0] | {"partition": 1}, *copies[1:]], 0),
        (lambda copies: [copies[0] | {"headers": RECORDS[0]["headers"]}, *copies[1:]], 2),
    ],
    ids=[
        "same",
        "short",
        "extra",
        "order",
        "value",
        "key",
        "timestamp",
        "headers",
        "tombstone",
        "null",
        "partition",
        "origin",
    ],
)
def test_every_difference_is_found(clusters, unique, change, equal):
    for broker in (clusters.source, clusters.target):
        create_topic(broker.bootstrap, f"demo-{unique}", 2)
    copies = [r | {"partition": 0, "headers": [*r["headers"], ("__krabka_origin", b"us-east")]} for r in RECORDS]
    produce(clusters.source.bootstrap, f"demo-{unique}", [r | {"partition": 0} for r in RECORDS])
    produce(clusters.target.bootstrap, f"demo-{unique}", change(copies))
    found, lines = differences(*brokers(clusters), f"demo-{unique}", "us-east", f"demo-{unique}")
    assert found == equal
    assert bool(lines) == (change(copies) != copies)


@pytest.mark.integration
def test_a_missing_copy_is_different_and_a_missing_cluster_is_an_error(clusters, unique):
    create_topic(clusters.source.bootstrap, f"demo-{unique}")
    produce(clusters.source.bootstrap, f"demo-{unique}", [{"value": b"1"}])
    found, lines = differences(*brokers(clusters), f"demo-{unique}", "us-east", f"us-east.demo-{unique}")
    assert (found, len(lines)) == (0, 1)
    with pytest.raises(Unreadable, match=rf"^demo-{unique} on 127\.0\.0\.1:\d+ cannot be read: "):
        differences(
            clusters.source.bootstrap, f"127.0.0.1:{free_port()}", f"demo-{unique}", "us-east", f"demo-{unique}"
        )


def brokers(clusters) -> tuple[str, str]:
    return clusters.source.bootstrap, clusters.target.bootstrap


@contextmanager
def demo(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    names = [f"DEMO_{purpose}_PORT" for purpose in ("SOURCE", "TARGET", "WEB")]
    variables = {name: str(free_port()) for name in names} | environment
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(("KRABKA_", "DEMO_"))}
    with subprocess.Popen(
        [sys.executable, "-m", "dev.demo"],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(ROOT)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        try:
            yield running, [int(variables[name]) for name in names]
        finally:
            running.kill()


def wait_until_running(running: subprocess.Popen[str]) -> None:
    """Read what the demonstration says, a line a second, until records flow."""
    said: list[str] = []
    assert running.stdout is not None
    for line in running.stdout:
        said.append(line)
        if line.endswith("  running\n"):
            return
        assert len(said) < 60, "".join(said)
    raise AssertionError("".join(said))


def listening(ports: list[int]) -> list[int]:
    found = []
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                found.append(port)
    return found


def wait_until_silent(ports: list[int]) -> None:
    deadline = time.monotonic() + 15
    while left := listening(ports):
        assert time.monotonic() < deadline, f"{left} are still served"
        time.sleep(0.1)
