"""Rules between the parts of a document. They look at its raw form, so that they also speak when a model refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from app.config.base import nearest
from app.config.complaints import unknown_key
from app.config.models import FlowConfig
from app.core.naming import ambiguous
from app.core.network import circle
from app.errors import Problem


def cross_checks(document: dict[str, Any], only_targets: tuple[str, ...], variable: str) -> list[Problem]:
    """Return what is wrong between flows, clusters and the targets that the environment `variable` names."""
    clusters = document.get("clusters")
    aliases = tuple(clusters) if isinstance(clusters, dict) else ()
    flows = document.get("flows")
    if flows == []:
        return [Problem("flows", "nothing is replicated; add a flow: {from: ..., to: ...}")]
    indexed = [(i, flow) for i, flow in enumerate(flows if isinstance(flows, list) else ()) if isinstance(flow, dict)]
    problems = [problem for index, flow in indexed for problem in _flow(index, flow, aliases)]
    problems += _repeated(indexed)
    problems += _separators(indexed, aliases)
    problems += _circles(indexed)
    problems += _policies(document.get("policies"), clusters)
    targets = {flow["to"] for _, flow in indexed if isinstance(flow.get("to"), str)}
    for alias in only_targets if targets else ():
        if alias not in targets:
            problems.append(Problem(variable, f"no flow goes to {alias!r}, {nearest(alias, targets)}"))
    return problems


def _flow(index: int, flow: dict[str, Any], aliases: tuple[str, ...]) -> Iterator[Problem]:
    for key in ("source", "target"):
        if key in flow:
            yield Problem(f"flows[{index}]", unknown_key(key, FlowConfig))
    for key in ("from", "to"):
        alias = flow.get(key)
        if aliases and isinstance(alias, str) and alias not in aliases:
            yield Problem(f"flows[{index}].{key}", f"unknown cluster {alias!r}, {nearest(alias, aliases)}")


def _policies(policies: Any, clusters: Any) -> Iterator[Problem]:
    """Yield what would let a policy keep back nothing; a zone in which no cluster is, is a typing error."""
    known = {zone for cluster in _mappings(clusters) for zone in _texts(cluster.get("zones"))}
    first: dict[str, int] = {}
    for index, policy in enumerate(policies if isinstance(policies, list) else ()):
        if not isinstance(policy, dict):
            continue
        name, residency = policy.get("name"), policy.get("residency")
        if isinstance(name, str) and first.setdefault(name, index) != index:
            yield Problem(f"policies[{index}].name", f"{name!r} is also the name of policies[{first[name]}]")
        if residency == {}:
            yield Problem(f"policies[{index}].residency", "it names no zone, so it would keep nothing back")
        for key in ("allow_zones", "deny_zones"):
            for zone in _texts(residency.get(key) if isinstance(residency, dict) else None):
                if zone not in known:
                    meant = get_close_matches(zone, known, n=1)
                    hint = f"did you mean {meant[0]!r}?" if meant else "zones are those of clusters.<alias>.zones"
                    yield Problem(f"policies[{index}].residency.{key}", f"no cluster is in zone {zone!r}, {hint}")


def _mappings(section: Any) -> Iterator[dict[str, Any]]:
    return (entry for entry in section.values() if isinstance(entry, dict)) if isinstance(section, dict) else iter(())


def _texts(entries: Any) -> Iterator[str]:
    return (entry for entry in entries if isinstance(entry, str)) if isinstance(entries, list) else iter(())


def _repeated(indexed: list[tuple[int, dict[str, Any]]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, flow in indexed:
        if "from" not in flow or "to" not in flow:
            continue
        name = f"{flow['from']}__{flow['to']}"
        if first.setdefault(name, index) != index:
            yield Problem(f"flows[{index}]", f"is the flow {name} again, see flows[{first[name]}]")


def _separators(indexed: list[tuple[int, dict[str, Any]]], aliases: tuple[str, ...]) -> Iterator[Problem]:
    first = {flow.get("separator", "."): index for index, flow in reversed(indexed) if _has_separator(flow)}
    for separator, index in first.items():
        for one, other in ambiguous(aliases, separator):
            what = f"aliases {one!r} and {other!r} look alike in a topic's name, separator {separator!r}"
            yield Problem(f"flows[{index}].separator", what)


def _circles(indexed: list[tuple[int, dict[str, Any]]]) -> Iterator[Problem]:
    """What every flow of a circle must be able to read in a name: who put what in front of it."""
    flows = {(flow["from"], flow["to"]): (i, flow) for i, flow in indexed if _has_ends(flow)}
    for link, (index, flow) in flows.items():
        others = [flows[other] for other in circle(link, flows) if flows[other][0] < index]
        for other, before in sorted(others, key=lambda found: found[0]):
            why = f"flows[{index}] and flows[{other}] lead in a circle; names would grow without end"
            if flow.get("separator", ".") != before.get("separator", "."):
                yield Problem(f"flows[{index}].separator", f"{why} with different separators")
            if _is_template(flow) and _is_template(before):
                yield Problem(f"flows[{index}].naming", f"{why} with two templates; name the topics in a map")


def _has_ends(flow: dict[str, Any]) -> bool:
    return all(isinstance(flow.get(end), str) for end in ("from", "to"))


def _is_template(flow: dict[str, Any]) -> bool:
    naming = flow.get("naming")
    return isinstance(naming, dict) and "template" in naming


def _has_separator(flow: dict[str, Any]) -> bool:
    given = flow.get("separator", ".")
    return isinstance(given, str) and given != ""
