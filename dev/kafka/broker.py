"""One Kafka broker (KRaft, broker and controller in one process) that can be started, killed, paused and restarted."""

from __future__ import annotations

import atexit
import base64
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from dev.kafka.jars import class_path, java
from dev.kafka.ports import free_port, require_free
from dev.kafka.process import spawn

#: Small heap, quick start: these brokers live for minutes.
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

#: Fit for one broker, and for tests that must not be helped by the broker's conveniences.
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # After a kill the controller refuses the new start until the old one's session is over: 13 s with the default 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # Tests write records of 1970, which a clean-up (30 s after the start, then every 5 minutes) would delete.
    "log.retention.ms": "-1",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class BrokerFailed(Exception):
    """A broker did not start; the message ends with the last lines of its log, without stack traces."""


class Broker:
    """A broker with a folder of its own. Its port and data survive `stop` and `kill`; `start` goes on with them.

    `listeners` are further ones: name to security protocol, each with a port of its own (`address`).
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.directory = directory
        self.port = port
        self.log_path = directory / "broker.log"
        self._controller_port = 0
        self._properties = dict(properties or {})
        self._listeners = dict(listeners or {})
        self._ports: dict[str, int] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._formatting: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address clients connect to."""
        return f"127.0.0.1:{self.port}"

    def address(self, listener: str) -> str:
        """The address of one of the further listeners."""
        return f"127.0.0.1:{self._ports[listener]}"

    @property
    def pid(self) -> int | None:
        """The process id while the broker runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def prepare(self) -> None:
        """Begin to format the data folder where it is new; `start` does it too. Raises `PortBusy`."""
        self.port = self.port or free_port()
        self._controller_port = self._controller_port or free_port()
        require_free(self.port, f"broker {self.name}")
        self._ports = {name: self._ports.get(name) or free_port() for name in self._listeners}
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = "".join(f"{key}={value}\n" for key, value in self._settings().items())
        self._settings_path.write_text(settings, encoding="utf-8")
        if self._formatting is None and not (self.directory / "data" / "meta.properties").exists():
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}")
            self._formatting = self._run(*tool, "-c", str(self._settings_path))

    def start(self) -> None:
        """Start the process; `wait_ready` tells when it serves. Raises `PortBusy`, and `BrokerFailed` for settings."""
        self.prepare()
        self._finish_format()
        self._process = self._run("kafka.Kafka", str(self._settings_path))
        atexit.register(self.kill)

    def _finish_format(self, timeout: float = 60) -> None:
        formatting, self._formatting = self._formatting, None
        if formatting is None:
            return
        try:
            code = formatting.wait(timeout)
        except subprocess.TimeoutExpired:
            formatting.kill()
            code = formatting.wait(10)
        if code != 0:
            raise BrokerFailed(f"broker {self.name}: the data folder could not be formatted:\n{self._last_lines()}")

    @property
    def _settings_path(self) -> Path:
        return self.directory / "server.properties"

    def _settings(self) -> dict[str, str]:
        controller = f"127.0.0.1:{self._controller_port}"
        more = "".join(f",{name}://{self.address(name)}" for name in self._listeners)
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}
        own = {
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}{more}",
            "listener.security.protocol.map": ",".join(f"{name}:{spoken}" for name, spoken in protocols.items()),
            "log.dirs": str(self.directory / "data"),
        }
        return PROPERTIES | own | self._properties

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        return spawn([java(), *JVM, "-cp", class_path(), *command], self.log_path)

    def wait_ready(self, timeout: float = 60) -> None:
        """Return when the broker answers clients. Raises `BrokerFailed`."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.pid is None:
                raise BrokerFailed(f"broker {self.name} ended at its start:\n{self._last_lines()}")
            with suppress(KafkaException):
                if client.list_topics(timeout=1).brokers:
                    return
            time.sleep(0.1)
        raise BrokerFailed(f"broker {self.name} does not answer after {timeout:g} s:\n{self._last_lines()}")

    def _last_lines(self) -> str:
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([line for line in lines if not line.startswith("\t")][-15:])

    def stop(self, timeout: float = 20) -> None:
        """End the broker in order; kill it when it takes too long."""
        if self._formatting is not None:
            self._formatting.kill()
            self._formatting.wait(10)
            self._formatting = None
        if self._process is None:
            return
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        atexit.unregister(self.kill)

    def kill(self) -> None:
        """End the broker as a power cut does."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait(10)

    def pause(self) -> None:
        """Let the broker hang: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End a `pause`."""
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        """Start again on the same port with the same data, and wait until it serves."""
        self.start()
        self.wait_ready()

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, number)


def start_all(brokers: Iterable[Broker]) -> None:
    """Start brokers side by side and wait for all."""
    started = list(brokers)
    for broker in started:
        broker.prepare()
    for broker in started:
        broker.start()
    for broker in started:
        broker.wait_ready()
