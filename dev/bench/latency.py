"""How long a record takes, from being given to a producer of the source until a reader of the target has it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from dev.bench.cases import Plan
from dev.bench.contestants import Contestant, Job
from dev.bench.failures import BenchFailed
from dev.bench.process import running
from dev.bench.topics import Ends, make_topic
from dev.kafka import Broker

PARTITIONS = 6
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds, at so many records a second."""

    rate: int
    records: int
    p50: float
    p95: float
    p99: float


def latencies(folder: Path, source: Broker, target: Broker, contestant: Contestant | None, plan: Plan) -> list[Latency]:
    """Measure every rate of the plan; without a contestant, the way to a reader of the source itself."""
    alias = f"l{time.monotonic_ns()}"
    job = Job(folder=folder, alias=alias, topic=f"latency-{alias}", source=source.bootstrap, target=target.bootstrap)
    make_topic(job.source, job.topic, PARTITIONS)
    with ExitStack() as stack:
        if contestant is not None:
            stack.enter_context(running(contestant.command(job), folder / "contestant.log"))
        place = (job.source, job.topic) if contestant is None else (job.target, job.remote_topic)
        return [_at_rate(job, place, rate, plan) for rate in plan.rates]


def _at_rate(job: Job, place: tuple[str, str], rate: int, plan: Plan) -> Latency:
    command = [sys.executable, "-m", "dev.bench.traffic", job.source, job.topic, str(PARTITIONS), str(rate)]
    with running(command, job.folder / "traffic.log") as traffic:
        _wait_flowing(Ends(*place))
        with _reader(*place) as consumer:
            _taken(consumer, plan.warm_up)
            taken = sorted(_taken(consumer, plan.measured))
        traffic.check()
    if len(taken) < rate * plan.measured / 2:
        raise BenchFailed(f"{len(taken)} records arrived in {plan.measured:g} s at {rate} a second")
    p50, p95, p99 = (_percentile(taken, percent) for percent in (50, 95, 99))
    return Latency(rate=rate, records=len(taken), p50=p50, p95=p95, p99=p99)


def _wait_flowing(ends: Ends) -> None:
    begun, before = time.monotonic(), ends.total()
    while ends.total() <= before:
        if time.monotonic() - begun > TIMEOUT:
            raise BenchFailed(f"nothing arrived within {TIMEOUT:g} s")
        time.sleep(0.1)


@contextmanager
def _reader(bootstrap: str, topic: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            "log_level": 0,
        }
    )
    try:
        ends = Ends(bootstrap, topic).offsets()
        consumer.assign([TopicPartition(topic, partition, end) for partition, end in ends.items()])
        yield consumer
    finally:
        consumer.close()


def _taken(consumer: Consumer, seconds: float) -> list[float]:
    """Return the milliseconds that each record took which arrives within so many seconds."""
    taken: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            taken.append((time.time_ns() - int(message.value())) / 1e6)
    return taken


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
