"""What `/status` says of what a worker knows, and of what only a leader knows."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from app.config import Settings
from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.events import EventLog
from app.kafka.group_api import Member
from app.observer import Observer
from app.runtime.counters import SetAside
from app.runtime.roster import Roster
from app.runtime.target import TargetService
from app.status import status
from tests.support.flows import a_flow, a_supervisor

TP = TopicPartition("orders", 3)


def said(flow: Any, *, leader: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(status(a_supervisor(flow, leader=leader))))["flows"]["a__b"]
    return found


def test_the_leader_tells_how_old_heartbeats_and_checkpoints_are_and_what_topics_have_wrong() -> None:
    found = said(a_flow(TP))
    assert found["heartbeat"] == {"wanted": True, "age_seconds": 1.5}
    assert found["groups"] == {
        "checkpoint_age_seconds": 4.0,
        "problems": [],
        "groups": 3,
        "partitions": 7,
        "first": [],
    }
    assert found["topic_problems"] == ["heartbeats has 8 partitions"]
    assert status(a_supervisor(a_flow(TP)))["targets"]["b"]["led_by"] == "one-7"


def test_another_worker_says_that_it_does_not_know() -> None:
    found = said(a_flow(TP), leader=False)
    assert found["heartbeat"] == {"wanted": True, "age_seconds": None}
    assert (found["groups"], found["topic_problems"]) == (None, None)


def test_what_was_set_aside_is_told_newest_first() -> None:
    flow = a_flow(TP)
    for offset in (7, 9):
        flow.counters.dead_letters += 1
        flow.counters.set_aside.append(
            SetAside(time=1.0, topic="orders", partition=3, first=offset, last=offset, records=1, reason="too large")
        )
    found = said(flow)["dead_letters"]
    assert (found["topic"], found["records"]) == ("krabka-replicator-dead-letter.a__b", 2)
    assert [(row["first"], row["reason"]) for row in found["last"]] == [(9, "too large"), (7, "too large")]
    flow.config.on_rejected = "hold"
    assert said(flow)["dead_letters"]["topic"] is None


class Groups:
    """A cluster's groups that answer what they are given."""

    def __init__(self) -> None:
        self.groups = self
        self.answer: list[Member] | Exception | None = None

    async def assignments(self, group: str) -> list[Member] | None:
        assert group == "krabka-replicator-a__b"
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def member(worker: str, *tasks: int) -> Member:
    partitions = frozenset(TopicPartition("krabka-replicator-a__b-tasks", task) for task in tasks)
    return Member(client_id=worker, host="10.0.0.7", partitions=partitions)


async def test_workers_are_told_with_their_tasks_and_the_last_answer_stands() -> None:
    groups: Any = Groups()
    group = "krabka-replicator-a__b"
    roster, flow = Roster(groups, group, f"{group}-tasks"), a_flow(TP)
    flow.pipeline.roster = roster
    await roster.look()
    assert said(flow)["workers"] is None
    groups.answer = [member("krabka-replicator-two-12"), member("krabka-replicator-one-7", 10, 2)]
    await roster.look()
    expected = [
        {"worker": "two-12", "address": "10.0.0.7", "tasks": []},
        {"worker": "one-7", "address": "10.0.0.7", "tasks": [2, 10]},
    ]
    assert said(flow)["workers"] == expected
    assert (roster.owner(10), roster.owner(3)) == ("one-7", None)
    for answer in (None, ClusterUnavailable(alias="b", detail="no answer")):
        groups.answer = answer
        await roster.look()
        assert said(flow)["workers"] == expected
    flow.pipeline = None
    assert said(flow)["workers"] is None


def test_an_event_says_of_what_kind_it_is() -> None:
    log, logger = EventLog(), logging.getLogger("app.test-of-events")
    logger.addHandler(log)
    try:
        logger.error("records are lost", extra={"kind": "loss"})
        logger.warning("something else")
        logger.info("of no interest", extra={"kind": "loss"})
    finally:
        logger.removeHandler(log)
    assert [(event.level, event.kind, event.text) for event in log.events] == [
        ("error", "loss", "records are lost"),
        ("warning", None, "something else"),
    ]


def test_each_rebalance_is_an_event() -> None:
    flow = a_flow(TP)
    observer = Observer(a_supervisor(flow))
    observer.note_rebalance("a__b", flow)
    assert not observer.events.events
    flow.counters.rebalances, flow.pipeline.share.wanted = 1, frozenset({0, 1, 2, 5})
    observer.note_rebalance("a__b", flow)
    observer.note_rebalance("a__b", flow)
    flow.counters.rebalances, flow.pipeline.share.wanted = 2, frozenset()
    observer.note_rebalance("a__b", flow)
    assert [(event.kind, event.text) for event in observer.events.events] == [
        ("rebalance", "a__b: tasks of this worker: 0-2, 5 (before: none), of 8"),
        ("rebalance", "a__b: tasks of this worker: none (before: 0-2, 5), of 8"),
    ]


@pytest.mark.parametrize("leads", [True, False])
async def test_a_target_tells_only_while_it_leads(leads: bool, tmp_path: Any) -> None:
    clusters = {"a": {"bootstrap": "127.0.0.1:1"}, "b": {"bootstrap": "127.0.0.1:2"}}
    settings = Settings.model_validate({"clusters": clusters, "flows": [{"from": "a", "to": "b"}]})
    target: Any = TargetService("b", settings, tmp_path)
    target._new_app()
    assert {"a__b"} == set(target.checkpoints) == set(target.topics)
    target._app, target._unassigned_since = SimpleNamespace(is_leader=lambda: leads), None
    assert (target.checkpoints_of("a__b") is not None) is leads
    assert (target.topics_of("a__b") is not None) is leads
    assert target.heartbeat_age("a") is None
    target.heartbeats._taken["a"] = 0.0
    assert (target.heartbeat_age("a") is not None) is leads
