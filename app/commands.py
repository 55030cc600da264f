"""`faust -A app flows`, `lag`, `check`, `pause`, `resume`, `restart` and `reload`.

Each imports what it needs when it runs, so that `--help` stays quick and needs no configuration.
"""

from __future__ import annotations

from typing import Any

import click
import faust
from faust.cli import AppCommand, argument, option

from app.config import FlowConfig, Settings


def register(app: faust.App, settings: Settings | None) -> None:
    """Add the commands to the application."""
    _looking(app, settings)
    _ordering(app, settings)
    _reload(app, settings)


def _looking(app: faust.App, settings: Settings | None) -> None:
    as_json = option("--json", "as_json", is_flag=True, help="Print one JSON document.")

    @app.command(as_json)
    async def flows(self: AppCommand, as_json: bool) -> None:
        """Show each flow: its workers, whether it is paused, its topics and its lag. No worker has to run."""
        from app.commands_lag import run_flows

        await run_flows(configured(app, settings), as_json=as_json or self.json)

    @app.command(argument("flow", required=False), as_json)
    async def lag(self: AppCommand, flow: str | None, as_json: bool) -> None:
        """Show how far each partition is behind, from what is stored on the clusters. No worker has to run."""
        from app.commands_lag import run_lag

        found = configured(app, settings)
        await run_lag(found, chosen(found, flow), as_json=as_json or self.json)

    @app.command(as_json)
    async def check(self: AppCommand, as_json: bool) -> None:
        """Look for what would keep flows from running: connections, one cluster under two names, rights, topics.

        Nothing is changed. The exit code is 1 when something has to be mended.
        """
        from app.commands_check import run_check

        await run_check(configured(app, settings), as_json=as_json or self.json)


def _ordering(app: faust.App, settings: Settings | None) -> None:
    async def order(flow: str, action: Any) -> None:
        from agents.controls import order
        from app.errors import ReplicatorError

        found = configured(app, settings)
        for config in chosen(found, flow):
            try:
                await order(config, found, action)
            except ReplicatorError as error:
                click.echo(str(error), err=True)
                raise SystemExit(1) from None
            click.echo(f"{config.name}: {action} is written to {config.target}; running workers follow within seconds")

    @app.command(argument("flow"))
    async def pause(self: AppCommand, flow: str) -> None:
        """Stop reading a flow's source on every worker until `resume`, also over restarts."""
        await order(flow, "pause")

    @app.command(argument("flow"))
    async def resume(self: AppCommand, flow: str) -> None:
        """Let a paused flow go on from where it stopped."""
        await order(flow, "resume")

    @app.command(argument("flow"))
    async def restart(self: AppCommand, flow: str) -> None:
        """Build a flow anew on every worker: fresh clients, positions read again; nothing is copied twice."""
        await order(flow, "restart")


def _reload(app: faust.App, settings: Settings | None) -> None:
    urls = option(
        "--url",
        "urls",
        multiple=True,
        default=("http://127.0.0.1:6066",),
        show_default=True,
        help="A worker's web page.",
    )

    @app.command(urls)
    async def reload(self: AppCommand, urls: tuple[str, ...]) -> None:
        """Have workers take up their configuration file as it is now; flows that did not change do not notice.

        Needs web.token. A worker that is not asked goes on as it was: ask each, or send each a SIGHUP.
        """
        from app.reload_command import run_reload

        run_reload(configured(app, settings), urls)


def configured(app: faust.App, settings: Settings | None) -> Settings:
    """Return the settings, or end with what is wrong with them."""
    if settings is None:
        click.echo(str(getattr(app, "refusal", None) or "there is no configuration"), err=True)
        raise SystemExit(2)
    return settings


def chosen(settings: Settings, flow: str | None) -> list[FlowConfig]:
    """Return the flow of that name, or all flows; end when there is none."""
    found = [one for one in settings.flows if flow in (None, one.name)]
    if not found:
        click.echo(f"there is no flow {flow}; there are {', '.join(one.name for one in settings.flows)}", err=True)
        raise SystemExit(2)
    return found
