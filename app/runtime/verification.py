"""One flow's two sides, read and compared partition by partition, whether or not workers run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from app.config import FlowConfig, Settings
from app.core.dead_letters import dead_letter_topic
from app.core.formats import Position
from app.core.offset_index import Exact, OffsetIndex
from app.core.provenance import origin_header, returns_home
from app.core.records import TopicPartition
from app.core.runs import RUNS_TOPIC
from app.core.selection import Selector
from app.core.tasks import POSITION_SLOTS
from app.core.verify import Comparison, Facts, Finding, Tally
from app.core.verify_records import Meeting, Side
from app.errors import ReplicatorError
from app.jobs import end_all
from app.kafka.admin import Admin
from app.kafka.follow import Follower
from app.kafka.positions import read_to_end
from app.kafka.stretch import StretchCut, StretchReader
from app.runtime.catalog import survey
from app.runtime.ports import positions_of
from app.runtime.rules import flow_rules
from app.runtime.task import POSITIONS_TOPIC, Route
from app.runtime.verify_facts import Stretch, Topic, flow_facts, set_aside, setting_values, unverifiable
from tables.offset_runs import OffsetRuns

#: Seconds for reading the offset index to its end.
PATIENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found of one partition; `error` says why it could not be verified."""

    source: TopicPartition
    target: TopicPartition
    tally: Tally = field(default_factory=Tally)
    findings: tuple[Finding, ...] = ()
    error: str | None = None


class Verification:
    """Both clusters of a flow for the length of one command.

    The offset index and the positions are read first, then each topic's ends on the target, then on the source. So what
    lies before a position has to be on the target, and nothing is on the target that the source does not show.
    """

    def __init__(self, config: FlowConfig, settings: Settings, *, last: int | None = None) -> None:
        self.config = config
        self.records = 0
        self._last = last
        self._settings = settings
        self._rules = flow_rules(config, settings)
        self._origin = origin_header(config.source)
        self._runs = OffsetRuns()
        self._positions: dict[TopicPartition, Position] = {}
        self._dead_letters: dict[TopicPartition, dict[int, int]] = {}
        self._progress: Callable[[int], None] = lambda _: None
        aliases: dict[Side, str] = {"source": config.source, "target": config.target}
        clusters, runtime = settings.clusters, settings.runtime
        self._admins = {side: Admin(alias, clusters[alias], runtime) for side, alias in aliases.items()}
        self._readers = {side: StretchReader(alias, clusters[alias], runtime) for side, alias in aliases.items()}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Verification]:
        """Connect, and read what the target keeps of the flow. Raises `ReplicatorError`."""
        try:
            for side in self._admins:
                await self._admins[side].cluster_id(self._settings.runtime.client_connect_timeout)
                await self._readers[side].start()
            await self._read_index()
            await self._read_positions()
            await self._read_dead_letters()
            yield self
        finally:
            for side in self._admins:
                await self._readers[side].stop()
                self._admins[side].close()

    async def routes(self, topics: Selector) -> dict[TopicPartition, Route]:
        """Return what the flow carries of these source topics. Raises `ReplicatorError`."""
        catalog = survey(await self._admins["source"].topics(), self._rules)
        return {tp: r for tp, r in catalog.routes(self._rules).items() if topics.why_not(tp.topic) is None}

    def replicated(self, tp: TopicPartition) -> bool:
        """Tell whether a position of the partition is stored."""
        return tp in self._positions

    async def _read_index(self) -> None:
        target = self.config.target
        cluster, runtime = self._settings.clusters[target], self._settings.runtime
        follower = Follower(self._admins["target"], cluster, runtime, RUNS_TOPIC, self._runs.learn)
        reading = asyncio.create_task(follower.run())
        try:
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while not follower.loaded:
                if asyncio.get_running_loop().time() > deadline:
                    raise ReplicatorError(f"{self.config.name}: not read in {PATIENCE:g} s: {follower.place}")
                await asyncio.sleep(0.05)
        finally:
            await end_all([reading])

    async def _read_positions(self) -> None:
        admin = self._admins["target"]
        if POSITIONS_TOPIC in await admin.describe([POSITIONS_TOPIC]):
            cluster, runtime = self._settings.clusters[self.config.target], self._settings.runtime
            slots = range(POSITION_SLOTS)
            records = await read_to_end(admin, cluster, runtime, POSITIONS_TOPIC, slots, decided=False)
            self._positions = positions_of(self.config.name, records)

    async def _read_dead_letters(self) -> None:
        tp = TopicPartition(dead_letter_topic(self.config.name), 0)
        if tp.topic not in await self._admins["target"].describe([tp.topic]):
            return
        stretch = (await self._ends("target", [tp]))[tp]
        reader = self._readers["target"]
        reader.open(tp, stretch.start, stretch.end)
        while records := await reader.read():
            for record in records:
                if aside := set_aside(record, self._origin):
                    source, offset, print_ = aside
                    self._dead_letters.setdefault(source, {})[offset] = print_

    async def check(
        self, routes: Mapping[TopicPartition, Route], progress: Callable[[int], None]
    ) -> AsyncIterator[Checked]:
        """Compare the partitions one after the other, telling `progress` how many records were read.

        Raises `ReplicatorError` when the clusters cannot be asked.
        """
        self._progress = progress
        by_topic: dict[str, list[Route]] = defaultdict(list)
        for _, route in sorted(routes.items()):
            by_topic[route.source.topic].append(route)
        for of_topic in by_topic.values():
            topic = await self._topic(of_topic[0])
            here, there = await self._look(of_topic, topic)
            for route in of_topic:
                yield await self._partition(route, topic, here[route.source], there[route.target])

    async def _topic(self, route: Route) -> Topic:
        names: dict[Side, str] = {"source": route.source.topic, "target": route.target.topic}
        infos = {side: (await self._admins[side].describe([name])).get(name) for side, name in names.items()}
        here = infos["source"]
        if here is None:
            raise ReplicatorError(f"topic {route.source.topic} was deleted from {self.config.source} meanwhile")
        found = {side: (await self._admins[side].topic_settings([name])).get(name) for side, name in names.items()}
        settings = {side: setting_values(found[side] or {}) for side in names}
        return Topic(here=here, there=infos["target"], settings=settings)

    async def _look(
        self, routes: Iterable[Route], topic: Topic
    ) -> tuple[dict[TopicPartition, Stretch], dict[TopicPartition, Stretch]]:
        routes = list(routes)
        partitions = topic.there.partitions if topic.there else 0
        present = [route.target for route in routes if route.target.partition < partitions]
        there = {route.target: Stretch() for route in routes} | await self._ends("target", present)
        return await self._ends("source", [route.source for route in routes]), there

    async def _ends(self, side: Side, partitions: list[TopicPartition]) -> dict[TopicPartition, Stretch]:
        admin = self._admins[side]
        ends, written = await admin.stable_offsets(partitions), await admin.high_watermarks(partitions)
        starts = await admin.log_starts(partitions)
        return {tp: Stretch(start=starts[tp], end=ends[tp], written=written[tp]) for tp in partitions}

    async def _partition(self, route: Route, topic: Topic, here: Stretch, there: Stretch) -> Checked:
        """Compare; once more when a log lost its beginning meanwhile, which looks like a difference."""
        for again in (True, False):
            try:
                checked = await self._compared(route, topic, here, there)
            except StretchCut as error:
                checked = Checked(source=route.source, target=route.target, error=str(error))
            if not again or not (checked.error or checked.findings):
                break
            before = here.start, there.start
            new_here, new_there = await self._look([route], topic)
            here, there = new_here[route.source], new_there[route.target]
            if before == (here.start, there.start):
                break
        return checked

    async def _compared(self, route: Route, topic: Topic, here: Stretch, there: Stretch) -> Checked:
        position = self._positions.get(route.source)
        index = self._runs.index(self.config.name, route.source)
        if error := unverifiable(position, topic, index, here, there):
            return Checked(source=route.source, target=route.target, error=error)
        facts = flow_facts(self.config, topic, index, position, here, there)
        if route.filter_origins:
            facts = replace(facts, drops=partial(returns_home, source=self.config.source, target=self.config.target))
        facts = replace(facts, dead_letters=self._dead_letters.get(route.source, {}))
        if self._last is not None and facts.acknowledged - self._last > here.start:
            start = facts.acknowledged - self._last
            here, there, facts = await self._tail(route, index, replace(here, start=start), there, facts)
        begins = await self._meet(route, here, there, facts)
        if facts.tail_from is not None:
            there, begins = replace(there, start=begins.get("target", there.start)), {}
        comparison = Comparison(replace(facts, begins=begins))
        self._open(route, here, there)
        while (side := comparison.advance()) is not None:
            records = await self._readers[side].read()
            self.records += len(records)
            self._progress(self.records)
            comparison.feed(side, records)
        findings = tuple(comparison.findings)
        return Checked(source=route.source, target=route.target, tally=comparison.tally, findings=findings)

    def _open(self, route: Route, here: Stretch, there: Stretch) -> None:
        self._readers["source"].open(route.source, here.start, here.end)
        self._readers["target"].open(route.target, there.start, there.end)

    async def _tail(
        self, route: Route, index: OffsetIndex | None, here: Stretch, there: Stretch, facts: Facts
    ) -> tuple[Stretch, Stretch, Facts]:
        """Narrow a comparison to what begins at `here.start`."""
        self._open(route, here, there)
        first = await self._readers["source"].read()
        timestamp = first[0].timestamp if first else 0
        match index.translate(here.start) if index else None:
            case Exact(offset):
                start = max(there.start, offset)
            case _:
                # The copy has the record's timestamp: it lies where the first such timestamp does, or behind.
                found = await self._admins["target"].offsets_at([route.target] if there.end else [], timestamp)
                start = max(there.start, found.get(route.target, there.start))
        known = there.start if start == there.start else 0
        facts = replace(facts, tail_from=timestamp, source_start=here.start, target_start=known)
        return here, replace(there, start=start), facts

    async def _meet(self, route: Route, here: Stretch, there: Stretch, facts: Facts) -> Mapping[Side, int]:
        meeting = Meeting(self._origin, timestamps=facts.timestamps)
        self._open(route, here, there)
        sides = list(self._readers)
        while sides and not meeting.found:
            for side in list(sides):
                if records := await self._readers[side].read():
                    meeting.feed(side, records)
                elif meeting.begun(side):
                    sides.remove(side)
                else:
                    return {}
        return meeting.begins
