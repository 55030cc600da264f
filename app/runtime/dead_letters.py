"""`on_rejected: dead-letter`: finding the records that the target refuses, and setting them aside."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from app.core.dead_letters import dead_letter_headers, dead_letter_topic
from app.core.provenance import Header
from app.core.records import TopicPartition
from app.errors import RecordsRefused
from app.kafka.batches import BATCH_OVERHEAD, SourceBatch, TargetBatch
from app.kafka.convert import Keep, merge, replayed
from app.runtime.counters import SetAside
from app.runtime.task import Route, Task

log = logging.getLogger(__name__)

#: Seconds after which `carry` returns, so that a commit comes in time where much is refused or the target is far away.
SLICE = 5.0


class DeadLetters:
    """Carries partitions of which records were refused: one batch at a time, and what is refused again in halves.

    Invariant: before the position moves behind a record, it is acknowledged by its remote topic or, when that refused
    it alone, by the dead-letter topic. What both refuse, and what is refused for a reason that no single record has,
    fails the task as it does without dead letters.
    """

    def __init__(
        self, flow: str, cluster: str, origin: Header, read_again: Callable[[TopicPartition, int], None]
    ) -> None:
        self.topic = TopicPartition(dead_letter_topic(flow), 0)
        self._flow = flow
        self._cluster = cluster
        self._origin = origin
        self._read_again = read_again

    async def carry(self, task: Task, route: Route, run: Sequence[SourceBatch], keep: Keep | None) -> int:
        """Write consecutive batches; return the source offset up to which all is acknowledged.

        That may be before their end, but is behind the first record; what is left is read again then. The caller holds
        `task.turn`. Raises as `TargetWriter.offer`.
        """
        moved: dict[str, list[int]] = defaultdict(list)
        deadline = asyncio.get_running_loop().time() + SLICE
        reached = run[0].start
        try:
            for source in run:
                reached = await self._carry_batch(task, route, source, keep, moved, deadline)
                if reached < source.next_offset:
                    self._read_again(source.tp, reached)
                    break
        finally:
            self._tell(task, route.source, moved)
        return reached

    async def _carry_batch(
        self,
        task: Task,
        route: Route,
        source: SourceBatch,
        keep: Keep | None,
        moved: dict[str, list[int]],
        deadline: float,
    ) -> int:
        found = [] if source.batch is None else [record for record in source.batch if record.offset >= source.start]
        parts = [found if keep is None else [record for record in found if keep(record.headers)]]
        while parts and (part := parts.pop()):
            if asyncio.get_running_loop().time() > deadline:
                return int(part[0].offset)
            batch = next(
                merge(
                    [replayed(source, part)],
                    self._origin,
                    transactional=task.writer.transactional,
                    keep=None,
                    limit=route.max_batch,
                )
            )
            taken, rest = part[: batch.record_count()], part[batch.record_count() :]
            if rest:
                parts.append(rest)
            try:
                await task.offer(route, batch)
            except RecordsRefused as refused:
                if not _by_record(refused, route, taken):
                    raise
                if len(taken) == 1:
                    await self._set_aside(task, route, source.codec, taken[0], refused)
                    moved[refused.reason].append(taken[0].offset)
                else:
                    middle = len(taken) // 2
                    parts += [taken[middle:], taken[:middle]]
        return source.next_offset

    async def _set_aside(self, task: Task, route: Route, codec: int, record: Any, refused: RecordsRefused) -> None:
        said = dead_letter_headers(self._cluster, route.source, record.offset, route.target.topic, refused.reason)
        size = BATCH_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        batch = TargetBatch(size, codec, transactional=task.writer.transactional)
        headers = [*record.headers, self._origin, *said]
        batch.append(timestamp=record.timestamp, key=record.key, value=record.value, headers=headers)
        try:
            await task.set_aside(self.topic, batch)
        except RecordsRefused as again:
            raise RecordsRefused(
                flow=self._flow,
                task=task.number,
                **route.target._asdict(),
                reason=f"{refused.reason}; so does {self.topic.topic}: {again.reason}",
                remedy=f"{refused.remedy}, or for {self.topic.topic}: {again.remedy}",
            ) from again

    def _tell(self, task: Task, tp: TopicPartition, moved: dict[str, list[int]]) -> None:
        for reason, offsets in moved.items():
            task.counters.dead_letters += len(offsets)
            task.counters.set_aside.append(_set_aside(tp, offsets, reason))
            where = f"offset {offsets[0]}" if len(offsets) == 1 else f"offsets {offsets[0]} to {offsets[-1]}"
            count = "1 record" if len(offsets) == 1 else f"{len(offsets)} records"
            log.warning(
                "%s: %s-%d: %s (%s) set aside in %s, the target refuses: %s",
                *(self._flow, *tp, count, where, self.topic.topic, reason),
                extra={"kind": "dead-letter"},
            )


def _set_aside(tp: TopicPartition, offsets: Sequence[int], reason: str) -> SetAside:
    return SetAside(
        time=time.time(), **tp._asdict(), first=offsets[0], last=offsets[-1], records=len(offsets), reason=reason
    )


def _by_record(refused: RecordsRefused, route: Route, records: Sequence[Any]) -> bool:
    """Tell whether single ones of these records are the reason."""
    if refused.kind == "no-key":
        return route.compacted and any(record.key is None for record in records)
    return refused.kind == "record"
