"""Which partitions a worker reads: those of its tasks that the catalog holds, each from the right offset."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from app.config import FlowConfig, RuntimeConfig
from app.core.flow_rules import FlowRules
from app.core.records import TopicPartition
from app.core.tasks import task_of
from app.runtime.catalog import Catalog, ensure_targets, survey
from app.runtime.ports import Ports
from app.runtime.share import Share
from app.runtime.task import Route, Task

log = logging.getLogger(__name__)


class Partitions:
    """Keeps reading in step with the source's topics.

    Invariant: a partition is read only when its target topic has the partition, so no record is sent where it has no
    place, and none is skipped: reading starts at the stored position, or at the first record that the source has.
    """

    def __init__(self, config: FlowConfig, runtime: RuntimeConfig, rules: FlowRules, ports: Ports) -> None:
        self.catalog = Catalog()
        self.refused: dict[str, str] = {}
        self.share = Share(config, runtime, ports, self.take_up)
        self._config = config
        self._runtime = runtime
        self._rules = rules
        self._ports = ports

    async def look(self) -> None:
        """Read the source's topics."""
        self.catalog = survey(await self._ports.source_admin.topics(), self._rules)

    async def discover(self) -> None:
        """Look again, and take up or give up partitions of the owned tasks without touching others."""
        catalog = survey(await self._ports.source_admin.topics(), self._rules)
        async with self.share.changing:
            self.catalog = catalog
            await self.take_up(frozenset(self.share.tasks))

    async def take_up(self, numbers: frozenset[int]) -> None:
        """Bring the partitions of these tasks in step with the catalog: topics on the target first, then reading."""
        routes = {tp: route for tp, route in self.catalog.routes(self._rules).items() if self._number(tp) in numbers}
        self._give_up(numbers, routes)
        new = {tp: route for tp, route in routes.items() if tp not in self._task(tp).routes}
        if not new:
            return
        needed = frozenset(tp.topic for tp in new)
        self.refused = await ensure_targets(
            self.catalog,
            needed,
            self._ports.source_admin,
            self._ports.target_admin,
            self._runtime,
            self._config.sync.core_rules(),
        )
        for topic, reason in self.refused.items():
            log.error("%s: topic %s is held: %s", self._config.name, topic, reason)
        offsets = await self._starting_offsets([tp for tp in new if tp.topic not in self.refused])
        await self._begin_indexes(new, offsets)
        for tp, offset in offsets.items():
            self._task(tp).add(new[tp], offset)
        if offsets:
            self._ports.reader.seek(offsets)

    def _give_up(self, numbers: frozenset[int], routes: Mapping[TopicPartition, Route]) -> None:
        for number in numbers:
            task = self.share.tasks[number]
            gone = [tp for tp in task.routes if tp not in routes]
            self._ports.reader.drop(gone)
            task.remove(gone)

    async def _begin_indexes(
        self, routes: Mapping[TopicPartition, Route], offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Have the offset index begin where the first copy comes to lie, before there is one."""
        begun = {tp: offset for tp, offset in offsets.items() if self._task(tp).begins_index(routes[tp])}
        ends = await self._ports.target_admin.high_watermarks(routes[tp].target for tp in begun)
        by_task: dict[Task, dict[TopicPartition, tuple[int, int]]] = {}
        for tp, offset in begun.items():
            by_task.setdefault(self._task(tp), {})[tp] = (offset, ends[routes[tp].target])
        await asyncio.gather(*(task.begin_indexes(starts) for task, starts in by_task.items()))

    async def _starting_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        stored = {tp: self._task(tp).stored.get(tp) for tp in partitions}
        unknown = [tp for tp, position in stored.items() if position is None]
        starts = await self._ports.source_admin.log_starts(unknown)
        return {tp: starts[tp] if position is None else position.offset for tp, position in stored.items()}

    async def out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on from the first record that a source still has, after saying which are gone."""
        starts = await self._ports.source_admin.log_starts(positions)
        for tp, position in positions.items():
            task = self.share.tasks.get(self._number(tp))
            if task is None or not await _written_up_to(task, tp, position):
                continue
            start = starts[tp]
            gone = f"offsets {position} to {start - 1} are gone" if start > position else "the partition ends before it"
            log.error(
                "%s: %s-%d: position %d is not on the source: %s; going on at %d",
                *(self._config.name, *tp, position, gone, start),
            )
            async with task.turn:
                task.advance(tp, start)
            self._ports.reader.seek({tp: start})

    def _number(self, tp: TopicPartition) -> int:
        return task_of(*tp, self._config.tasks)

    def _task(self, tp: TopicPartition) -> Task:
        return self.share.tasks[self._number(tp)]


async def _written_up_to(task: Task, tp: TopicPartition, position: int) -> bool:
    """Wait until what was read before is on its way to the target; tell whether the task still has the partition."""
    while task.error is None and tp in task.routes and task.expected[tp] < position:
        await asyncio.sleep(0.02)
    return task.error is None and tp in task.routes
