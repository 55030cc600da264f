"""What differs between two configurations, as a running worker can take it up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.config import FlowConfig, Settings
from app.core.flow_rules import FlowRules
from app.errors import Problem
from app.runtime.rules import flow_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Names of the flows of this worker, by what becomes of them.

    `rebuilt` ones stop and go on with other rules, `limited` ones only get another limit and do not notice, `kept` ones
    are as they were.
    """

    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def moved(self) -> frozenset[str]:
        """Flows for which the leader of their target works in another way, or not any more."""
        return frozenset((*self.started, *self.stopped, *self.rebuilt))

    def __str__(self) -> str:
        said = [
            f"{what} {', '.join(names)}"
            for what, names in (
                ("started", self.started),
                ("stopped", self.stopped),
                ("built anew", self.rebuilt),
                ("another limit for", self.limited),
            )
            if names
        ]
        return "; ".join(said) or "nothing has changed"


def changes(old: Settings, new: Settings) -> Changes:
    """Compare what this worker runs with what it is to run."""
    before, after = _flows(old), _flows(new)
    both = [name for name in after if name in before]
    rebuilt = [name for name in both if _nature(before[name], old) != _nature(after[name], new)]
    limited = [name for name in both if name not in rebuilt and before[name].limits != after[name].limits]
    return Changes(
        started=tuple(name for name in after if name not in before),
        stopped=tuple(name for name in before if name not in after),
        rebuilt=tuple(rebuilt),
        limited=tuple(limited),
        kept=tuple(name for name in both if name not in (*rebuilt, *limited)),
    )


def needs_restart(old: Settings, new: Settings) -> tuple[Problem, ...]:
    """Return what has changed and is read only when a worker starts."""
    what = "a change is taken up only by a restart of the workers; nothing of the new configuration is in use"
    return tuple(Problem(where, what) for where in _fixed(old, new))


def _fixed(old: Settings, new: Settings) -> Iterable[str]:
    for section in ("runtime", "web"):
        if getattr(old, section) != getattr(new, section):
            yield section
    for alias in old.clusters.keys() & new.clusters.keys():
        for part in ("bootstrap", "security"):
            if getattr(old.clusters[alias], part) != getattr(new.clusters[alias], part):
                yield f"clusters.{alias}.{part}"


def _flows(settings: Settings) -> dict[str, FlowConfig]:
    return {flow.name: flow for flow in settings.flows if flow.target in settings.targets}


def _nature(flow: FlowConfig, settings: Settings) -> tuple[dict[str, Any], FlowRules]:
    return flow.model_dump(exclude={"limits"}), flow_rules(flow, settings)
