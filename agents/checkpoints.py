"""Group checkpoints: where each consumer group of a source would go on at the target, and its own offset there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any

import faust
from mode import Service

from app.config import FlowConfig, Settings
from app.core.formats import Checkpoint
from app.core.records import TopicPartition
from app.core.selection import Selector, never_translated
from app.errors import ReplicatorError
from app.jobs import end_all
from app.kafka.admin import Admin
from app.kafka.follow import Publisher
from app.kafka.group_api import Committed
from app.kafka.groups import Groups
from app.runtime.group_offsets import GroupOffsets
from app.runtime.knowledge import Knowledge, knowledge
from app.runtime.rules import flow_rules
from app.runtime.translator import Translated, clamped
from app.runtime.write_back import WriteBack

log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, Committed]

#: Seconds that checkpoints may be held up before /health says so: a restart of a broker takes less.
PATIENCE = 60.0


class CheckpointFlow(Service):  # type: ignore[misc]
    """Writes the checkpoints of one flow, a round at a time.

    The first round begins the reading of what translation needs; none is written before all of it was read, so that
    none moves backwards because the past is not known.
    """

    def __init__(self, config: FlowConfig, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self.config = config
        source, target, runtime = config.source, config.target, settings.runtime
        self._source = Admin(source, settings.clusters[source], runtime)
        self._target = Admin(target, settings.clusters[target], runtime)
        self._source_groups = Groups(self._source, runtime)
        self._target_groups = Groups(self._target, runtime)
        self._selector = Selector(include=config.groups.include, exclude=config.groups.exclude)
        self._publisher = Publisher(settings.clusters[target], runtime)
        self._topic = flow_rules(config, settings).naming.checkpoints_topic
        self._known: Knowledge = knowledge(config, settings, self._source, self._target)
        self._write_back = WriteBack(self._target_groups) if config.sync.group_offsets else None
        self._reading: asyncio.Task[None] | None = None
        self._said: frozenset[str] = frozenset()
        self.problems: frozenset[str] = frozenset()
        self.groups = GroupOffsets()
        self._held_up_since: float | None = None
        self._complete_at: float | None = None

    def age(self) -> float | None:
        """Return the seconds since the last complete round, or since the first one began; None before it."""
        return None if self._complete_at is None else time.monotonic() - self._complete_at

    def stuck(self) -> str | None:
        """Say why no round was complete for a minute; None when all is well or not yet worth an alarm."""
        if self._held_up_since is None or (waited := time.monotonic() - self._held_up_since) < PATIENCE:
            return None
        return f"{self.config.name}: checkpoints are held up for {waited:.0f} s: {'; '.join(sorted(self.problems))}"

    async def on_stop(self) -> None:
        """Disconnect."""
        if self._reading is not None:
            await end_all([self._reading])
        await self._publisher.close()
        self._source.close()
        self._target.close()

    async def round(self) -> None:
        """Bring checkpoints in step with the source's groups. A cluster that does not answer is left for the next."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._known.keep(), name=f"{self.config.name} offsets")
            self._complete_at = time.monotonic()
        held_up: list[str] = []
        unclear: list[str] = []
        try:
            if self._known.complete:
                held_up, unclear = await self._round()
            else:
                held_up = [f"{self._known.missing} not read yet"]
        except (ReplicatorError, OSError) as error:
            held_up = [str(error)]
        self._note(held_up, unclear)

    def _note(self, held_up: Iterable[str], unclear: Iterable[str]) -> None:
        """Remember, and log once, what holds up the flow's groups, and what is unclear about single partitions."""
        self.problems = frozenset(held_up) | frozenset(unclear)
        if not held_up:
            self._held_up_since, self._complete_at = None, time.monotonic()
        elif self._held_up_since is None:
            self._held_up_since = time.monotonic()
        for problem in self.problems - self._said:
            log.warning("%s: checkpoints: %s", self.config.name, problem)
        self._said = self.problems

    async def _round(self) -> tuple[list[str], list[str]]:
        """Return what was refused to groups, and which partitions have no place on the target."""
        answers, groups, looked_up = {}, await self._groups(), 0
        async for chunk in self._source_groups.offsets_in_turn(groups):
            looked_up += len(chunk)
            for group, offsets in chunk.items():
                if found := self._translate(offsets):
                    answers[group] = found
        ends = await self._target_groups.ends([*{a.target for found in answers.values() for _, a, _ in found}])
        unclear: set[str] = set()
        due: dict[str, Offsets] = {}
        news = []
        for number, (group, found) in enumerate(answers.items()):
            if number % 100 == 0:
                await asyncio.sleep(0)  # data is carried by the same loop
            due[group] = {}
            for _, answer, committed in found:
                kept = clamped(answer, ends)
                if not isinstance(kept, Translated):
                    unclear.add(kept.why)
                    continue
                due[group][kept.target] = Committed(offset=kept.offset, metadata=committed.metadata)
                checkpoint = _checkpoint(group, kept, committed)
                if self._known.checkpoints.is_news(checkpoint):
                    news.append(checkpoint)
        await self._publish(news)
        self.groups = GroupOffsets.of(answers, due)
        refused = await self._write_back.write(due) if self._write_back is not None else ()
        silent = len(groups) - looked_up
        held_up = [f"{silent} of {len(groups)} groups could not be looked up on {self.config.source}"] if silent else []
        return [*held_up, *sorted(refused)], sorted(unclear)

    async def _groups(self) -> list[str]:
        states = await self._source_groups.states()
        return [group for group in states if never_translated(group) is None and self._selector.matches(group)]

    def _translate(self, offsets: Offsets) -> list[tuple[TopicPartition, Translated, Committed]]:
        """Translate what the flow has copied; for what is not copied there is nothing to be said."""
        translator = self._known.translator
        answers = ((tp, translator.translate(tp, at.offset), at) for tp, at in offsets.items())
        return [(tp, answer, at) for tp, answer, at in answers if isinstance(answer, Translated)]

    async def _publish(self, news: Iterable[Checkpoint]) -> None:
        checkpoints = list(news)
        if checkpoints:
            await self._publisher.publish(self._topic, [(one.key(), one.value()) for one in checkpoints])
            self._known.checkpoints.keep(checkpoints)


def _checkpoint(group: str, answer: Translated, committed: Committed) -> Checkpoint:
    return Checkpoint(
        group=group,
        topic=answer.target.topic,
        partition=answer.target.partition,
        upstream=committed.offset,
        downstream=answer.offset,
        metadata=committed.metadata,
    )


def register(app: faust.App, target: str, settings: Settings) -> list[CheckpointFlow]:
    """Give the Faust app of a target a timer for the checkpoints of each flow: a dead source holds up no other."""
    flows = [CheckpointFlow(config, settings) for config in settings.flows_to(target)]
    for flow in flows:
        app.service(flow)
        _timer(app, flow, settings.runtime.checkpoint_interval)
    return flows


def _timer(app: faust.App, flow: CheckpointFlow, interval: float) -> None:
    @app.timer(interval=interval, on_leader=True, name=f"checkpoints of {flow.config.name}")
    async def checkpoint() -> None:
        """Write where the groups of the source would go on at the target."""
        await flow.round()
