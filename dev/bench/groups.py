"""`python -m dev.bench.groups [GROUPS]`: how long a round of checkpoints takes, 10 partitions a group.

The real round on two real brokers, beside the copies that it translates; prints the seconds of the first round, which
writes a checkpoint of every group and partition, of one without news, and of one in which every group moved on.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from agents.checkpoints import CheckpointFlow
from app.config import Settings
from app.core.runs import RUNS_TOPIC, Run, StoredRun, run_key
from app.core.tasks import POSITION_SLOTS
from app.kafka.admin import Admin, TopicWish
from app.runtime import own_topics
from dev.kafka import Broker, start_all

PARTITIONS = 10
RECORDS = 1000  # in each partition, so that every committed offset is one that exists
AT_ONCE = 100


def main() -> int:
    """Run it; the exit code is 1 when a round takes longer than the interval between rounds."""
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    with tempfile.TemporaryDirectory(prefix="krabka-groups-") as folder:
        brokers = [Broker(name, Path(folder) / name) for name in ("source", "target")]
        try:
            start_all(brokers)
            return asyncio.run(_measure(groups, *(broker.bootstrap for broker in brokers)))
        finally:
            for broker in brokers:
                broker.stop()


async def _measure(groups: int, source: str, target: str) -> int:
    settings = Settings.model_validate(
        {
            "clusters": {"a": {"bootstrap": source}, "b": {"bootstrap": target}},
            "flows": [{"from": "a", "to": "b", "topics": {"include": ["t"]}}],
        }
    )
    _fill(source, "t")
    _fill(target, "a.t")
    await own_topics.ensure("b", settings, own_topics.of_target("b", settings))
    await _store_runs(settings, target)
    _commit(source, groups, 1)
    flow = CheckpointFlow(settings.flows[0], settings)
    try:
        slowest = await _rounds(flow, source, groups)
    finally:
        await flow.on_stop()
    interval = settings.runtime.checkpoint_interval
    print(f"slowest round {slowest:.2f} s, interval {interval:g} s")
    return int(slowest > interval)


async def _rounds(flow: CheckpointFlow, source: str, groups: int) -> float:
    while not flow.groups.groups:
        started, cpu = time.monotonic(), time.process_time()
        await flow.round()  # until what translation needs is read
        await asyncio.sleep(0 if flow.groups.groups else 0.1)
    took = [_told("first round", flow, started, cpu)]
    for name, offset in (("round without news", None), ("round after all moved", 500)):
        if offset is not None:
            _commit(source, groups, offset)
        started, cpu = time.monotonic(), time.process_time()
        await flow.round()
        took.append(_told(name, flow, started, cpu))
    return max(took)


def _told(name: str, flow: CheckpointFlow, started: float, cpu: float) -> float:
    took = time.monotonic() - started
    found = flow.groups
    used = time.process_time() - cpu
    print(f"{name}: {found.groups} groups, {found.partitions} partitions: {took:.2f} s, {used:.2f} s CPU")
    if flow.problems:
        raise SystemExit(f"the round met problems: {sorted(flow.problems)}")
    return took


def _fill(bootstrap: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(PARTITIONS * RECORDS):
        producer.produce(topic, b"x", partition=number % PARTITIONS)
    producer.flush(30)


async def _store_runs(settings: Settings, target: str) -> None:
    admin = Admin("b", settings.clusters["b"], settings.runtime)
    await admin.ensure_topic(TopicWish(name=RUNS_TOPIC, partitions=POSITION_SLOTS, replication_factor=1, config={}))
    admin.close()
    producer = Producer({"bootstrap.servers": target})
    for partition in range(PARTITIONS):
        run = StoredRun(number=0, run=Run(upstream=0, downstream=0, count=RECORDS), after=None, reach=0)
        producer.produce(RUNS_TOPIC, run.value(), run_key("a__b", "t", partition, 0), partition=partition)
    producer.flush(30)


def _commit(bootstrap: str, groups: int, offset: int) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    for chunk in _chunks(groups):
        for future in [_alter(client, number, offset) for number in chunk]:
            future.result(60)


def _alter(client: AdminClient, number: int, offset: int) -> Future[Any]:
    name = f"group-{number}"
    partitions = [TopicPartition("t", partition, offset) for partition in range(PARTITIONS)]
    request = [ConsumerGroupTopicPartitions(name, partitions)]
    future: Future[Any] = client.alter_consumer_group_offsets(request)[name]
    return future


def _chunks(count: int) -> Iterator[range]:
    for start in range(0, count, AT_ONCE):
        yield range(start, min(count, start + AT_ONCE))


if __name__ == "__main__":
    sys.exit(main())
