"""What a worker says of itself: the stable JSON of `/status`, and the reasons of `/health`."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict
from typing import Any

from app.core.records import TopicPartition
from app.runtime.flow import FlowService
from app.runtime.pipeline import Pipeline
from app.runtime.supervisor import Supervisor
from app.runtime.task import Task
from app.version import VERSION


def status(supervisor: Supervisor) -> dict[str, Any]:
    """Return the status document. It asks no cluster: everything was learnt before."""
    return {
        "worker": {
            "version": VERSION,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "leader": sorted(alias for alias, target in supervisor.targets.items() if target.leader),
        },
        "clusters": {
            alias: {"reachable": reachable, "cluster_id": supervisor.cluster_ids[alias]}
            for alias, reachable in supervisor.reachable.items()
        },
        "flows": {name: _flow(flow) for name, flow in supervisor.flows.items()},
    }


def problems(supervisor: Supervisor) -> list[str]:
    """Return why this worker is not healthy; empty when every flow runs and leader work can be done."""
    found = []
    for name, flow in supervisor.flows.items():
        if flow.flow_state != "running":
            found.append(f"{name}: {flow.flow_state}" + (f": {flow.error}" if flow.error else ""))
        elif flow.pipeline is not None and not flow.pipeline.share.joined:
            found.append(f"{name}: waits for its share of the tasks")
    return found + [problem for target in supervisor.targets.values() if (problem := target.problem())]


def _flow(flow: FlowService) -> dict[str, Any]:
    pipeline = flow.pipeline
    tasks = pipeline.share.tasks if pipeline else {}
    partitions = [
        _partition(pipeline, task, tp) for task in tasks.values() for tp in task.routes if pipeline is not None
    ]
    partitions.sort(key=lambda row: (row["topic"], row["partition"]))
    records, size = pipeline.share.carried() if pipeline else (0, 0)
    return {
        "state": flow.flow_state,
        "delivery": flow.config.delivery,
        "error": flow.error,
        "tasks": {"owned": sorted(tasks), "total": flow.config.tasks},
        "lag": sum(row["lag"] for row in partitions),
        "records": flow.carried[0] + records,
        "bytes": flow.carried[1] + size,
        "partitions": partitions,
        "held": _held(pipeline),
        "losses": [asdict(loss) for loss in pipeline.partitions.beginnings.losses] if pipeline else [],
        "not_selected": dict(sorted(pipeline.partitions.catalog.left.items())) if pipeline else {},
    }


def _held(pipeline: Pipeline | None) -> dict[str, str]:
    """Topics and partitions that the flow would carry but cannot, with the reason."""
    if pipeline is None:
        return {}
    partitions = {
        **{tp: loss.reason for tp, loss in pipeline.partitions.beginnings.held.items()},
        **pipeline.share.refusals.reasons,
    }
    lost = {f"{tp.topic}-{tp.partition}": reason for tp, reason in partitions.items()}
    return {**pipeline.partitions.catalog.refused, **pipeline.partitions.refused, **lost}


def _partition(pipeline: Pipeline, task: Task, tp: TopicPartition) -> dict[str, Any]:
    position = task.committed[tp]
    end = pipeline.reader.end(tp)
    readable = max(position, end.readable) if end else position
    row: dict[str, Any] = {
        "topic": tp.topic,
        "partition": tp.partition,
        "remote_topic": task.routes[tp].target.topic,
        "task": task.number,
        "position": position,
        "end_offset": readable,
        "lag": readable - position,
    }
    if end and end.written > end.readable and position >= end.readable:
        row["held"] = f"held at offset {position} by an open transaction"
    return row
