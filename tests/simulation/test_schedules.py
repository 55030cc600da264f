"""Thousands of schedules of faults against the real pipeline, tasks and agent; only the clients are simulated.

`SIMULATION_SCHEDULES` sets how many are run, `SIMULATION_SEED` replays one.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest

from agents.replicate import replicator
from app.config import FlowConfig, RuntimeConfig
from app.core.dead_letters import dead_letter_topic
from app.core.flow_rules import FlowRules
from app.core.naming import Naming
from app.core.records import TopicPartition
from app.core.selection import Selector
from app.errors import ReplicatorError
from app.kafka.batches import SourceBatch
from app.runtime.pipeline import Pipeline
from app.runtime.task import Task
from tests.simulation.clock import run_virtual
from tests.simulation.world import Process, World

PARTITIONS, TASKS, RECORDS, WORKERS = 5, 4, 300, 3
REFUSED = 0.1
FAULTY_SECONDS, SETTLE_SECONDS = 60.0, 400.0
SCHEDULES = int(os.environ.get("SIMULATION_SCHEDULES", "60"))
SEEDS = [int(os.environ["SIMULATION_SEED"])] if "SIMULATION_SEED" in os.environ else range(SCHEDULES)

RULES = FlowRules(naming=Naming(source="a", target="b"), selector=Selector(include=("*",), exclude=()))
RUNTIME = RuntimeConfig.model_validate({"topic_refresh_interval": "7s"})


class SimulatedWorker:
    """A worker: one flow service and its agent, as app/runtime/flow.py and Faust run them."""

    def __init__(self, world: World, number: int, config: FlowConfig) -> None:
        self.process = Process(world, number)
        self.config = config
        self.pipeline: Pipeline | None = None
        self._queue: asyncio.Queue[Sequence[SourceBatch]] = asyncio.Queue(2)
        self.jobs = [asyncio.ensure_future(self._live()), asyncio.ensure_future(replicator(self)(self._stream()))]  # type: ignore[arg-type]

    async def _stream(self) -> AsyncIterator[Sequence[SourceBatch]]:
        while True:
            yield await self._queue.get()

    async def _live(self) -> None:
        while True:
            ports = self.process.ports(self.config.name, self.config.delivery)
            pipeline = Pipeline(self.config, RUNTIME, RULES, ports, self._queue.put)
            try:
                await pipeline.build()
                self.pipeline = pipeline
                await pipeline.run()
            except ReplicatorError:
                await asyncio.sleep(0.5)
            finally:
                self.pipeline = None
                await pipeline.close(drain=not self.process.dead)

    def check_residency(self, topic: str) -> None: ...

    def needs_care(self, tp: TopicPartition) -> bool:
        now = self.process.world.now
        return self.pipeline is not None and self.pipeline.share.refusals.needs_care(tp, now)

    def read_again(self, tp: TopicPartition, offset: int) -> None:
        if self.pipeline is not None:
            self.pipeline.reader.seek({tp: offset})

    async def owner(self, tp: TopicPartition) -> Task | None:
        pipeline = self.pipeline
        return None if pipeline is None else await pipeline.share.owner(tp)

    def expected(self, task: Task, tp: TopicPartition, batches: Iterable[SourceBatch]) -> Sequence[SourceBatch]:
        return [] if self.pipeline is None else self.pipeline.expected(task, tp, batches)

    def task_failed(self, task: Task, error: Exception) -> None:
        assert isinstance(error, ReplicatorError), error
        if self.pipeline is not None:
            self.pipeline.share.task_failed(task, error)

    def forwarded(self) -> None:
        if self.pipeline is not None:
            self.pipeline.forwarded(more=not self._queue.empty())

    async def end(self, *, crash: bool) -> None:
        self.process.dead = crash
        for job in self.jobs:
            job.cancel()
        await asyncio.gather(*self.jobs, return_exceptions=True)


async def simulate(seed: int, delivery: str) -> World:
    """Run one schedule and check it."""
    limits = {"bytes_per_second": "8KiB"} if seed % 3 == 0 else {}
    config = FlowConfig.model_validate(
        {"from": "a", "to": "b", "delivery": delivery, "tasks": TASKS, "on_rejected": "dead-letter", "limits": limits}
    )
    world = World(seed, PARTITIONS, TASKS, faults=0.01)
    workers = {number: SimulatedWorker(world, number, config) for number in range(WORKERS)}
    traffic = asyncio.ensure_future(produce(world, refused=REFUSED if seed % 2 else 0.0))
    await disturb(world, workers, config)
    await traffic
    world.faults = 0.0
    deadline = world.now + SETTLE_SECONDS
    while not settled(world, config.name) and world.now < deadline:
        await asyncio.sleep(1)
    # Who wakes last may put older positions back (at least once); the rebalance that it causes mends that.
    await asyncio.sleep(max(0.0, *(worker.process.frozen_until - world.now for worker in workers.values())) + 20)
    check(world, config.name, delivery)
    for worker in workers.values():
        await worker.end(crash=False)
    check(world, config.name, delivery)
    return world


async def produce(world: World, refused: float) -> None:
    for number in range(RECORDS):
        value = b"%d" % number
        if world.rng.random() < refused:
            world.refused.add(value)
        world.append(TopicPartition("t", number % PARTITIONS), value)
        await asyncio.sleep(world.rng.expovariate(RECORDS / FAULTY_SECONDS))


async def disturb(world: World, workers: dict[int, SimulatedWorker], config: FlowConfig) -> None:
    """Kill, freeze and stop workers at random, each time replacing what is gone."""
    number = len(workers)
    while world.now < FAULTY_SECONDS:
        await asyncio.sleep(world.rng.uniform(0.1, 12))
        victim = world.rng.choice(sorted(workers))
        kind = world.rng.choice(["crash", "freeze", "stop", "join"])
        world.events.append(f"{world.now:.3f} {kind} {victim}")
        if kind == "freeze":
            workers[victim].process.frozen_until = world.now + world.rng.uniform(1, 25)
            continue
        if kind != "join":
            await workers.pop(victim).end(crash=kind == "crash")
        if len(workers) < WORKERS + 1:
            workers[number] = SimulatedWorker(world, number, config)
            number += 1


def settled(world: World, flow: str) -> bool:
    positions = world.committed_positions(flow)
    return all(tp in positions and positions[tp].offset == len(log) for tp, log in world.source.items())


def check(world: World, flow: str, delivery: str) -> None:
    positions = world.committed_positions(flow)
    for tp, log in world.source.items():
        wanted = [value for value in log if value is not None and value not in world.refused]
        found = world.committed(TopicPartition(f"a.{tp.topic}", tp.partition))
        if delivery == "at-least-once":
            found = list(dict.fromkeys(found))
        assert found == wanted, f"{tp}: {len(found)} of {len(wanted)} records; {first_difference(found, wanted)}"
        assert positions[tp].offset == len(log), f"{tp}: position {positions[tp].offset} of {len(log)}"
    aside = world.committed(TopicPartition(dead_letter_topic(flow), 0))
    aside = aside if delivery == "exactly-once" else list(set(aside))
    assert sorted(aside) == sorted(world.refused)


def first_difference(found: list[bytes], wanted: list[bytes]) -> Any:
    return next(((n, a, b) for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), "one is longer")


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_under_any_schedule(seed: int, delivery: str) -> None:
    logging.disable(logging.ERROR)
    try:
        run_virtual(simulate(seed, delivery))
    finally:
        logging.disable(logging.NOTSET)
