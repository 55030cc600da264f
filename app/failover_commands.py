"""`faust -A app translate GROUP` and `failover GROUP`: where a consumer group goes on, worked out from the clusters.

Both read the clusters by themselves, so that no worker has to run. When the source is gone, the last checkpoints on the
target stand for what its groups committed there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import click
import faust
from faust.cli import AppCommand, argument, option

from app.config import FlowConfig, Settings
from app.core.records import TopicPartition
from app.core.tasks import POSITION_SLOTS
from app.errors import ReplicatorError
from app.jobs import end_all
from app.kafka.admin import Admin
from app.kafka.group_api import Committed
from app.kafka.groups import Groups
from app.kafka.positions import read_to_end
from app.runtime.knowledge import Knowledge, knowledge
from app.runtime.ports import positions_of
from app.runtime.task import POSITIONS_TOPIC
from app.runtime.translator import Translated, Untranslated, clamped

#: Seconds for reading the offset index to its end.
PATIENCE = 60.0

#: Seconds that a source has to show a sign of life.
SOURCE_PATIENCE = 5.0

Offsets = Mapping[TopicPartition, Committed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition of a group: where it is on the source, and what that means on the target."""

    source: TopicPartition
    at: Committed
    answer: Translated | Untranslated
    there: int | None
    end: int | None

    @property
    def moves(self) -> bool:
        """Whether the group's offset on the target lies behind the translated one, or is missing."""
        return isinstance(self.answer, Translated) and (self.there is None or self.there < self.answer.offset)

    def as_json(self) -> dict[str, Any]:
        """Return the row for tools: a stable document."""
        answer = self.answer
        row: dict[str, Any] = {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "source_offset": self.at.offset,
            "target_topic": answer.target.topic if answer.target else None,
            "target_offset": None,
            "committed_on_target": self.there,
            "lag_on_target": None,
            "exact": False,
            "repeats_at_most": None,
            "why": None,
        }
        if isinstance(answer, Untranslated):
            return row | {"why": answer.why}
        lag = None if self.end is None else self.end - answer.offset
        found = {"target_offset": answer.offset, "lag_on_target": lag}
        return row | found | {"exact": answer.exact, "repeats_at_most": answer.repeats}

    def __str__(self) -> str:
        at = f"{self.source.topic}-{self.source.partition} at {self.at.offset}"
        if isinstance(self.answer, Untranslated):
            return f"  {at}: not translated: {self.answer.why}"
        answer = self.answer
        sure = "exact" if answer.exact else f"at most {answer.repeats} records again"
        lag = "" if self.end is None else f", lag there {self.end - answer.offset}"
        now = "" if self.there is None else f", committed there {self.there}"
        return f"  {at} -> {answer.target.topic}-{answer.target.partition} at {answer.offset} ({sure}{lag}{now})"


class Desk:
    """One flow's clusters and what is known of its copies, for the length of one command."""

    def __init__(self, config: FlowConfig, settings: Settings) -> None:
        self.config = config
        self._settings = settings
        source, target, runtime = config.source, config.target, settings.runtime
        self.source = Admin(source, settings.clusters[source], runtime)
        self.target = Admin(target, settings.clusters[target], runtime)
        self.source_groups = Groups(self.source, runtime)
        self.target_groups = Groups(self.target, runtime)
        self.source_is_there = True
        self._known: Knowledge = knowledge(config, settings, self.source, self.target)

    async def rows(self, group: str) -> list[Row]:
        """Translate everything the group committed on the source. Raises `ReplicatorError`."""
        there = (await self.target_groups.offsets([group])).get(group)
        if there is None:
            raise ReplicatorError(f"{self.config.target} does not tell what group {group} has committed")
        if not self.source_is_there:
            return await self._rows_of_checkpoints(group, there)
        here = (await self.source_groups.offsets([group])).get(group)
        if here is None:
            raise ReplicatorError(f"{self.config.source} does not tell what group {group} has committed")
        positions = await self._positions()
        answers = {tp: self._known.translator.translate(tp, at.offset, positions.get(tp)) for tp, at in here.items()}
        targets = [answer.target for answer in answers.values() if isinstance(answer, Translated)]
        ends = await self.target_groups.ends(targets)
        rows = []
        for tp in sorted(answers):
            answer = clamped(answers[tp], ends)
            place = answer.target
            now = there[place].offset if place in there else None
            rows.append(Row(source=tp, at=here[tp], answer=answer, there=now, end=ends.get(place) if place else None))
        return rows

    async def _rows_of_checkpoints(self, group: str, there: Offsets) -> list[Row]:
        found = dict(self._known.checkpoints.of_group(group))
        ends = await self.target_groups.ends(list(found))
        return [
            Row(
                source=place,
                at=Committed(offset=last.upstream, metadata=last.metadata),
                answer=clamped(Translated(target=place, offset=last.downstream), ends),
                there=there[place].offset if place in there else None,
                end=ends.get(place),
            )
            for place, last in sorted(found.items())
        ]

    async def _positions(self) -> dict[TopicPartition, int]:
        if POSITIONS_TOPIC not in await self.target.describe([POSITIONS_TOPIC]):
            return {}
        cluster, runtime = self._settings.clusters[self.config.target], self._settings.runtime
        slots = range(POSITION_SLOTS)
        records = await read_to_end(self.target, cluster, runtime, POSITIONS_TOPIC, slots, decided=False)
        return {tp: position.offset for tp, position in positions_of(self.config.name, records).items()}

    async def apply(self, group: str, rows: list[Row]) -> str | None:
        """Give the group on the target the translated offsets that lie ahead; return why not. Raises as `rows`."""
        state = (await self.target_groups.states()).get(group, "DEAD")
        if state not in ("EMPTY", "DEAD"):
            return f"group {group} is {state} on {self.config.target}: stop its members first"
        offsets = {
            row.answer.target: Committed(offset=row.answer.offset, metadata=row.at.metadata)
            for row in rows
            if isinstance(row.answer, Translated) and row.moves
        }
        return await self.target_groups.commit(group, offsets) if offsets else None

    async def _look_for_source(self) -> None:
        try:
            await self.source.cluster_id(SOURCE_PATIENCE)
        except ReplicatorError:
            self.source_is_there = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Desk]:
        """Read the offset index to its end. Raises `ReplicatorError`."""
        await self._look_for_source()
        reading = asyncio.create_task(self._known.keep())
        try:
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while not (self._known.complete if self.source_is_there else self._known.target_complete):
                if asyncio.get_running_loop().time() > deadline:
                    raise ReplicatorError(f"{self.config.name}: not read in {PATIENCE:g} s: {self._known.missing}")
                await asyncio.sleep(0.05)
            yield self
        finally:
            await end_all([reading])
            self.source.close()
            self.target.close()


def register(app: faust.App, settings: Settings | None) -> None:
    """Add the commands to the application."""
    group = argument("group")
    flow = option("--flow", "flow", default=None, help="Only this flow, such as us-east__eu-west.")
    as_json = option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    apply = option("--apply", "apply", is_flag=True, help="Write the offsets; without, they are only shown.")

    @app.command(group, flow, as_json)
    async def translate(self: AppCommand, group: str, flow: str | None, as_json: bool) -> None:
        """Show where a consumer group of a source goes on at each target, and how sure that is."""
        await _run(app, settings, group, flow, as_json=as_json or self.json, apply=False)

    @app.command(group, flow, as_json, apply)
    async def failover(self: AppCommand, group: str, flow: str | None, as_json: bool, apply: bool) -> None:
        """Show what a move of a consumer group to a target means, and with --apply set its offsets there.

        Only a group without members on the target is moved, and only forwards. Home again goes the flow that leads
        back: --flow eu-west__us-east.
        """
        await _run(app, settings, group, flow, as_json=as_json or self.json, apply=apply)


async def _run(
    app: faust.App, settings: Settings | None, group: str, flow: str | None, *, as_json: bool, apply: bool
) -> None:
    if settings is None:
        click.echo(str(getattr(app, "refusal", None) or "there is no configuration"), err=True)
        raise SystemExit(2)
    flows = [one for one in settings.flows if flow in (None, one.name)]
    if not flows:
        click.echo(f"there is no flow {flow}; there are {', '.join(one.name for one in settings.flows)}", err=True)
        raise SystemExit(2)
    documents = [await _document(one, settings, group, apply=apply) for one in flows]
    if as_json:
        shown = [{**found, "partitions": [row.as_json() for row in found["partitions"]]} for found in documents]
        click.echo(json.dumps({"group": group, "flows": shown}, indent=2))
    else:
        for found in documents:
            _show(group, found)
    if any(found["error"] for found in documents):
        raise SystemExit(1)


async def _document(config: FlowConfig, settings: Settings, group: str, *, apply: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"flow": config.name, "basis": "offsets", "partitions": [], "applied": False, "error": None}
    try:
        async with Desk(config, settings).open() as desk:
            found["basis"] = "offsets" if desk.source_is_there else "checkpoints"
            rows = found["partitions"] = await desk.rows(group)
            if apply and any(row.moves for row in rows):
                found["error"] = await desk.apply(group, rows)
                found["applied"] = found["error"] is None
    except ReplicatorError as error:
        found["error"] = str(error)
    return found


def _show(group: str, found: Mapping[str, Any]) -> None:
    click.echo(f"{found['flow']}: group {group}" + ("" if found["partitions"] else " has committed nothing"))
    if found["basis"] == "checkpoints":
        click.echo("  the source does not answer: these are its last checkpoints, the group may have read on since")
    for row in found["partitions"]:
        click.echo(str(row))
    if found["applied"]:
        click.echo("  written to the target")
    if found["error"]:
        click.echo(f"  {found['error']}", err=True)
