"""`faust -A app plan`: what the flows would do to their targets' topics, and why, without doing any of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click
import faust
from faust.cli import AppCommand, option

from app.config import Settings
from app.core.rights import Acl, AddAcls, RemoveAcls
from app.core.topics import as_json as step_json
from app.core.topics import described
from app.errors import ReplicatorError
from app.runtime.plan import Plan, Planner, Step
from app.runtime.rules import flow_rules


def register(app: faust.App, settings: Settings | None) -> None:
    """Add the command to the application."""

    @app.command(option("--json", "as_json", is_flag=True, help="Print one JSON document."))
    async def plan(self: AppCommand, as_json: bool) -> None:
        """Show what each flow would create, grow, change, remove or refuse on its target; nothing is changed."""
        if settings is None:
            click.echo(str(getattr(app, "refusal", None) or "there is no configuration"), err=True)
            raise SystemExit(2)
        plans, failures = await _draw_all(settings)
        if as_json or self.json:
            click.echo(json.dumps({"flows": [plan_json(found) for found in plans], "errors": failures}, indent=2))
        else:
            for line in (*(line for found in plans for line in plan_lines(found)), *failures):
                click.echo(line)
        if failures:
            raise SystemExit(1)


async def _draw_all(settings: Settings) -> tuple[list[Plan], list[str]]:
    plans, failures = [], []
    for flow in settings.flows:
        if flow.target not in settings.targets:
            continue
        planner = Planner(flow, settings, flow_rules(flow, settings))
        try:
            plans.append(await planner.draw())
        except ReplicatorError as error:
            failures.append(f"{flow.name}: {error}")
        finally:
            planner.close()
    return plans, failures


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the plan for tools: a stable document."""
    return {
        "flow": plan.flow,
        "steps": [step_json(step) for step in plan.steps],
        "refused": [asdict(refusal) for refusal in plan.refused],
        "taken": dict(plan.taken),
        "left": dict(plan.left),
        "warnings": list(plan.warnings),
    }


def plan_lines(plan: Plan) -> Iterable[str]:
    """Return the plan for people."""
    yield (
        f"{plan.flow}: {len(plan.steps)} to do, {len(plan.refused)} refused"
        if plan.steps or plan.refused
        else (f"{plan.flow}: in step")
    )
    for step in plan.steps:
        yield from (f"  {line}" for line in _described(step))
    for refusal in plan.refused:
        yield f"  refused {refusal.topic} as {refusal.remote_topic}: {refusal.reason}"
    for warning in plan.warnings:
        yield f"  warning: {warning}"
    for topic, why in plan.taken.items():
        yield f"  takes {topic} {why}"
    for topic, why in plan.left.items():
        yield f"  leaves {topic}: {why}"


def _described(step: Step) -> list[str]:
    if isinstance(step, AddAcls):
        return [f"add {_rule(acl)}" for acl in step.acls]
    if isinstance(step, RemoveAcls):
        return [f"remove {_rule(acl)}" for acl in step.acls]
    return [described(step)]


def _rule(acl: Acl) -> str:
    rule = f"{acl.permission} {acl.operation} on {acl.pattern.lower()} {acl.name} for {acl.principal}"
    return rule if acl.host == "*" else f"{rule} from {acl.host}"
