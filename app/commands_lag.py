"""`faust -A app lag` and `flows`: worked out from the clusters, whether or not a worker runs.

The position of a partition is what is stored on the target; its end is where the source is readable with
read_committed. Lag in seconds needs someone who watches: it is in a worker's `/status` and `/metrics`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from app.config import FlowConfig, Settings
from app.core.records import TopicPartition
from app.core.tasks import POSITION_SLOTS, workers_group
from app.errors import ReplicatorError
from app.kafka.admin import Admin
from app.kafka.positions import read_to_end
from app.runtime.catalog import survey
from app.runtime.ports import positions_of
from app.runtime.rules import flow_rules
from app.runtime.task import POSITIONS_TOPIC
from tables.controls import Control, stored_controls


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """One partition; `position` is None when nothing of it was copied yet, and `lag` counts all that is there then."""

    topic: str
    partition: int
    remote_topic: str
    position: int | None
    end_offset: int
    lag: int


class Survey:
    """One flow's clusters for the length of a command."""

    def __init__(self, config: FlowConfig, settings: Settings) -> None:
        self.config = config
        self._settings = settings
        self._source = Admin(config.source, settings.clusters[config.source], settings.runtime)
        self._target = Admin(config.target, settings.clusters[config.target], settings.runtime)

    def close(self) -> None:
        """Disconnect."""
        self._source.close()
        self._target.close()

    async def lags(self) -> list[Lag]:
        """Return every partition that the flow carries. Raises `ReplicatorError`."""
        await self._source.cluster_id(self._settings.runtime.client_connect_timeout)
        rules = flow_rules(self.config, self._settings)
        routes = survey(await self._source.topics(), rules).routes(rules)
        positions = await self._positions()
        ends = await self._source.stable_offsets(routes)
        starts = await self._source.log_starts(tp for tp in routes if tp not in positions)
        return [
            Lag(
                topic=tp.topic,
                partition=tp.partition,
                remote_topic=route.target.topic,
                position=positions.get(tp),
                end_offset=ends[tp],
                lag=max(0, ends[tp] - (positions[tp] if tp in positions else starts[tp])),
            )
            for tp, route in sorted(routes.items())
        ]

    async def _positions(self) -> dict[TopicPartition, int]:
        await self._target.cluster_id(self._settings.runtime.client_connect_timeout)
        if POSITIONS_TOPIC not in await self._target.describe([POSITIONS_TOPIC]):
            return {}
        cluster, runtime = self._settings.clusters[self.config.target], self._settings.runtime
        slots = range(POSITION_SLOTS)
        records = await read_to_end(self._target, cluster, runtime, POSITIONS_TOPIC, slots, decided=False)
        return {tp: position.offset for tp, position in positions_of(self.config.name, records).items()}

    async def workers(self) -> int:
        """Return how many workers share the flow now. Raises `ReplicatorError`."""
        return await self._target.groups.members(workers_group(self.config.name))


async def run_lag(settings: Settings, flows: Sequence[FlowConfig], *, as_json: bool) -> None:
    """Print every partition; exit with 1 when a cluster does not answer."""
    documents = []
    for config in flows:
        found = await _look(config, settings)
        documents.append({key: found[key] for key in ("flow", "lag", "partitions", "error")})
    if as_json:
        click.echo(json.dumps({"flows": documents}, indent=2))
    else:
        for document in documents:
            _show_lag(document)
    if any(document["error"] for document in documents):
        raise SystemExit(1)


async def run_flows(settings: Settings, *, as_json: bool) -> None:
    """Print a line for each flow; exit with 1 when a cluster does not answer."""
    documents = []
    for config in settings.flows:
        found = await _look(config, settings)
        rows = found.pop("partitions")
        found |= {"topics": len({row["topic"] for row in rows}), "partitions": len(rows)}
        documents.append(found)
    if as_json:
        click.echo(json.dumps({"flows": documents}, indent=2))
    else:
        header = ("FLOW", "STATE", "WORKERS", "TOPICS", "PARTITIONS", "LAG")
        lines = [
            ["-" if d[k] is None else str(d[k]) for k in ("flow", "state", "workers", "topics", "partitions", "lag")]
            for d in documents
        ]
        click.echo(table(header, lines))
    for document in documents:
        if document["error"]:
            click.echo(f"{document['flow']}: {document['error']}", err=True)
    if any(document["error"] for document in documents):
        raise SystemExit(1)


async def _look(config: FlowConfig, settings: Settings) -> dict[str, Any]:
    desk = Survey(config, settings)
    found: dict[str, Any] = {"flow": config.name, "delivery": config.delivery, "state": "unknown", "workers": None}
    found |= {"lag": None, "partitions": [], "error": None}
    try:
        rows = await desk.lags()
        control = (await stored_controls(config.target, settings)).get(config.name, Control())
        workers = await desk.workers()
        state = "paused" if control.paused else "running" if workers else "no worker"
        found |= {"state": state, "workers": workers, "lag": sum(row.lag for row in rows)}
        found["partitions"] = [asdict(row) for row in rows]
    except ReplicatorError as error:
        found["error"] = str(error)
    finally:
        desk.close()
    return found


def _show_lag(document: dict[str, Any]) -> None:
    if document["error"]:
        click.echo(f"{document['flow']}: {document['error']}", err=True)
        return
    click.echo(f"{document['flow']}: lag {document['lag']}")
    lines = [[str(v) if v is not None else "-" for v in row.values()] for row in document["partitions"]]
    click.echo(table(("TOPIC", "PARTITION", "REMOTE TOPIC", "POSITION", "END", "LAG"), lines))


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return the lines below the header, in columns."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in (header, *lines))
    return "\n".join(f"  {row}".rstrip() for row in rows)
