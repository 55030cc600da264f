"""A flow's state as status and metrics read it, without clusters."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from app.core.records import TopicPartition
from app.runtime.counters import FlowCounters
from app.runtime.group_offsets import GroupOffsets


def a_flow(*partitions: TopicPartition) -> Any:
    """Return a running flow `a__b` that carries the partitions in task 1 of 8."""
    counters = FlowCounters(losses=Counter(expired=2))
    for tp in partitions:
        counters.acknowledged(tp, records=10, size=100, newest=90.0, now=100.0)
    routes = {tp: SimpleNamespace(target=TopicPartition("a." + tp.topic, tp.partition)) for tp in partitions}
    task = SimpleNamespace(number=1, routes=routes, committed=dict.fromkeys(partitions, 5))
    share = SimpleNamespace(
        tasks={1: task},
        refusals=SimpleNamespace(reasons={}),
        idle=None,
        problem=None,
        joined=True,
        wanted=frozenset({1}),
    )
    pipeline = SimpleNamespace(
        share=share,
        roster=SimpleNamespace(workers=None),
        partitions=SimpleNamespace(
            beginnings=SimpleNamespace(losses=[]),
            catalog=SimpleNamespace(left={}),
            held={"broken": "why"},
        ),
        ends={},
        reader=SimpleNamespace(end=lambda _: SimpleNamespace(readable=12, written=12)),
    )
    config = SimpleNamespace(
        name="a__b",
        source="a",
        target="b",
        tasks=8,
        delivery="exactly-once",
        heartbeats=True,
        on_rejected="dead-letter",
    )
    return SimpleNamespace(
        config=config,
        flow_state="running",
        error=None,
        counters=counters,
        pipeline=pipeline,
        totals=lambda: (10, 100),
        pace=SimpleNamespace(here=1024.0, held_back=True, waited=2.5, document=lambda: None),
    )


def a_target(*, leader: bool = True) -> Any:
    """Return the target `b`; its leader knows of a heartbeat, a round of checkpoints and a wrong topic."""
    checkpoints = SimpleNamespace(age=lambda: 4.0, groups=GroupOffsets(groups=3, partitions=7), problems=frozenset())
    topics = SimpleNamespace(problems=frozenset({"heartbeats has 8 partitions"}))
    return SimpleNamespace(
        leader=leader,
        led_by="one-7",
        problem=lambda: None,
        heartbeat_age=lambda _: 1.5 if leader else None,
        checkpoints_of=lambda _: checkpoints if leader else None,
        topics_of=lambda _: topics if leader else None,
    )


def a_supervisor(flow: Any, *, leader: bool = True) -> Any:
    """Return a worker with the flow, of which it is the leader or not."""
    cluster = SimpleNamespace(region=None, zones=())
    return SimpleNamespace(
        settings=SimpleNamespace(clusters={"a": cluster, "b": cluster}, web=SimpleNamespace(token=None)),
        flows={flow.config.name: flow},
        reachable={"a": True},
        cluster_ids={"a": "id-of-a"},
        targets={"b": a_target(leader=leader)},
    )
