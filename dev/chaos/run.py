"""A chaos run: numbered records at a steady rate, a seeded schedule of faults, and the count at the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.kafka import Broker, free_port, start_all

TOPIC, PARTITIONS = "numbers", 6
SOURCE, TARGET = "chaos-source", "chaos-target"

#: Longer than the workers' session time-out: who wakes after it has lost its tasks.
FREEZE_SECONDS = 14.0
SETTLE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a read_committed reader of the target found."""

    records: int
    lost: int
    doubled: int
    disordered: int


@dataclass
class Run:
    """Everything that one run started. `say` gets a line per event."""

    folder: Path
    seed: int
    delivery: str
    records: int
    seconds: float
    say: Callable[[str], None]
    workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    thawing: list[threading.Timer] = field(default_factory=list)
    started: int = 0
    kills: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.source = Broker("source", self.folder / "source")
        self.target = Broker("target", self.folder / "target")
        self.produced = 0

    def __enter__(self) -> Run:
        start_all([self.source, self.target])
        admin = AdminClient({"bootstrap.servers": self.source.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(20)
        clusters = {SOURCE: {"bootstrap": self.source.bootstrap}, TARGET: {"bootstrap": self.target.bootstrap}}
        flow = {"from": SOURCE, "to": TARGET, "topics": {"include": [TOPIC]}, "delivery": self.delivery}
        document = {"clusters": clusters, "flows": [flow], "runtime": {"supervisor_interval": "1s"}}
        (self.folder / "replicator.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self.thawing:
            timer.cancel()
        for process in self.workers.values():
            process.kill()
            process.wait(10)
        self.source.stop()
        self.target.stop()

    def start_worker(self) -> None:
        """Start one more worker."""
        number, self.started = self.started, self.started + 1
        command = [
            str(Path(sys.executable).parent / "faust"),
            "-A",
            "app",
            "--datadir",
            str(self.folder / f"d{number}"),
        ]
        command += ["worker", "-l", "info", "--web-port", str(free_port()), "--web-bind", "127.0.0.1"]
        environment = os.environ | {"KRABKA_REPLICATOR_CONFIG": str(self.folder / "replicator.yaml")}
        with (self.folder / f"worker{number}.log").open("wb") as log:
            self.workers[number] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def produce(self) -> None:
        """Write the numbers at a steady rate; a broker that is away only delays them."""
        producer = Producer(
            {"bootstrap.servers": self.source.bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        begun = time.monotonic()
        for number in range(self.records):
            while True:
                try:
                    producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 100 == 0:
                producer.poll(0)
                time.sleep(max(0.0, begun + self.seconds * number / self.records - time.monotonic()))
        left = producer.flush(SETTLE_SECONDS)
        self.produced = self.records - left

    def disturb(self, until: float) -> None:
        """Do something harmful every few seconds until the time is over."""
        while time.monotonic() < until:
            time.sleep(self.random.uniform(2, 6))
            kind = self.random.choice(["kill", "kill", "kill", "freeze", "stop", "source", "target"])
            victim = self.random.choice(sorted(self.workers))
            self.say(f"{kind} {victim if kind in ('kill', 'freeze', 'stop') else 'broker'}")
            if kind in ("source", "target"):
                self._restart(self.source if kind == "source" else self.target)
            elif kind == "freeze":
                self._freeze(victim)
            else:
                self._replace(victim, signal.SIGKILL if kind == "kill" else signal.SIGTERM)

    def _replace(self, victim: int, how: signal.Signals) -> None:
        process = self.workers.pop(victim)
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        self.kills += how == signal.SIGKILL
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        self.start_worker()

    def _freeze(self, victim: int) -> None:
        process = self.workers[victim]
        process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(FREEZE_SECONDS, process.send_signal, (signal.SIGCONT,))
        timer.start()
        self.thawing.append(timer)

    def _restart(self, broker: Broker) -> None:
        (broker.kill if self.random.random() < 0.5 else broker.stop)()
        time.sleep(self.random.uniform(0.5, 4))
        broker.restart()

    def count(self) -> Verdict:
        """Wait until everything arrived (or nothing more comes), and judge it."""
        for timer in self.thawing:
            timer.join()
        deadline = time.monotonic() + SETTLE_SECONDS
        while judge(self.target, self.records).lost and time.monotonic() < deadline:
            time.sleep(2)
        time.sleep(3)  # what would be doubled late
        return judge(self.target, self.records)


def judge(target: Broker, records: int) -> Verdict:
    """Read the target's topic with read_committed to its end."""
    seen: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        left = set(seen)
        consumer.assign([TopicPartition(f"{SOURCE}.{TOPIC}", partition, 0) for partition in left])
        deadline = time.monotonic() + 60
        while left and time.monotonic() < deadline:
            for message in consumer.consume(10_000, timeout=0.5):
                if message.error() is None:
                    seen[message.partition()].append(int(message.value()))
                else:
                    left.discard(message.partition())
    finally:
        consumer.close()
    found = [number for numbers in seen.values() for number in numbers]
    firsts = {partition: list(dict.fromkeys(numbers)) for partition, numbers in seen.items()}
    return Verdict(
        records=len(found),
        lost=records - len(set(found)),
        doubled=len(found) - len(set(found)),
        disordered=sum(numbers != sorted(numbers) for numbers in firsts.values()),
    )
