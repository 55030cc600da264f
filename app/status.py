"""What a worker says of itself: the stable JSON of `/status`, and the reasons of `/health`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from app.core.dead_letters import dead_letter_topic
from app.events import Event
from app.kafka.clients import WORKER
from app.observer import worst
from app.progress import Progress, progress
from app.runtime.flow import FlowService
from app.runtime.pipeline import Pipeline
from app.runtime.reload import Reloader
from app.runtime.supervisor import Supervisor
from app.version import VERSION

STARTED = time.time()


def status(supervisor: Supervisor, events: Iterable[Event] = (), reloader: Reloader | None = None) -> dict[str, Any]:
    """Return the status document. It asks no cluster: everything was learnt before."""
    clusters = supervisor.settings.clusters
    return {
        "worker": {
            "name": WORKER,
            "version": VERSION,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": STARTED,
            "now": time.time(),
            "leader": sorted(alias for alias, target in supervisor.targets.items() if target.leader),
            "control": supervisor.settings.web.token is not None,
        },
        "configuration": {
            "loaded": reloader.loaded if reloader else STARTED,
            "problem": reloader.problem if reloader else None,
        },
        "clusters": {
            alias: {
                "reachable": reachable,
                "cluster_id": supervisor.cluster_ids[alias],
                "region": clusters[alias].region,
                "zones": list(clusters[alias].zones),
            }
            for alias, reachable in supervisor.reachable.items()
        },
        "targets": {
            alias: {"leader": target.leader, "led_by": target.led_by, "problem": target.problem()}
            for alias, target in supervisor.targets.items()
        },
        "flows": {
            name: {
                **_flow(flow),
                "heartbeat": _heartbeat(supervisor, flow),
                "groups": _groups(supervisor, flow),
                "topic_problems": _topic_problems(supervisor, flow),
            }
            for name, flow in supervisor.flows.items()
        },
        "events": [asdict(event) for event in events],
    }


def problems(supervisor: Supervisor) -> list[str]:
    """Return why this worker is not healthy; empty when every flow runs, or is paused, and leader work can be done."""
    found = []
    for name, flow in supervisor.flows.items():
        if flow.flow_state not in ("running", "paused"):
            found.append(f"{name}: {flow.flow_state}" + (f": {flow.error}" if flow.error else ""))
        elif flow.pipeline is not None and not flow.pipeline.share.joined:
            found.append(f"{name}: waits for its share of the tasks")
        elif flow.pipeline is not None and flow.pipeline.share.problem:
            found.append(f"{name}: {flow.pipeline.share.problem}")
    return found + [problem for target in supervisor.targets.values() if (problem := target.problem())]


def _flow(flow: FlowService) -> dict[str, Any]:
    pipeline, now = flow.pipeline, time.time()
    rows = sorted(progress(flow), key=lambda row: row.source)
    records, size = flow.totals()
    counters = flow.counters
    return {
        "source": flow.config.source,
        "target": flow.config.target,
        "state": flow.flow_state,
        "delivery": flow.config.delivery,
        "error": flow.error or (pipeline.share.problem if pipeline else None),
        "tasks": _tasks(flow),
        "limits": flow.pace.document(),
        "workers": _workers(pipeline),
        "lag": sum(row.lag for row in rows),
        "lag_seconds": _rounded(worst(counters, rows, now)),
        "records": records,
        "bytes": size,
        "counts": {
            "commits": counters.commits,
            "rebalances": counters.rebalances,
            "fenced": counters.fenced,
            "refusals": counters.refusals,
            "dead_letters": counters.dead_letters,
            "task_failures": counters.task_failures,
            "flow_failures": counters.flow_failures,
            "losses": dict(counters.losses),
        },
        "partitions": [_partition(flow, row, now) for row in rows],
        "held": held(pipeline),
        "losses": [asdict(loss) for loss in pipeline.partitions.beginnings.losses] if pipeline else [],
        "dead_letters": _dead_letters(flow),
        "not_selected": dict(sorted(pipeline.partitions.catalog.left.items())) if pipeline else {},
    }


def _heartbeat(supervisor: Supervisor, flow: FlowService) -> dict[str, Any]:
    """Age of the last one that the target took from the source; only the target's leader knows."""
    target = supervisor.targets.get(flow.config.target)
    age = target.heartbeat_age(flow.config.source) if target else None
    return {"wanted": flow.config.heartbeats, "age_seconds": _rounded(age)}


def _groups(supervisor: Supervisor, flow: FlowService) -> dict[str, Any] | None:
    """What the last round of checkpoints found; only the target's leader knows."""
    target = supervisor.targets.get(flow.config.target)
    checkpoints = target.checkpoints_of(flow.config.name) if target else None
    if checkpoints is None:
        return None
    found = checkpoints.groups
    return {
        "checkpoint_age_seconds": _rounded(checkpoints.age()),
        "problems": sorted(checkpoints.problems),
        "groups": found.groups,
        "partitions": found.partitions,
        "first": list(found.first),
    }


def _topic_problems(supervisor: Supervisor, flow: FlowService) -> list[str] | None:
    """What the last look at settings, rights and our own topics found; only the target's leader knows."""
    target = supervisor.targets.get(flow.config.target)
    sync = target.topics_of(flow.config.name) if target else None
    return None if sync is None else sorted(sync.problems)


def _workers(pipeline: Pipeline | None) -> list[dict[str, Any]] | None:
    """Who runs which tasks of a flow; None when that was not learnt yet."""
    found = pipeline.roster.workers if pipeline else None
    return None if found is None else [asdict(crew) for crew in found]


def _dead_letters(flow: FlowService) -> dict[str, Any]:
    """What this worker set aside since it started, the newest first."""
    wanted = flow.config.on_rejected == "dead-letter"
    return {
        "topic": dead_letter_topic(flow.config.name) if wanted else None,
        "records": flow.counters.dead_letters,
        "last": [asdict(found) for found in reversed(flow.counters.set_aside)],
    }


def _tasks(flow: FlowService) -> dict[str, Any]:
    share = flow.pipeline.share if flow.pipeline else None
    found: dict[str, Any] = {"owned": sorted(share.tasks) if share else [], "total": flow.config.tasks}
    return found | {"idle": share.idle} if share and share.idle else found


def held(pipeline: Pipeline | None) -> dict[str, str]:
    """Topics and partitions that the flow would carry but cannot, with the reason."""
    return {} if pipeline is None else pipeline.partitions.held


def _partition(flow: FlowService, progress: Progress, now: float) -> dict[str, Any]:
    carried = flow.counters.of(progress.source)
    row: dict[str, Any] = {
        "topic": progress.source.topic,
        "partition": progress.source.partition,
        "remote_topic": progress.remote_topic,
        "task": progress.task,
        "position": progress.position,
        "end_offset": progress.end,
        "lag": progress.lag,
        "lag_seconds": _rounded(carried.lag_seconds(progress.lag, now)),
        "records": carried.records,
        "bytes": carried.bytes,
    }
    return row | {"held": progress.waits} if progress.waits else row


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
