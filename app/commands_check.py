"""`faust -A app check`: what would keep flows from running, each with what to do about it. Changes nothing."""

from __future__ import annotations

import json
import operator
import platform
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Literal

import click

from app.config import FlowConfig, Settings
from app.core.records import TopicPartition
from app.core.runs import RUNS_TOPIC
from app.core.tasks import tasks_topic
from app.errors import ReplicatorError
from app.kafka.admin import Admin, TopicWish
from app.kafka.operations import newest_timestamps, topic_operations
from app.runtime.catalog import survey
from app.runtime.rules import flow_rules
from app.runtime.supervisor import same_clusters
from app.runtime.task import POSITIONS_TOPIC
from app.version import VERSION
from tables.controls import controls_topic

Level = Literal["ok", "warning", "error"]

#: Names in one finding; the others are counted.
NAMED = 5

#: Partitions whose newest record is looked at, and seconds by which clocks may differ.
LOOKED_AT, CLOCK_SLACK = 200, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at; `fix` says what to do when it is not well."""

    level: Level
    about: str
    what: str
    fix: str = ""


async def run_check(settings: Settings, *, as_json: bool) -> None:
    """Print the findings; exit with 1 when one is an error."""
    findings = [finding async for finding in findings_of(settings)]
    if as_json:
        click.echo(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.level:<8}{finding.about}: {finding.what}")
            if finding.fix:
                click.echo(f"        {finding.fix}")
    if any(finding.level == "error" for finding in findings):
        raise SystemExit(1)


async def findings_of(settings: Settings) -> AsyncIterator[Finding]:
    """Yield what is found, in the order in which it has to be mended."""
    yield _versions()
    for about in settings.runtime.without_effect():
        yield Finding(level="warning", about="configuration", what=f"runtime.{about}", fix="remove the setting")
    used = sorted({alias for flow in settings.flows for alias in (flow.source, flow.target)})
    admins = {alias: Admin(alias, settings.clusters[alias], settings.runtime) for alias in used}
    ids: dict[str, str | None] = dict.fromkeys(used)
    try:
        for alias in used:
            try:
                ids[alias] = await admins[alias].cluster_id(settings.runtime.client_connect_timeout)
                yield Finding(level="ok", about=f"cluster {alias}", what=f"answers, id {ids[alias]}")
                yield _requests(alias, await admins[alias].too_old())
            except ReplicatorError as error:
                bootstrap = settings.clusters[alias].bootstrap
                fix = f"see whether {bootstrap} is reachable from here, and whether protocol and login are right"
                yield Finding(level="error", about=f"cluster {alias}", what=str(error), fix=fix)
        if same := same_clusters(ids):
            yield Finding(level="error", about="clusters", what=str(same), fix="give each cluster one alias")
        for flow in settings.flows:
            if ids[flow.source] and ids[flow.target]:
                async for finding in _flow(flow, settings, admins[flow.source], admins[flow.target]):
                    yield finding
    finally:
        for admin in admins.values():
            admin.close()


def _requests(alias: str, too_old: list[str]) -> Finding:
    if not too_old:
        return Finding(level="ok", about=f"cluster {alias}", what="its Kafka has all requests that are used")
    fix = "upgrade the brokers, or do without"
    return Finding(level="warning", about=f"cluster {alias}", what="; ".join(too_old), fix=fix)


def _versions() -> Finding:
    clients = ", ".join(f"{name} {version(name)}" for name in ("faust-streaming", "aiokafka", "confluent-kafka"))
    return Finding(
        level="ok", about="versions", what=f"krabka-replicator {VERSION}, Python {platform.python_version()}, {clients}"
    )


async def _flow(flow: FlowConfig, settings: Settings, source: Admin, target: Admin) -> AsyncIterator[Finding]:
    about, timeout, rules = f"flow {flow.name}", settings.runtime.client_request_timeout, flow_rules(flow, settings)
    try:
        catalog = survey(await source.topics(), rules)
        carried = {route.source.topic: route.target.topic for route in catalog.routes(rules).values()}
        yield _selection(about, flow, len(carried))
        for topic, reason in sorted(catalog.refused.items()):
            yield Finding(
                level="error", about=about, what=f"topic {topic} is held: {reason}", fix="see docs/operations.md"
            )
        on_source = await topic_operations(source, carried, timeout)
        yield _rights(about, f"read on {flow.source}", {"READ", "DESCRIBE"}, on_source, carried)
        yield await _clocks(about, flow, source, catalog.routes(rules), timeout)
        on_target = await topic_operations(target, carried.values(), timeout)
        yield _rights(about, f"write on {flow.target}", {"WRITE", "DESCRIBE"}, on_target, on_target)
        own = [POSITIONS_TOPIC, RUNS_TOPIC, tasks_topic(flow.name), controls_topic(flow.target)]
        found = await topic_operations(target, own, timeout)
        yield _rights(about, f"read and write its own topics on {flow.target}", {"READ", "WRITE"}, found, found)
        missing = [topic for topic in (*own, *carried.values()) if topic not in found and topic not in on_target]
        for finding in _creation(about, flow, missing, await _refused(target, missing, settings)):
            yield finding
    except ReplicatorError as error:
        yield Finding(level="error", about=about, what=str(error), fix="mend the cluster's answer and check again")


def _selection(about: str, flow: FlowConfig, count: int) -> Finding:
    if count:
        return Finding(level="ok", about=about, what=f"carries {count} topics")
    fix = f"see `faust -A app plan`, topics.include, and the right to DESCRIBE topics on {flow.source}"
    return Finding(level="warning", about=about, what="carries no topic", fix=fix)


def _rights(
    about: str, what: str, needed: set[str], found: dict[str, frozenset[str]], wanted: Iterable[str]
) -> Finding:
    lacking = [topic for topic in wanted if not needed <= found.get(topic, frozenset())]
    if not lacking:
        return Finding(level="ok", about=about, what=f"may {what}")
    fix = f"grant {', '.join(sorted(needed))} to the user that the cluster's security section names"
    return Finding(level="error", about=about, what=f"may not {what}: {_named(lacking)}", fix=fix)


async def _clocks(
    about: str, flow: FlowConfig, source: Admin, partitions: Iterable[TopicPartition], timeout: float
) -> Finding:
    """Compare clocks as far as records tell: none can be younger than now. Brokers tell no time to who only asks."""
    some = sorted(partitions)[:LOOKED_AT]
    newest = await newest_timestamps(source, some, timeout)
    ahead = {tp: at / 1000 - time.time() for tp, at in newest.items() if at / 1000 > time.time() + CLOCK_SLACK}
    if not ahead:
        return Finding(level="ok", about=about, what=f"no record of {flow.source} is from the future")
    tp, seconds = max(ahead.items(), key=operator.itemgetter(1))
    what = f"a record of {tp.topic}-{tp.partition} on {flow.source} is {seconds:.0f} s ahead of this machine's clock"
    fix = "set this machine's clock, or the producers': lag in seconds, retention and a `start` at a time go by them"
    return Finding(level="warning", about=about, what=what, fix=fix)


async def _refused(target: Admin, topics: Iterable[str], settings: Settings) -> dict[str, str]:
    """Return why the target would not create these topics; it is asked, and creates none."""
    factor = settings.runtime.data_topic_replication_factor
    wishes = [TopicWish(name=topic, partitions=1, replication_factor=factor, config={}) for topic in topics]
    return await target.create_topics(wishes, validate_only=True)


def _creation(about: str, flow: FlowConfig, missing: list[str], refused: dict[str, str]) -> Iterator[Finding]:
    if creatable := [topic for topic in missing if topic not in refused]:
        yield Finding(level="ok", about=about, what=f"may create what is missing on {flow.target}: {_named(creatable)}")
    by_reason: dict[str, list[str]] = {}
    for topic, reason in refused.items():
        by_reason.setdefault(reason, []).append(topic)
    for reason, topics in by_reason.items():
        what = f"{_named(topics)} not on {flow.target}, which would not create it: {reason}"
        fix = "see `faust -A app rights` and runtime.data_topic_replication_factor, or create it by hand"
        yield Finding(level="error", about=about, what=what, fix=fix)


def _named(topics: list[str]) -> str:
    more = f" and {len(topics) - NAMED} more" if len(topics) > NAMED else ""
    return ", ".join(topics[:NAMED]) + more
