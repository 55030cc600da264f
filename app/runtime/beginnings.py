"""At which offset each partition is taken up: where it was left, or where the flow begins."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.config import FlowConfig
from app.core.formats import Position
from app.core.loss import Loss, Seen, judge
from app.core.records import TopicPartition
from app.kafka.admin import Admin
from app.runtime.catalog import Catalog
from app.runtime.ports import Ports
from app.runtime.task import Route, Task

log = logging.getLogger(__name__)

#: Losses kept for the status.
REMEMBERED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where to read on. `settled` when that is stored already, `anew` when earlier copies count no longer."""

    offset: int
    settled: bool
    anew: bool = False


class Beginnings:
    """Decides where partitions are taken up, and reports what was lost.

    A flow's start position is for the topics that are there when it runs for the first time, as far as no position is
    stored; it is stored at once. Topics that appear later are copied in full.
    """

    def __init__(self, config: FlowConfig, ports: Ports) -> None:
        self.losses: deque[Loss] = deque(maxlen=REMEMBERED)
        self.held: dict[TopicPartition, Loss] = {}
        self._config = config
        self._source: Admin = ports.source_admin
        self._target: Admin = ports.target_admin
        self._counters = ports.counters
        self._old: frozenset[tuple[str, str | None]] = frozenset()

    def first_run(self, catalog: Catalog) -> None:
        """Note that nothing of the flow is stored: the topics that are there now begin where the flow starts."""
        if self._config.start != "earliest":
            self._old = frozenset((topic, catalog.topics[topic].topic_id) for topic in catalog.selected)

    async def find(
        self, routes: Mapping[TopicPartition, Route], tasks: Mapping[TopicPartition, Task]
    ) -> dict[TopicPartition, Beginning]:
        """Return the beginnings of partitions; those that have to be held are not among them."""
        known = {tp: position for tp in routes if (position := _known(tp, tasks[tp])) is not None}
        found = await self._starts(routes, [tp for tp in routes if tp not in known])
        seen = await self._look(known, routes, tasks)
        for tp, position in known.items():
            loss = judge(*tp, position, seen[tp])
            if loss is None:
                self.held.pop(tp, None)
                found[tp] = Beginning(offset=position.offset, settled=True)
            elif self.report(tp, loss):
                found[tp] = Beginning(offset=loss.resume, settled=False, anew=loss.kind != "expired")
        return found

    def report(self, tp: TopicPartition, loss: Loss) -> bool:
        """Note a loss, in the log once, and tell whether the flow goes on behind it."""
        if self._config.on_loss == "report":
            self.losses.append(loss)
            self._counters.losses[loss.kind] += 1
            self.held.pop(tp, None)
            log.error("%s: %s", self._config.name, loss, extra={"kind": "loss"})
            return True
        if self.held.get(tp) != loss:
            self.held[tp] = loss
            log.error(
                "%s: %s; it is held (on_loss: stop) until the flow says on_loss: report",
                self._config.name,
                loss,
                extra={"kind": "loss"},
            )
        return False

    async def _starts(
        self, routes: Mapping[TopicPartition, Route], partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Beginning]:
        old = [tp for tp in partitions if (tp.topic, routes[tp].topic_id) in self._old]
        young = [tp for tp in partitions if tp not in set(old)]
        found = {
            tp: Beginning(offset=offset, settled=self._config.start == "earliest")
            for tp, offset in (await self._source.log_starts(young)).items()
        }
        if not old:
            return found
        offsets = await self._source.stable_offsets(old)
        if isinstance(self._config.start, datetime):
            milliseconds = int(self._config.start.timestamp() * 1000)
            offsets |= await self._source.offsets_at(old, milliseconds)
        return found | {tp: Beginning(offset=offset, settled=False) for tp, offset in offsets.items()}

    async def _look(
        self,
        known: Mapping[TopicPartition, Position],
        routes: Mapping[TopicPartition, Route],
        tasks: Mapping[TopicPartition, Task],
    ) -> dict[TopicPartition, Seen]:
        partitions = list(known)
        starts = await self._source.log_starts(partitions)
        ends = await self._source.high_watermarks(partitions)
        epoch_ends = await self._epoch_ends(known)
        copies = await self._target.high_watermarks(routes[tp].target for tp in partitions)
        return {
            tp: Seen(
                topic_id=routes[tp].topic_id,
                target_id=routes[tp].target_id,
                start=starts[tp],
                end=ends[tp],
                target_end=copies[routes[tp].target],
                epoch_end=epoch_ends.get(tp),
                newest=ledger.newest(tp) if (ledger := tasks[tp].ledger) else None,
            )
            for tp in partitions
        }

    async def _epoch_ends(self, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, int]:
        """Return where the source's log parts from the one in which the positions were, as far as that can be told."""
        return await self._source.epoch_ends(
            {tp: position.leader_epoch for tp, position in positions.items() if position.leader_epoch is not None}
        )

    async def out_of_range(self, tp: TopicPartition, task: Task, topic_id: str | None) -> Loss | None:
        """Return what was lost of a partition whose position the source does not hold; None when it holds it now."""
        position = _reached(tp, task)
        starts = await self._source.log_starts([tp])
        ends = await self._source.high_watermarks([tp])
        epoch_ends = await self._epoch_ends({tp: position})
        seen = Seen(topic_id=topic_id, start=starts[tp], end=ends[tp], target_end=0, epoch_end=epoch_ends.get(tp))
        return judge(*tp, position, seen)


def _known(tp: TopicPartition, task: Task) -> Position | None:
    """Return the position, also of a partition that is carried now and whose topic was created anew."""
    return _reached(tp, task) if tp in task.routes else task.stored.get(tp)


def _reached(tp: TopicPartition, task: Task) -> Position:
    route = task.routes[tp]
    return Position(
        offset=task.expected[tp],
        tasks=task.tasks,
        topic_id=route.topic_id,
        target_id=route.target_id,
        leader_epoch=task.leader_epochs.get(tp),
    )
