"""How far each partition of a flow is: what status, metrics and history are made of. Asks no cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.core.records import TopicPartition
from app.runtime.flow import FlowService


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One partition that this worker carries; `waits` says what holds it back on the source's side."""

    source: TopicPartition
    remote_topic: str
    task: int
    position: int
    end: int
    waits: str | None

    @property
    def lag(self) -> int:
        """Records (offsets) that are readable and not copied."""
        return self.end - self.position


def progress(flow: FlowService) -> Iterator[Progress]:
    """Yield the partitions of the tasks that this worker owns, in no order."""
    pipeline = flow.pipeline
    if pipeline is None:
        return
    for task in pipeline.share.tasks.values():
        for tp, route in task.routes.items():
            position = task.committed[tp]
            end = pipeline.reader.end(tp)
            open_transaction = end is not None and end.written > end.readable and position >= end.readable
            yield Progress(
                source=tp,
                remote_topic=route.target.topic,
                task=task.number,
                position=position,
                end=max(position, end.readable if end else 0, pipeline.ends.get(tp, 0)),
                waits=f"held at offset {position} by an open transaction" if open_transaction else None,
            )
