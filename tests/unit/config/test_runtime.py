"""Timings, limits, and the environment that wins over the file."""

import pytest

from app.config import RuntimeConfig
from app.config.runtime import WITHOUT_EFFECT

from .conftest import Load, Refused

VARIABLE = "KRABKA_REPLICATOR_HEARTBEAT_INTERVAL"


def test_the_reference_system_s_defaults() -> None:
    theirs = {
        "topic_create_timeout": 10, "source_poll_timeout": 0.5, "internal_drain_poll_timeout": 0.5,
        "internal_drain_empty_polls": 3, "worker_build_retry_budget": 30, "worker_build_initial_backoff": 0.25,
        "worker_build_max_backoff": 8, "connect_commit_interval": 0.5, "supervisor_interval": 3,
        "heartbeat_interval": 1, "checkpoint_interval": 5, "client_dns_timeout": 10, "client_connect_timeout": 5,
        "client_request_timeout": 30, "client_frame_max": 100 * 2**20, "client_dispatch_queue_capacity": 64,
        "data_topic_replication_factor": 1, "internal_topic_replication_factor": 1, "topic_refresh_interval": 30,
    }  # fmt: skip
    assert {name: getattr(RuntimeConfig(), name) for name in theirs} == theirs


@pytest.mark.parametrize("value", ["5", "5.0", '"5"', "-5s", "5S", "1e3s", "true", "~", "[1s]", "inf", ".inf", ".nan"])
def test_what_is_no_duration(refused: Refused, base: str, value: str) -> None:
    (problem,) = refused(f"{base}runtime: {{heartbeat_interval: {value}}}\n")
    assert problem.startswith("runtime.heartbeat_interval: ")
    assert problem.endswith(" is not a duration such as 500ms, 5s or 2m")


@pytest.mark.parametrize("value", ["0s", "0ms", "25d", "99999999999999999999d"])
def test_durations_have_bounds(refused: Refused, base: str, value: str) -> None:
    problem = "runtime.heartbeat_interval: it has to be longer than nothing and at most 24d"
    assert refused(f"{base}runtime: {{heartbeat_interval: {value}}}\n") == [problem]


@pytest.mark.parametrize("value", ["5.5", "-5", "5kb", "true", '"²"', "[1]"])
def test_what_is_no_size(refused: Refused, base: str, value: str) -> None:
    (problem,) = refused(f"{base}runtime: {{client_frame_max: {value}}}\n")
    assert problem.endswith(" is not a size such as 64KiB, 100MiB or 1000000")


@pytest.mark.parametrize("value", ["0", "0.1B", "2GiB"])
def test_sizes_have_bounds(refused: Refused, base: str, value: str) -> None:
    problem = "runtime.client_frame_max: it has to be more than nothing and at most 2147483647 bytes"
    assert refused(f"{base}runtime: {{client_frame_max: {value}}}\n") == [problem]


@pytest.mark.parametrize("value", ["true", "3.0", "-1", "0", "3s", '"²"'])
def test_what_is_no_count(refused: Refused, base: str, value: str) -> None:
    problem = "runtime.data_topic_replication_factor: it has to be a whole number from 1 to 2147483647"
    assert refused(f"{base}runtime: {{data_topic_replication_factor: {value}}}\n") == [problem]


@pytest.mark.parametrize(
    ("runtime", "problem"),
    [
        ("worker_build_initial_backoff: 9s", "worker_build_initial_backoff is longer than worker_build_max_backoff"),
        ("worker_build_retry_budget: 100ms",
         "worker_build_retry_budget is shorter than worker_build_initial_backoff: one try, no more"),
        ("group_session_timeout: 2s",
         "group_session_timeout must allow for three missed heartbeats (group_heartbeat_interval)"),
    ],
)  # fmt: skip
def test_timings_that_contradict_each_other(refused: Refused, base: str, runtime: str, problem: str) -> None:
    assert refused(f"{base}runtime: {{{runtime}}}\n") == [f"runtime: {problem}"]


def test_the_bounds_themselves_are_allowed(load: Load, base: str) -> None:
    runtime = "worker_build_initial_backoff: 2s, worker_build_max_backoff: 2s, worker_build_retry_budget: 2s"
    assert load(f"{base}runtime: {{{runtime}, group_session_timeout: 3s}}\n").runtime.worker_build_max_backoff == 2


@pytest.mark.parametrize("runtime", ["[1]", "abc"])
def test_a_section_that_is_no_mapping(refused: Refused, base: str, runtime: str) -> None:
    environ = {VARIABLE: "1s"}
    assert refused(f"{base}runtime: {runtime}\n", environ) == ["runtime: a mapping is expected, `name: value`"]


@pytest.mark.parametrize("section", ["", "runtime:\n", "runtime: {heartbeat_interval: 3s}\n"])
def test_the_environment_wins(load: Load, base: str, section: str) -> None:
    assert load(base + section, {VARIABLE: "2s", "HEARTBEAT_INTERVAL": "9s"}).runtime.heartbeat_interval == 2


def test_the_environment_also_hides_what_is_wrong_in_the_file(load: Load, base: str) -> None:
    assert load(base + "runtime: {heartbeat_interval: x}\n", {VARIABLE: "2s"}).runtime.heartbeat_interval == 2


@pytest.mark.parametrize("name", list(RuntimeConfig.model_fields))
def test_every_setting_has_its_variable(load: Load, base: str, name: str) -> None:
    default = RuntimeConfig.model_fields[name].default
    settings = load(base, {f"KRABKA_REPLICATOR_{name.upper()}": str(default)})
    assert settings.runtime == RuntimeConfig()
    assert settings.runtime.model_fields_set == {name}


@pytest.mark.parametrize("value", ["3", "", "soon"])
def test_a_malformed_variable_is_named(refused: Refused, base: str, value: str) -> None:
    problem = f"{VARIABLE}: {value!r} is not a duration such as 500ms, 5s or 2m"
    assert refused(base + "runtime: {heartbeat_interval: 1s}\n", {VARIABLE: value}) == [problem]


def test_an_unknown_variable_is_answered_with_the_nearest(refused: Refused, base: str) -> None:
    assert refused(base, {VARIABLE + "L": "1s"}) == [f"{VARIABLE}L: unknown variable, did you mean {VARIABLE!r}?"]


def test_a_worker_may_be_limited_to_some_targets(load: Load, base: str) -> None:
    both = base + "  - {from: eu-west, to: us-east}\n"
    assert load(both, {"KRABKA_REPLICATOR_CLUSTERS": ""}).targets == ("eu-west", "us-east")
    assert load(both, {"KRABKA_REPLICATOR_CLUSTERS": " us-east ,"}).targets == ("us-east",)


@pytest.mark.parametrize(("alias", "hint"), [("eu-wets", "did you mean 'eu-west'?"), ("us-east", "known are eu-west")])
def test_a_limit_to_no_target_is_refused(refused: Refused, base: str, alias: str, hint: str) -> None:
    problem = f"KRABKA_REPLICATOR_CLUSTERS: no flow goes to {alias!r}, {hint}"
    assert refused(base, {"KRABKA_REPLICATOR_CLUSTERS": alias}) == [problem]


def test_a_worker_may_have_a_name(load: Load, base: str) -> None:
    assert load(base).group_instance_id is None
    assert load(base, {"KRABKA_REPLICATOR_GROUP_INSTANCE_ID": "w1"}).group_instance_id == "w1"


@pytest.mark.parametrize("name", list(WITHOUT_EFFECT))
def test_what_is_set_without_effect_is_said(load: Load, base: str, name: str) -> None:
    value = str(RuntimeConfig.model_fields[name].default)
    said = (f"{name}: {WITHOUT_EFFECT[name]}",)
    assert load(base).runtime.without_effect() == ()
    assert load(f"{base}runtime: {{{name}: {value}}}\n").runtime.without_effect() == said
    assert load(base, {f"KRABKA_REPLICATOR_{name.upper()}": value}).runtime.without_effect() == said
