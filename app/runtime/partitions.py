"""Which partitions a worker reads: those of its tasks that the catalog holds, each from the right offset."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from app.config import FlowConfig, RuntimeConfig
from app.core.flow_rules import FlowRules, Selected, select
from app.core.limits import part_of
from app.core.records import TopicPartition
from app.core.selection import is_name
from app.core.tasks import task_of
from app.errors import SourceCutOff, TargetGone
from app.runtime.beginnings import Beginning, Beginnings
from app.runtime.catalog import Catalog, ensure_targets, lost_targets, survey, with_targets
from app.runtime.pace import Pace
from app.runtime.ports import Ports
from app.runtime.share import Share
from app.runtime.task import Route, Task

log = logging.getLogger(__name__)


class Partitions:
    """Keeps reading in step with the source's topics.

    Invariant: a partition is read only when its target topic has the partition, so no record is sent where it has no
    place, and none is skipped: reading starts where `Beginnings` says.
    """

    def __init__(self, config: FlowConfig, runtime: RuntimeConfig, rules: FlowRules, ports: Ports, pace: Pace) -> None:
        self.catalog = Catalog()
        self.refused: dict[str, str] = {}
        self.denied: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        self.beginnings = Beginnings(config, ports)
        self.share = Share(config, runtime, ports, self.take_up)
        self._known_denials: set[str] = set()
        self._config = config
        self._runtime = runtime
        self._rules = rules
        self._ports = ports
        self._pace = pace

    async def look(self) -> None:
        """Read the source's topics."""
        self.catalog = survey(await self._ports.source_admin.topics(), self._rules)

    async def discover(self) -> None:
        """Look again, and take up or give up partitions of the owned tasks without touching others."""
        catalog = survey(await self._ports.source_admin.topics(), self._rules)
        hidden = await self._hidden(catalog)
        async with self.share.changing:
            self.catalog = catalog
            self._note_hidden(hidden)
            tried, self.denied = self.denied, {}
            self._known_denials &= tried.keys()
            await self._look_at_targets()
            await self.take_up(frozenset(self.share.tasks))

    async def _hidden(self, catalog: Catalog) -> dict[str, str]:
        """Return topics that the source keeps out of its list because of missing rights.

        Asked about are topics that the configuration names, that were carried, or of which a position is stored.
        """
        known = {*filter(is_name, self._config.topics.include), *self.catalog.selected}
        known |= {tp.topic for task in self.share.tasks.values() for tp in task.stored}
        absent = known - catalog.topics.keys()
        chosen = {topic for topic in absent if isinstance(select(topic, self._rules), Selected)}
        return dict.fromkeys(
            sorted(await self._ports.source_admin.denied(chosen)),
            f"{self._config.source} does not show it to this user; `faust -A app rights` lists what to grant",
        )

    def _note_hidden(self, hidden: dict[str, str]) -> None:
        for topic in hidden.keys() - self.hidden.keys():
            self._tell_held(topic, hidden[topic])
        self.hidden = hidden

    def deny(self, topic: str) -> None:
        """Hold a topic that the source does not let us read; the next discovery tries it again."""
        reason = f"{self._config.source} does not let this user read it; `faust -A app rights` lists what to grant"
        if topic not in self._known_denials:
            self._tell_held(topic, reason)
        self.denied[topic] = reason
        self._known_denials.add(topic)
        for task in self.share.tasks.values():
            partitions = [tp for tp in task.routes if tp.topic == topic]
            self._ports.reader.drop(partitions)
            task.remove(partitions)

    def _tell_held(self, topic: str, reason: str) -> None:
        log.error("%s: topic %s is held: %s", self._config.name, topic, reason)

    @property
    def held(self) -> dict[str, str]:
        """Topics and partitions that the flow would carry but cannot, with the reason."""
        partitions = {
            **{tp: loss.reason for tp, loss in self.beginnings.held.items()},
            **self.share.refusals.reasons,
        }
        topics = {**self.catalog.refused, **self.refused, **self.denied, **self.hidden}
        return topics | {f"{tp.topic}-{tp.partition}": reason for tp, reason in partitions.items()}

    async def _look_at_targets(self) -> None:
        """Have tasks made anew whose copies are gone: what they wrote last may wait for a topic that is not there."""
        carried = [route for task in self.share.tasks.values() if task.error is None for route in task.routes.values()]
        present = await self._ports.target_admin.describe({route.target.topic for route in carried})
        for tp, topic in lost_targets(carried, present).items():
            task = self._task(tp)
            self.share.task_failed(task, TargetGone(flow=task.flow, task=task.number, topic=topic))

    async def take_up(self, numbers: frozenset[int]) -> None:
        """Bring the partitions of these tasks in step with the catalog: topics on the target first, then reading."""
        self.share.refusals.settle(self.share.tasks)
        routes = self._routes(numbers)
        self._give_up(numbers, routes)
        new = {tp: route for tp, route in routes.items() if self._is_new(tp, route)}
        if not new:
            self.refused = {}
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
            self._tell_held(topic, reason)
        await self._begin({tp: route for tp, route in new.items() if tp.topic not in self.refused})

    def _routes(self, numbers: frozenset[int]) -> dict[TopicPartition, Route]:
        now, refusals = asyncio.get_running_loop().time(), self.share.refusals
        every = self.catalog.routes(self._rules)
        self._pace.share(part_of(numbers, frozenset(map(self._number, every))))
        return {
            tp: route
            for tp, route in every.items()
            if self._number(tp) in numbers and not refusals.holds(tp, now) and tp.topic not in self.denied
        }

    def _is_new(self, tp: TopicPartition, route: Route) -> bool:
        """Tell whether a partition is not carried yet, or is another one than before: its topic was created anew."""
        carried = self._task(tp).routes.get(tp)
        return carried is None or carried.topic_id != route.topic_id

    async def _begin(self, routes: Mapping[TopicPartition, Route]) -> None:
        tasks = {tp: self._task(tp) for tp in routes}
        self._ports.reader.drop([tp for tp in routes if tp in tasks[tp].routes])
        routes = await with_targets(routes, self._ports.target_admin)
        found = await self.beginnings.find(routes, tasks)
        await self._begin_indexes(routes, found)
        for tp, beginning in found.items():
            async with tasks[tp].turn:
                tasks[tp].add(routes[tp], beginning.offset)
                if beginning.anew:
                    tasks[tp].leader_epochs.pop(tp, None)
                if not beginning.settled:
                    tasks[tp].advance(tp, beginning.offset)
        for tp in routes.keys() - found.keys():
            tasks[tp].remove([tp])
        if found:
            epochs = {tp: epoch for tp in found if (epoch := tasks[tp].leader_epochs.get(tp)) is not None}
            self._ports.reader.seek({tp: beginning.offset for tp, beginning in found.items()}, epochs)

    def _give_up(self, numbers: frozenset[int], routes: Mapping[TopicPartition, Route]) -> None:
        for number in numbers:
            task = self.share.tasks[number]
            gone = [tp for tp in task.routes if tp not in routes]
            self._ports.reader.drop(gone)
            task.remove(gone)

    async def _begin_indexes(
        self, routes: Mapping[TopicPartition, Route], found: Mapping[TopicPartition, Beginning]
    ) -> None:
        """Have the offset index begin where the first copy comes to lie, before there is one."""
        begun = {tp: b.offset for tp, b in found.items() if b.anew or self._task(tp).begins_index(routes[tp])}
        ends = await self._ports.target_admin.high_watermarks(routes[tp].target for tp in begun)
        by_task: dict[Task, dict[TopicPartition, tuple[int, int]]] = {}
        for tp, offset in begun.items():
            by_task.setdefault(self._task(tp), {})[tp] = (offset, ends[routes[tp].target])
        await asyncio.gather(*(task.begin_indexes(starts) for task, starts in by_task.items()))

    def cut_off(self, tp: TopicPartition) -> None:
        """Have the partition's task made anew: it finds out where to go on, and what of its index still counts."""
        if (task := self.share.tasks.get(self._number(tp))) is not None:
            self.share.task_failed(task, SourceCutOff(flow=task.flow, task=task.number, **tp._asdict()))

    async def out_of_range(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on from the first record that a source still has, or hold the partition, after saying what is gone."""
        topics = await self._ports.source_admin.describe({tp.topic for tp in positions})
        for tp, position in positions.items():
            task = self.share.tasks.get(self._number(tp))
            if task is None or tp.topic not in topics or not await _written_up_to(task, tp, position):
                continue
            topic_id = topics[tp.topic].topic_id
            loss = await self.beginnings.out_of_range(tp, task, topic_id)
            if loss is None:
                self._ports.reader.seek({tp: position})
            elif loss.kind != "expired":
                await self.share.finish([task])  # of a log that is gone, but copied
                await self.look()
                self.cut_off(tp)
            elif not self.beginnings.report(tp, loss):
                self._ports.reader.drop([tp])
                task.remove([tp])
            else:
                async with task.turn:
                    task.advance(tp, loss.resume)
                self._ports.reader.seek({tp: loss.resume})

    def _number(self, tp: TopicPartition) -> int:
        return task_of(*tp, self._config.tasks)

    def _task(self, tp: TopicPartition) -> Task:
        return self.share.tasks[self._number(tp)]


async def _written_up_to(task: Task, tp: TopicPartition, position: int) -> bool:
    """Wait until what was read before is on its way to the target; tell whether the task still has the partition."""
    while task.error is None and tp in task.routes and task.expected[tp] < position:
        await asyncio.sleep(0.02)
    return task.error is None and tp in task.routes
