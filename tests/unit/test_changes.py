"""What a reload does to each flow, from two configurations."""

from __future__ import annotations

from typing import Any

import pytest

from app.config import Settings
from app.runtime.changes import Changes, changes, needs_restart


def document(**more: Any) -> dict[str, Any]:
    return {
        "clusters": {alias: {"bootstrap": f"127.0.0.1:{port}"} for port, alias in enumerate("abc", 1)},
        "flows": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
        **more,
    }


def settings(**more: Any) -> Settings:
    return Settings.model_validate(document(**more))


def test_the_same_changes_nothing() -> None:
    found = changes(settings(), settings())
    assert found == Changes(kept=("a__b", "b__c"))
    assert str(found) == "nothing has changed"
    assert not found.moved


def test_a_flow_that_differs_is_built_anew_and_others_do_not_notice() -> None:
    new = settings(flows=[{"from": "a", "to": "b", "delivery": "exactly-once"}, {"from": "b", "to": "c"}])
    assert changes(settings(), new) == Changes(rebuilt=("a__b",), kept=("b__c",))


def test_another_limit_alone_rebuilds_nothing() -> None:
    limits = {"bytes_per_second": "5MiB"}
    new = settings(flows=[{"from": "a", "to": "b", "limits": limits}, {"from": "b", "to": "c"}])
    found = changes(settings(), new)
    assert found == Changes(limited=("a__b",), kept=("b__c",))
    assert not found.moved
    new = settings(flows=[{"from": "a", "to": "b", "limits": limits, "tasks": 4}, {"from": "b", "to": "c"}])
    assert changes(settings(), new).rebuilt == ("a__b",)


def test_flows_come_and_go() -> None:
    new = settings(flows=[{"from": "b", "to": "c"}, {"from": "a", "to": "c"}])
    found = changes(settings(), new)
    assert found == Changes(started=("a__c",), stopped=("a__b",), kept=("b__c",))
    assert found.moved == {"a__b", "a__c"}
    assert str(found) == "started a__c; stopped a__b"


def test_flows_of_targets_that_other_workers_serve_are_not_this_worker_s() -> None:
    old, new = (
        Settings.model_validate(document(only_targets=("b",), **more))
        for more in (
            {},
            {"flows": [{"from": "a", "to": "b"}, {"from": "b", "to": "c", "tasks": 2}, {"from": "a", "to": "c"}]},
        )
    )
    assert changes(old, new) == Changes(kept=("a__b",))


def test_what_decides_about_topics_of_a_flow_rebuilds_it_wherever_it_stands() -> None:
    """A policy, a zone, and a flow that makes a circle of two: the rules of the flow are others then."""
    policy = {"name": "eu", "topics": ["pii*"], "residency": {"allow_zones": ["eu"]}}
    assert changes(settings(), settings(policies=[policy])).rebuilt == ("a__b", "b__c")
    clusters = {**document()["clusters"], "c": {"bootstrap": "127.0.0.1:3", "zones": ["eu"]}}
    assert changes(settings(), settings(clusters=clusters)) == Changes(rebuilt=("b__c",), kept=("a__b",))
    back = [*document()["flows"], {"from": "b", "to": "a"}]
    assert changes(settings(), settings(flows=back)) == Changes(started=("b__a",), rebuilt=("a__b",), kept=("b__c",))


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"runtime": {"drain_timeout": "9s"}}, ["runtime"]),
        ({"web": {"token": "sixteen-or-more-letters"}}, ["web"]),
        ({"clusters": {**document()["clusters"], "a": {"bootstrap": "127.0.0.1:9"}}}, ["clusters.a.bootstrap"]),
        ({"clusters": {**document()["clusters"], "d": {"bootstrap": "127.0.0.1:9"}}}, []),
        ({"clusters": {**document()["clusters"], "a": {"bootstrap": "127.0.0.1:1", "region": "x"}}}, []),
    ],
)
def test_what_is_read_only_at_the_start_is_refused(more: dict[str, Any], where: list[str]) -> None:
    assert [problem.where for problem in needs_restart(settings(), settings(**more))] == where
