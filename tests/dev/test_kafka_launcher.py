"""The launcher that every other test leans on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from confluent_kafka.admin import AdminClient

from dev.kafka import PortBusy, free_port
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


def test_brokers_by_hand_end_with_down_and_with_their_holder(tmp_path):
    def command(name: str) -> list[str]:
        return [sys.executable, "-m", "dev.kafka", name, "--ports", str(port), "--dir", str(tmp_path)]

    port = free_port()
    for ending in ("down", "kill"):
        up = subprocess.Popen(command("up"), stdout=subprocess.PIPE, text=True)
        assert up.stdout is not None
        assert f"127.0.0.1:{port} is up" in up.stdout.readline()
        assert subprocess.run(command("status"), capture_output=True, check=False).returncode == 0
        if ending == "down":
            assert subprocess.run(command("down"), capture_output=True, check=False).returncode == 0
            assert up.wait(20) == 0
        else:
            up.send_signal(signal.SIGKILL)
            up.wait(10)
        up.stdout.close()
        deadline = time.monotonic() + 10
        while _listens(port):
            assert time.monotonic() < deadline, "the broker outlived its holder"
            time.sleep(0.1)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
