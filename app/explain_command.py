"""`faust -A app explain GROUP`: why each partition of a consumer group is, or is not, translated and written back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
import faust
from faust.cli import AppCommand, argument, option

from app.commands import chosen, configured
from app.config import FlowConfig, Settings
from app.core.selection import Selector, never_translated
from app.errors import ReplicatorError
from app.failover_commands import Desk, Row
from app.runtime.translator import Translated

UNUSED = ("EMPTY", "DEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What is true of a group in a flow, whatever its partitions; states are Kafka's, ABSENT where there is none."""

    left_out: str | None
    state_on_source: str
    state_on_target: str
    write_back: bool


def why_left_out(group: str, config: FlowConfig) -> str | None:
    """Say why a flow leaves a group alone; None when it translates it."""
    selector = Selector(include=config.groups.include, exclude=config.groups.exclude)
    return never_translated(group) or selector.why_not(group)


def write_back_answer(facts: GroupFacts, row: Row) -> str:
    """Say what becomes of the group's offset on the target."""
    if facts.left_out is not None:
        return f"no: {facts.left_out}"
    if not isinstance(row.answer, Translated):
        return "no: not translated"
    if not row.moves:
        return f"not needed: {row.there} is committed there, which is not behind"
    if not facts.write_back:
        return "no: sync.group_offsets is off in the flow; failover --apply writes it"
    if facts.state_on_target not in (*UNUSED, "ABSENT"):
        return f"waits: the group is {facts.state_on_target} on the target, and only a group without members is moved"
    return "due in the next round of checkpoints"


def translation_answer(facts: GroupFacts, row: Row) -> str:
    """Say whether the partition is translated, how well, and why."""
    if facts.left_out is not None:
        return f"no: {facts.left_out}"
    answer = row.answer
    if not isinstance(answer, Translated):
        return f"no: {answer.why}"
    if answer.exact:
        return "exact"
    return (
        f"at most {answer.repeats} records come again: the copies do not reach the group's offset, or only a sync does"
    )


def register(app: faust.App, settings: Settings | None) -> None:
    """Add the command to the application."""
    group = argument("group")
    flow = option("--flow", "flow", default=None, help="Only this flow, such as us-east__eu-west.")
    as_json = option("--json", "as_json", is_flag=True, help="Print one JSON document.")

    @app.command(group, flow, as_json)
    async def explain(self: AppCommand, group: str, flow: str | None, as_json: bool) -> None:
        """Say why each partition of a consumer group is, or is not, translated and written to the target.

        Nothing is changed, and no worker has to run. The exit code is 1 when a cluster could not be asked.
        """
        found = configured(app, settings)
        documents = [await _document(one, found, group) for one in chosen(found, flow)]
        if as_json or self.json:
            click.echo(json.dumps({"group": group, "flows": documents}, indent=2))
        else:
            for document in documents:
                _show(group, document)
        if any(document["error"] for document in documents):
            raise SystemExit(1)


async def _document(config: FlowConfig, settings: Settings, group: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "flow": config.name,
        "left_out": why_left_out(group, config),
        "state_on_source": None,
        "state_on_target": None,
        "basis": None,
        "partitions": [],
        "error": None,
    }
    try:
        async with Desk(config, settings).open() as desk:
            facts = await _facts(desk, group, document["left_out"])
            rows = await desk.rows(group)
            document["basis"] = "offsets" if desk.source_is_there else "checkpoints"
    except ReplicatorError as error:
        return document | {"error": str(error)}
    states = {"state_on_source": facts.state_on_source, "state_on_target": facts.state_on_target}
    return document | states | {"partitions": [_partition(facts, row) for row in rows]}


async def _facts(desk: Desk, group: str, left_out: str | None) -> GroupFacts:
    there = await desk.target_groups.states()
    here = (await desk.source_groups.states()).get(group, "ABSENT") if desk.source_is_there else "UNKNOWN"
    return GroupFacts(
        left_out=left_out,
        state_on_source=here,
        state_on_target=there.get(group, "ABSENT"),
        write_back=desk.config.sync.group_offsets,
    )


def _partition(facts: GroupFacts, row: Row) -> dict[str, Any]:
    answers = {"translated": translation_answer(facts, row), "written_back": write_back_answer(facts, row)}
    return row.as_json() | answers


def _show(group: str, document: Mapping[str, Any]) -> None:
    states = f"{document['state_on_source']} on the source, {document['state_on_target']} on the target"
    click.echo(f"{document['flow']}: group {group}" + ("" if document["error"] else f": {states}"))
    if document["left_out"]:
        click.echo(f"  the flow leaves the group alone: {document['left_out']}")
    if document["basis"] == "checkpoints":
        click.echo("  the source does not answer: these are its last checkpoints, the group may have read on since")
    if not document["partitions"] and not document["error"]:
        click.echo("  it has committed nothing on the source, so there is nothing to translate")
    for row in document["partitions"]:
        click.echo(f"  {row['topic']}-{row['partition']} at {row['source_offset']}")
        click.echo(f"    translated: {row['translated']}")
        click.echo(f"    written to the target: {row['written_back']}")
    if document["error"]:
        click.echo(f"  {document['error']}", err=True)
