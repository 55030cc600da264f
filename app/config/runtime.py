"""Timings and limits. Each may also be set by the environment variable KRABKA_REPLICATOR_<NAME>, which wins."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from app.config.base import Count, Duration, Model, Size

#: Names of the reference system that nothing here is governed by; accepted, and said to be without effect when set.
WITHOUT_EFFECT = {
    "internal_drain_poll_timeout": "internal topics are read to a known end",
    "internal_drain_empty_polls": "internal topics are read to a known end",
    "client_dns_timeout": "the operating system resolves names",
    "client_dispatch_queue_capacity": "the client libraries bound their own queues",
}


def _set(default: str | int, description: str) -> Any:
    """A field whose default is written as an operator would write it."""
    return Field(default, description=description)


class RuntimeConfig(Model):
    """The reference system's names and defaults, and ours."""

    topic_create_timeout: Duration = _set("10s", "how long a target may take to create topics")
    source_poll_timeout: Duration = _set("500ms", "how long a fetch waits on an idle source")
    internal_drain_poll_timeout: Duration = _set("500ms", "without effect")
    internal_drain_empty_polls: Count = _set(3, "without effect")
    worker_build_retry_budget: Duration = _set("30s", "how long building a flow is tried before it counts as failed")
    worker_build_initial_backoff: Duration = _set("250ms", "first pause between tries; doubles")
    worker_build_max_backoff: Duration = _set("8s", "longest pause between tries")
    connect_commit_interval: Duration = _set("500ms", "time between two commits of a busy task")
    connect_max_batch_records: Count = _set(1_000_000, "records after which a task commits at once")
    supervisor_interval: Duration = _set("3s", "pause before a failed flow is built again")
    heartbeat_interval: Duration = _set("1s", "time between heartbeats")
    checkpoint_interval: Duration = _set("5s", "time between checkpoints")
    topic_refresh_interval: Duration = _set("30s", "time between looks for new topics and partitions")
    client_dns_timeout: Duration = _set("10s", "without effect")
    client_connect_timeout: Duration = _set("5s", "how long a connection may take")
    client_request_timeout: Duration = _set("30s", "how long a broker may take to answer")
    client_frame_max: Size = _set("100MiB", "largest fetch response that is asked for")
    client_dispatch_queue_capacity: Count = _set(64, "without effect")
    data_topic_replication_factor: Count = _set(1, "of topics created for data")
    internal_topic_replication_factor: Count = _set(1, "of the replicator's own topics")
    group_session_timeout: Duration = _set("10s", "silence after which a worker's tasks move to others")
    group_heartbeat_interval: Duration = _set("1s", "time between a worker's signs of life")
    transaction_timeout: Duration = _set("30s", "exactly-once: when the target aborts an unfinished commit")
    drain_timeout: Duration = _set("3s", "how long the last commit may take at the end")
    fetch_max_bytes: Size = _set("16MiB", "bytes asked for in one fetch of a source broker")
    max_in_flight_bytes: Size = _set("16MiB", "bytes that a task may have sent without acknowledgement")
    logging: Literal["text", "json"] = _set("text", "a worker's log: lines for people, or one JSON object per line")

    @model_validator(mode="after")
    def _consistent(self) -> RuntimeConfig:
        problems = []
        if self.worker_build_initial_backoff > self.worker_build_max_backoff:
            problems.append("worker_build_initial_backoff is longer than worker_build_max_backoff")
        if self.worker_build_retry_budget < self.worker_build_initial_backoff:
            problems.append("worker_build_retry_budget is shorter than worker_build_initial_backoff: one try, no more")
        if self.group_heartbeat_interval * 3 > self.group_session_timeout:
            problems.append("group_session_timeout must allow for three missed heartbeats (group_heartbeat_interval)")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def without_effect(self) -> tuple[str, ...]:
        """Return what was set but governs nothing, each with the reason."""
        return tuple(f"{name}: {why}" for name, why in WITHOUT_EFFECT.items() if name in self.model_fields_set)
