"""What a flow has to be allowed on its two clusters, and no more, as Kafka's authorizer takes it.

Which right each request needs: Kafka's documentation, "Authorization and ACLs", protocol table. READ and WRITE imply
DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS, so the implied ones are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.core.naming import HEARTBEATS, Naming
from app.core.runs import RUNS_TOPIC
from app.core.selection import OWN_PREFIX, beginning, is_name

#: Kafka's word for what a name of a rule stands for.
PatternType = Literal["LITERAL", "PREFIXED"]

Resource = Literal["topic", "group", "transactional-id", "cluster"]

#: The one name of the resource `cluster`.
CLUSTER = "kafka-cluster"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """Operations on what bears a name (`LITERAL`; `*` stands for every name) or begins with it (`PREFIXED`)."""

    cluster: str
    resource: Resource
    pattern: PatternType
    name: str
    operations: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a flow does, as far as rights depend on it; `topics` and `groups` are its include lists."""

    naming: Naming
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    exactly_once: bool = False
    topic_configs: bool = True
    acls: bool = False
    group_offsets: bool = False
    deletions: bool = False


def needed_rights(wants: Wants) -> list[Right]:
    """Return what the flow needs: first on its source, then on its target; each resource once."""
    return [*_on_source(wants), *_on_target(wants)]


def _on_source(wants: Wants) -> Iterable[Right]:
    source, why = wants.naming.source, "what is copied, and its settings"
    for pattern, name in _patterns([*wants.topics, HEARTBEATS]):
        operations = ("READ", "DESCRIBE_CONFIGS")
        yield Right(cluster=source, resource="topic", pattern=pattern, name=name, operations=operations, why=why)
    if not any(is_covered(RUNS_TOPIC, pattern, name) for pattern, name in _patterns(wants.topics)):
        why = "where groups stand that came from the target"
        yield Right(cluster=source, resource="topic", pattern="LITERAL", name=RUNS_TOPIC, operations=("READ",), why=why)
    for pattern, name in _patterns(wants.groups):
        why = "offsets that are translated"
        yield Right(cluster=source, resource="group", pattern=pattern, name=name, operations=("DESCRIBE",), why=why)
    why = "the flow's progress, for lag tools"
    yield Right(cluster=source, resource="group", pattern="PREFIXED", name=OWN_PREFIX, operations=("READ",), why=why)
    if wants.acls:
        yield _cluster(source, ("DESCRIBE",), "rights that are carried")


def is_covered(name: str, pattern: str, granted: str) -> bool:
    """Tell whether a name is one that a pattern of Kafka's stands for."""
    return name.startswith(granted) if pattern == "PREFIXED" else granted in ("*", name)


def _on_target(wants: Wants) -> Iterable[Right]:
    target, naming = wants.naming.target, wants.naming
    every = ("READ", "WRITE", "CREATE", "ALTER", "DESCRIBE_CONFIGS")
    copies: tuple[str, ...] = (
        "READ",
        "WRITE",
        "CREATE",
        "ALTER",
        "ALTER_CONFIGS" if wants.topic_configs else "DESCRIBE_CONFIGS",
    )
    copies += ("DELETE",) if wants.deletions else ()
    own: dict[tuple[PatternType, str], str] = {
        ("PREFIXED", OWN_PREFIX): "positions, tasks, controls, dead letters",
        ("LITERAL", HEARTBEATS): "heartbeats",
        ("LITERAL", naming.syncs_topic): "offset syncs",
        ("LITERAL", naming.checkpoints_topic): "checkpoints",
    }
    for (pattern, name), why in own.items():
        yield Right(cluster=target, resource="topic", pattern=pattern, name=name, operations=every, why=why)
    for pattern, name in _copies(wants):
        yield Right(cluster=target, resource="topic", pattern=pattern, name=name, operations=copies, why="copies")
    why = "workers that share the flow, and their leader"
    yield Right(cluster=target, resource="group", pattern="PREFIXED", name=OWN_PREFIX, operations=("READ",), why=why)
    for pattern, name in _patterns(wants.groups) if wants.group_offsets else ():
        why = "offsets that are written back"
        yield Right(cluster=target, resource="group", pattern=pattern, name=name, operations=("READ",), why=why)
    if wants.exactly_once:
        yield Right(
            cluster=target,
            resource="transactional-id",
            pattern="PREFIXED",
            name=OWN_PREFIX,
            operations=("WRITE",),
            why="exactly-once",
        )
    if wants.acls:
        yield _cluster(target, ("DESCRIBE", "ALTER"), "rights that are carried")


def _cluster(alias: str, operations: tuple[str, ...], why: str) -> Right:
    return Right(cluster=alias, resource="cluster", pattern="LITERAL", name=CLUSTER, operations=operations, why=why)


def _copies(wants: Wants) -> list[tuple[PatternType, str]]:
    """Return the names that copies can have; heartbeats get the source in front whatever the naming."""
    naming = wants.naming
    prefix = naming.remote_topic("")
    if naming.style == "default" and naming.renames is None:
        return [("PREFIXED", prefix)] if prefix else []
    found = [naming.remote_topic(HEARTBEATS)]
    for entry in wants.topics:
        if is_name(entry):
            found.append(naming.remote_topic(entry))
        elif naming.style == "identity" and naming.renames is None:
            found.append(entry)
        else:
            found.append("*")
    return _patterns(found)


def _patterns(entries: Iterable[str]) -> list[tuple[PatternType, str]]:
    """Return Kafka's patterns that hold everything which entries of an include list match, widest first.

    An authorizer knows names and beginnings of names: what an entry has behind its first `*`, and a regular expression,
    it cannot be told.
    """
    found: list[tuple[PatternType, str]] = []
    for entry in dict.fromkeys(entries):
        start = beginning(entry)
        if not start:
            return [("LITERAL", "*")]
        found.append(("LITERAL", entry) if is_name(entry) else ("PREFIXED", start))
    prefixes = [name for pattern, name in found if pattern == "PREFIXED"]
    return [
        (pattern, name)
        for pattern, name in dict.fromkeys(found)
        if not any(name.startswith(prefix) and (pattern, name) != ("PREFIXED", prefix) for prefix in prefixes)
    ]
