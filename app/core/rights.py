"""Which access rights to a source's topics its copies get: those to read, and every prohibition.

As MM2 4.3.1 (WRITE dropped, ALL becomes READ, DENY kept), and further: prefixed rights are carried, rights to create,
change or delete are not (a copy is changed by the replicator only), and what we added is removed when the source
removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.core.formats import to_json
from app.core.naming import Naming

#: What ALLOW may be carried for, and as what.
_CARRIED = {"ALL": "READ", "READ": "READ", "DESCRIBE": "DESCRIBE", "DESCRIBE_CONFIGS": "DESCRIBE_CONFIGS"}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """An access rule on topics, in Kafka's words; `pattern` is LITERAL (`*` stands for all topics) or PREFIXED."""

    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    def key(self, flow: str) -> bytes:
        """Return the key under which a flow remembers that it added the rule."""
        parts = [self.name, self.pattern, self.principal, self.host, self.operation, self.permission]
        return to_json([flow, *parts])

    @property
    def prefix(self) -> str | None:
        """What the names begin with that it is about; None when it is about one name."""
        if self.pattern == "PREFIXED":
            return self.name
        return "" if self.name == "*" else None


def remembered(flow: str, keys: Iterable[Any]) -> frozenset[Acl]:
    """Return the rules that a flow added, from decoded keys; keys of other flows are passed over."""
    acls = []
    for key in keys:
        match key:
            case [owner, str(), str(), str(), str(), str(), str()] if owner == flow:
                name, pattern, principal, host, operation, permission = key[1:]
                acl = Acl(
                    name=name,
                    pattern=pattern,
                    principal=principal,
                    host=host,
                    operation=operation,
                    permission=permission,
                )
                acls.append(acl)
    return frozenset(acls)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAcls:
    """Add rules on the target."""

    acls: tuple[Acl, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAcls:
    """Remove rules that we added; the source has them no longer."""

    acls: tuple[Acl, ...]


def carried(acls: Iterable[Acl], selected: Mapping[str, str], naming: Naming) -> frozenset[Acl]:
    """Return the rules for the copies; `selected` maps the topics that are carried to their names on the target.

    A rule about a beginning stays one where names on the target begin with the source's alias. Elsewhere it would also
    speak of topics that are the target's own, so there it becomes one rule for each copy.
    """
    wanted: set[Acl] = set()
    for acl in acls:
        operation = acl.operation if acl.permission == "DENY" else _CARRIED.get(acl.operation)
        if operation is not None:
            wanted.update(_renamed(replace(acl, operation=operation), selected, naming))
    return frozenset(wanted)


def _renamed(acl: Acl, selected: Mapping[str, str], naming: Naming) -> Iterable[Acl]:
    prefix = acl.prefix
    if prefix is None:
        return [replace(acl, name=selected[acl.name])] if acl.name in selected else []
    topics = [topic for topic in selected if topic.startswith(prefix)]
    if topics and naming.style == "default" and naming.renames is None:
        return [replace(acl, name=naming.remote_topic(prefix), pattern="PREFIXED")]
    return [replace(acl, name=selected[topic], pattern="LITERAL") for topic in topics]


def plan_acls(
    wanted: frozenset[Acl], present: frozenset[Acl], ours: frozenset[Acl]
) -> tuple[list[AddAcls | RemoveAcls], frozenset[Acl]]:
    """Return the steps, and those of `ours` (what we added once) that can be forgotten: they are gone or go now.

    What somebody else added is neither claimed nor removed.
    """
    steps: list[AddAcls | RemoveAcls] = []
    if missing := wanted - present:
        steps.append(AddAcls(acls=tuple(sorted(missing))))
    if stale := (ours - wanted) & present:
        steps.append(RemoveAcls(acls=tuple(sorted(stale))))
    return steps, ours - wanted


def as_json(acl: Acl) -> dict[str, str]:
    """Return the rule for people and tools."""
    return asdict(acl)
