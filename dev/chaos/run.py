"""A chaos run: numbered records at a steady rate, a seeded schedule of faults, and the count at the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.kafka import Broker, free_port, start_all
from dev.kafka.producing import ONE_AT_A_TIME

TOPIC, PARTITIONS = "numbers", 6
SOURCE, TARGET = "chaos-source", "chaos-target"

#: A frozen worker sleeps this many seconds longer than its session: who wakes has lost its tasks.
OVERSLEPT = 4.0
SETTLE_SECONDS = 120.0

#: What is done to the run, as often as it stands here. `leave` and `join` change the number of workers.
HARMS = ("kill", "kill", "kill", "kill", "freeze", "leave", "join", "source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a read_committed reader of the target found. `misplaced` partitions have a position off their end."""

    records: int
    lost: int
    doubled: int
    disordered: int
    misplaced: int = 0

    def failed(self, delivery: str) -> bool:
        """Tell whether a promise of `delivery` is broken."""
        return bool(self.lost or self.disordered or self.misplaced or (delivery == "exactly-once" and self.doubled))


@dataclass
class Run:
    """Everything that one run started. `say` gets a line per event; there are at least two workers, at most `most`."""

    folder: Path
    seed: int
    delivery: str
    records: int
    seconds: float
    say: Callable[[str], None]
    most: int = 3
    session: float = 10.0
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
        runtime = {"supervisor_interval": "1s", "group_session_timeout": f"{self.session:g}s"}
        document = {"clusters": clusters, "flows": [flow], "runtime": runtime}
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
            {
                "bootstrap.servers": self.source.bootstrap,
                **ONE_AT_A_TIME,
                "linger.ms": 5,
                "log_level": 0,
            }
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

    def disturb(self, until: float, kills: int = 0) -> None:
        """Do something harmful every few seconds until the time is over and `kills` workers were killed."""
        while time.monotonic() < until or self.kills < kills:
            time.sleep(self.random.uniform(2, 6))
            kind, victim = self.random.choice(HARMS), self.random.choice(sorted(self.workers))
            if kind == "leave" and len(self.workers) <= 2:
                kind = "join"
            elif kind == "join" and len(self.workers) >= self.most:
                kind = "leave"
            self.say(f"{kind} {'' if kind in ('source', 'target', 'join') else victim}")
            self._harm(kind, victim)

    def _harm(self, kind: str, victim: int) -> None:
        if kind in ("source", "target"):
            self._restart(self.source if kind == "source" else self.target)
        elif kind == "freeze":
            self._freeze(victim)
        elif kind == "join":
            self.start_worker()
        elif kind == "leave":
            self._end(victim, signal.SIGTERM)
        else:
            self._end(victim, signal.SIGKILL)
            self.start_worker()

    def _end(self, victim: int, how: signal.Signals) -> None:
        process = self.workers.pop(victim)
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        self.kills += how == signal.SIGKILL
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def _freeze(self, victim: int) -> None:
        process = self.workers[victim]
        process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(self.session + OVERSLEPT, process.send_signal, (signal.SIGCONT,))
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
        while (self._judge().lost or self._misplaced()) and time.monotonic() < deadline:
            time.sleep(2)
        time.sleep(3)  # what would be doubled late
        return replace(self._judge(), misplaced=self._misplaced())

    def _judge(self) -> Verdict:
        return judge(self.target, self.records)

    def _misplaced(self) -> int:
        """Return how many partitions' stored positions differ from where the source ends."""
        command = [sys.executable, "-m", "faust", "-A", "app", "lag", "--json"]
        environment = os.environ | {"KRABKA_REPLICATOR_CONFIG": str(self.folder / "replicator.yaml")}
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        (flow,) = json.loads(shown.stdout)["flows"]
        if flow["error"]:
            self.say(f"lag: {flow['error']}")
            return PARTITIONS
        there = [row for row in flow["partitions"] if row["topic"] == TOPIC and row["position"] == row["end_offset"]]
        return PARTITIONS - len(there)


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
