"""The launcher that every other test leans on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from dev.kafka import BrokerFailed, JarsMissing, PortBusy, class_path, free_port, jars
from tests.support.records import create_topic, numbered, produce, read_all, topics

pytestmark = pytest.mark.integration


def test_data_survives_stop_kill_and_pause(make_broker):
    broker = make_broker()
    broker.start()
    broker.wait_ready()
    create_topic(broker.bootstrap, "kept", 2)
    for number, end in enumerate((broker.stop, broker.kill)):
        produce(broker.bootstrap, "kept", numbered(10, 2, 10 * number))
        pid = broker.pid
        end()
        assert broker.pid is None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        broker.restart()
        assert topics(broker.bootstrap)["kept"] == 2
    assert len(read_all(broker.bootstrap, "kept")) == 20

    broker.pause()
    with pytest.raises(Exception, match=r"timed out|Timed out|transport"):
        AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}).list_topics(timeout=1)
    broker.resume()
    broker.wait_ready()


def test_busy_port_is_one_clear_line(make_broker):
    broker = make_broker()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker.port = taken.getsockname()[1]
        with pytest.raises(PortBusy, match=rf"^port {broker.port} for broker private 0 is in use; "):
            broker.start()


def test_a_broker_outlives_the_thread_that_started_it(make_broker):
    broker = make_broker()
    thread = threading.Thread(target=broker.restart)
    thread.start()
    thread.join()
    time.sleep(0.5)
    assert broker.pid is not None
    broker.wait_ready(5)


@pytest.mark.parametrize(
    ("properties", "stage"),
    [
        ({"process_roles": "no.such.thing"}, "the data folder could not be formatted:"),
        ({"metric_reporters": "no.such.thing"}, "ended at its start:"),
    ],
)
def test_a_broker_that_cannot_start_says_why(make_broker, properties, stage):
    broker = make_broker(**properties)
    with pytest.raises(BrokerFailed, match=stage) as caught:
        broker.restart()
    assert "no.such.thing" in str(caught.value)
    assert "\tat " not in str(caught.value)
    assert broker.pid is None


def test_brokers_by_hand_end_with_down(tmp_path):
    port = free_port()
    with _up(tmp_path, port) as up:
        assert _command("status", tmp_path) == (0, f"kafka: held by process {up.pid}")
        again = _command("up", tmp_path, free_port())
        assert again == (1, f"kafka: brokers already run in {tmp_path}; end them with down")
        assert _command("down", tmp_path) == (0, "kafka: stopped")
        assert up.wait(20) == 0
    assert not _listens(port)
    assert _command("status", tmp_path) == (1, "kafka: nothing runs")


def test_brokers_by_hand_end_when_their_holder_is_killed(tmp_path):
    port = free_port()
    with _up(tmp_path, port) as up:
        up.kill()
        up.wait(10)
    deadline = time.monotonic() + 10
    while _listens(port):
        assert time.monotonic() < deadline, "the broker outlived its holder"
        time.sleep(0.1)


def test_down_spares_a_stranger_with_a_dead_holders_number(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (tmp_path / "pid").write_text(str(stranger.pid), encoding="utf-8")
        assert _command("down", tmp_path) == (0, "kafka: nothing runs")
        assert stranger.poll() is None
        stranger.communicate(b"\n")
    assert stranger.returncode == 0


def test_a_busy_port_by_hand_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = _command("up", tmp_path, port)
    assert code == 1
    assert said.startswith(f"kafka: port {port} for broker on {port} is in use; ")
    assert "\n" not in said


def test_an_empty_kafka_home_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(JarsMissing, match=rf"^KAFKA_HOME={tmp_path} has no libs/kafka_\*\.jar; unset it .*$"):
        class_path()
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.3.1.jar").touch()
    assert class_path() == f"{tmp_path}/libs/*"


def test_a_failed_download_is_one_line_after_three_tries(monkeypatch, tmp_path, capsys):
    _fake_jgo(monkeypatch, tmp_path, "echo first >&2; echo 'no route to host' >&2; exit 1")
    with pytest.raises(
        JarsMissing, match=r"^Kafka's jars could not be downloaded \(no route to host\); .*KAFKA_HOME.*$"
    ):
        class_path()
    assert capsys.readouterr().out.count("downloading") == 3
    (tmp_path / "bin" / "jgo").unlink()
    with pytest.raises(JarsMissing, match=r"jgo is not installed"):
        class_path()


def test_jars_are_looked_up_again_only_when_they_are_gone(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "env"
    files = [folder / "jars" / "kafka_2.13-4.3.1.jar", folder / "modules" / "kafka-clients-4.3.1.jar"]
    made = " ".join(map(str, files))
    _fake_jgo(monkeypatch, tmp_path, f"mkdir -p {folder}/jars {folder}/modules; touch {made}; echo {files[0]}")
    for _ in range(2):
        assert class_path() == f"{folder}/jars/*{os.pathsep}{folder}/modules/*"
    assert capsys.readouterr().out.count("downloading") == 1
    files[1].unlink()
    class_path()
    assert capsys.readouterr().out.count("downloading") == 1


def _fake_jgo(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Stand in for jgo and for the cache; KAFKA_HOME is not set."""
    (folder / "bin").mkdir()
    jgo = folder / "bin" / "jgo"
    jgo.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    jgo.chmod(0o755)
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    monkeypatch.setattr(jars, "CACHE", folder / "cache")
    monkeypatch.setattr(jars.time, "sleep", lambda _: None)


def _line(name: str, folder: Path, port: int | None = None) -> list[str]:
    ports = [] if port is None else ["--ports", str(port)]
    return [sys.executable, "-m", "dev.kafka", name, *ports, "--dir", str(folder)]


def _command(name: str, folder: Path, port: int | None = None) -> tuple[int, str]:
    ended = subprocess.run(_line(name, folder, port), capture_output=True, text=True, check=False, timeout=60)
    return ended.returncode, (ended.stdout + ended.stderr).strip()


@contextmanager
def _up(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(_line("up", folder, port), stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout is not None
            assert f"127.0.0.1:{port} is up" in up.stdout.readline()
            yield up
        finally:
            up.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
