"""One worker against a backlog, and one under a steady rate: what it costs and how long a record takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.kafka import Broker, free_port

#: A run that makes no progress is ended; the slowest measured so far took a tenth of this.
TIMEOUT = 180.0
TICKS = os.sysconf("SC_CLK_TCK")


class BenchFailed(Exception):
    """A run did not come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What copying a backlog took; `resident` is the peak in MB, `first` the seconds from start to the first record."""

    records: float
    cpu: float
    resident: float
    first: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds from a record's append on the source until a read_committed reader of the target has it."""

    p50: float
    p95: float
    p99: float


def fill(broker: Broker, topic: str, count: int, size: int, partitions: int) -> None:
    """Create a topic and write `count` records of `size` bytes to it."""
    make_topic(broker, topic, partitions)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "batch.size": 65536, "log_level": 0})
    value = os.urandom(size)
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number // 500 % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(TIMEOUT):
        raise BenchFailed(f"the backlog of {topic} could not be written")


def make_topic(broker: Broker, topic: str, partitions: int) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


@contextmanager
def worker(folder: Path, alias: str, source: Broker, target: Broker, topic: str, delivery: str) -> Iterator[Probe]:
    """Run a worker for one topic."""
    folder.mkdir(parents=True, exist_ok=True)
    flow = {"from": alias, "to": "target", "topics": {"include": [topic]}, "delivery": delivery, "heartbeats": False}
    clusters = {alias: {"bootstrap": source.bootstrap}, "target": {"bootstrap": target.bootstrap}}
    config = folder / "replicator.yaml"
    config.write_text(yaml.safe_dump({"clusters": clusters, "flows": [flow]}), encoding="utf-8")
    port = free_port()
    command = [str(Path(sys.executable).parent / "faust"), "-A", "app", "--datadir", str(folder / "data"), "worker"]
    command += ["-l", "warn", "--web-port", str(port), "--web-bind", "127.0.0.1"]
    with (folder / "worker.log").open("wb") as log:
        environment = os.environ | {"KRABKA_REPLICATOR_CONFIG": str(config)}
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield Probe(process.pid, port, f"{alias}__target")
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class Probe:
    """Looks at a worker from outside."""

    pid: int
    port: int
    flow: str

    def status(self) -> dict[str, Any] | None:
        """Return the flow's status, None while the worker does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=2) as answer:
                flow: dict[str, Any] = json.load(answer)["flows"][self.flow]
        except (OSError, ValueError):
            return None
        return flow

    def cpu(self) -> float:
        """Return the seconds of CPU used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident(self) -> float:
        """Return the peak of resident memory in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

    def wait(self, records: int) -> None:
        """Return when so many records are acknowledged by the target."""
        deadline = time.monotonic() + TIMEOUT
        while (status := self.status()) is None or status["records"] < records:
            if time.monotonic() > deadline:
                raise BenchFailed(f"{self.flow}: {status and status['records']} of {records} records")
            time.sleep(0.02)


def throughput(folder: Path, source: Broker, target: Broker, topic: str, count: int, delivery: str) -> Throughput:
    """Measure a worker that copies a backlog from a cold start, each time under another alias."""
    begun = time.monotonic()
    with worker(folder, f"s{time.monotonic_ns()}", source, target, topic, delivery) as probe:
        probe.wait(1)
        first, cpu, flow = time.monotonic(), probe.cpu(), probe.status()
        done = flow["records"] if flow else 0
        probe.wait(count)
        seconds, copied = time.monotonic() - first, count - done
        return Throughput(
            records=copied / seconds,
            cpu=(probe.cpu() - cpu) / copied * 1e6,
            resident=probe.resident(),
            first=first - begun,
        )


def latency(folder: Path, source: Broker, target: Broker, delivery: str, rate: int, seconds: float) -> Latency:
    """Measure the way of single records at a steady rate."""
    alias, topic = f"l{time.monotonic_ns()}", f"latency-{time.monotonic_ns()}"
    make_topic(source, topic, 6)
    with worker(folder, alias, source, target, topic, delivery) as probe:
        deadline = time.monotonic() + 60
        while (status := probe.status()) is None or not status["partitions"]:
            if time.monotonic() > deadline:
                raise BenchFailed(f"{alias}: not started")
            time.sleep(0.1)
        stop = threading.Event()
        traffic = threading.Thread(target=_traffic, args=(source, topic, rate, stop), daemon=True)
        traffic.start()
        time.sleep(2)  # the first transactions create what they need on the brokers
        try:
            taken = _arrivals(target, f"{alias}.{topic}", seconds)
        finally:
            stop.set()
            traffic.join(20)
    taken.sort()
    return Latency(**{f"p{p}": taken[min(len(taken) - 1, len(taken) * p // 100)] for p in (50, 95, 99)})


def _traffic(source: Broker, topic: str, rate: int, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0, "log_level": 0})
    due, number = time.monotonic(), 0
    while not stop.is_set():
        producer.produce(topic, b"%d" % time.time_ns(), partition=number % 6)
        producer.poll(0)
        number += 1
        due += 1 / rate
        time.sleep(max(0.0, due - time.monotonic()))
    producer.flush(10)


def _arrivals(target: Broker, topic: str, seconds: float) -> list[float]:
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            "log_level": 0,
        }
    )
    try:
        consumer.assign(
            [TopicPartition(topic, p, consumer.get_watermark_offsets(TopicPartition(topic, p))[1]) for p in range(6)]
        )
        taken: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                taken.append((time.time_ns() - int(message.value())) / 1e6)
    finally:
        consumer.close()
    if not taken:
        raise BenchFailed(f"nothing arrived in {topic}")
    return taken
