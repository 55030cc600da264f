"""The Faust application that `faust -A app` finds.

It holds what needs no cluster: the agents (their channels are fed by the flows), the web server and the commands. What
needs Faust's own Kafka side (leader election, timers, tables) runs in one Faust app per target beneath it, so that a
cluster that is down, or a rebalance of Faust's group that hangs, holds up neither the data nor the other targets.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import click
import faust
import mode.loop
from faust.app.base import BootStrategy
from mode.types import ServiceT

from agents.replicate import replicator
from app import (
    commands,
    explain_command,
    failover_commands,
    json_log,
    pages,
    plan_command,
    rights_command,
    verify_command,
)
from app.config import FlowConfig, Settings, load_settings, settings_path
from app.errors import ConfigurationError
from app.kafka.clients import certificate_problems
from app.observer import Observer
from app.runtime.channel import BatchChannel
from app.runtime.flow import FlowService
from app.runtime.hangup import Hangup
from app.runtime.reload import Hosting, Reloader
from app.runtime.supervisor import Supervisor
from app.runtime.target import broker_urls


class _WithoutKafka(BootStrategy):  # type: ignore[misc]
    """Starts sensors, web server and agents, and none of Faust's Kafka services."""

    enable_kafka = False

    def server(self) -> Iterable[ServiceT]:
        return chain(self.sensors(), self.web_server(), self.agents())


class _Worker(faust.Worker):  # type: ignore[misc]
    """Refuses to start without a valid configuration; other commands do without one."""

    def __init__(self, app: Replicator, *arguments: Any, **options: Any) -> None:
        if app.refusal is not None:
            click.echo(str(app.refusal), err=True)
            raise SystemExit(2)  # Faust prints a traceback for every Exception
        super().__init__(app, *arguments, **options)
        if json_log.wanted(app.settings):
            self.quiet, self.spinner = True, None


class Replicator(faust.App):  # type: ignore[misc]
    """The root application."""

    BootStrategy = _WithoutKafka

    settings: Settings | None = None
    replication: Supervisor | None = None
    refusal: ConfigurationError | None = None

    def _new_web(self) -> pages.Pages:
        return pages.Pages(self)

    async def on_start(self) -> None:
        """Without a consumer there is nothing to attach topics to."""
        self.finalize()
        for setting in self.settings.runtime.without_effect() if self.settings else ():
            self.log.warning("runtime.%s", setting)

    async def on_stop(self) -> None:
        """Without Kafka services there is nothing to flush."""
        await self.on_before_shutdown.send()
        await self._maybe_close_http_client()


def create_app() -> Replicator:
    """Build the application from the configuration file; without a valid one, an application that has only `--help`."""
    mode.loop.use("uvloop")
    logging.getLogger("aiokafka").setLevel(logging.WARNING)  # it tells of every assignment at INFO
    refusal: ConfigurationError | None = None
    settings: Settings | None = None
    try:
        settings = _loaded()
    except ConfigurationError as error:
        refusal = error
    app = Replicator(
        "krabka-replicator",
        broker=broker_urls(settings.clusters[settings.targets[0]]) if settings else "kafka://127.0.0.1:9092",
        store="memory://",
        origin="app",
        autodiscover=False,
        Worker=_Worker,
        logging_config=json_log.CONFIG if json_log.wanted(settings) else None,
        web_host="127.0.0.1",
        web_stats_enabled=False,
        web_router_enabled=settings is not None and settings.web.faust_pages,
        web_tables_enabled=settings is not None and settings.web.faust_pages,
    )
    app.settings, app.refusal = settings, refusal
    json_log.register(settings)
    commands.register(app, settings)
    plan_command.register(app, settings)
    failover_commands.register(app, settings)
    explain_command.register(app, settings)
    verify_command.register(app, settings)
    rights_command.register(app, settings)
    if settings is not None:
        _wire(app, settings)
    return app


def _loaded() -> Settings:
    settings = load_settings()
    if problems := certificate_problems(settings.clusters):
        raise ConfigurationError(str(settings_path()), problems)
    return settings


def _wire(app: Replicator, settings: Settings) -> None:
    flows = [_flow(app, config, settings) for config in settings.flows if config.target in settings.targets]
    app.replication = Supervisor(settings, flows, Path(app.conf.datadir))
    app.service(app.replication)
    observer = Observer(app.replication)
    app.service(observer)
    reloader = Reloader(app.replication, _hosting(app))
    app.service(Hangup(reloader))
    pages.register(app, app.replication, observer, reloader)


def _flow(app: Replicator, config: FlowConfig, settings: Settings) -> FlowService:
    """Return a flow and have an agent for it."""
    channel = BatchChannel(app)
    flow = FlowService(config, settings, channel)
    app.agent(channel, name=_agent_name(config))(replicator(flow))
    return flow


def _agent_name(config: FlowConfig) -> str:
    return f"replicate {config.name}"


def _hosting(app: Replicator) -> Hosting:
    async def host(config: FlowConfig, settings: Settings) -> FlowService:
        flow = _flow(app, config, settings)
        await app.agents[_agent_name(config)].maybe_start()
        return flow

    async def retire(flow: FlowService) -> None:
        agent = app.agents.pop(_agent_name(flow.config))
        agent.cancel()
        await agent.stop()

    return Hosting(load=_loaded, host=host, retire=retire)


app = create_app()
