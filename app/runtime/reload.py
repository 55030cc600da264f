"""A changed configuration taken up by a running worker: flows that differ are built anew, others do not notice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.config import FlowConfig, Settings
from app.errors import ConfigurationError, Problem
from app.runtime.changes import Changes, changes, needs_restart
from app.runtime.flow import FlowService
from app.runtime.supervisor import Supervisor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """What flows need of the application: a way to read the configuration, an agent for a flow, and its end."""

    load: Callable[[], Settings]
    host: Callable[[FlowConfig, Settings], Awaitable[FlowService]]
    retire: Callable[[FlowService], Awaitable[None]]


class Reloader:
    """Takes up the configuration as it is now, all of it or nothing.

    Invariant: what cannot be used changes nothing; `problem` says why until a later reload succeeds.
    """

    def __init__(self, supervisor: Supervisor, hosting: Hosting) -> None:
        self.loaded = time.time()
        self.problem: str | None = None
        self._supervisor = supervisor
        self._hosting = hosting
        self._one_at_a_time = asyncio.Lock()

    async def reload(self) -> Changes:
        """Read the configuration and follow it. Raises `ConfigurationError`."""
        async with self._one_at_a_time:
            try:
                settings = await self._usable()
            except ConfigurationError as error:
                self.problem = str(error)
                log.error("reload: the former configuration stays in use: %s", error)  # noqa: TRY400 - no defect of ours
                raise
            found = changes(self._supervisor.settings, settings)
            await self._follow(settings, found)
            self.loaded, self.problem = time.time(), None
            log.warning("reload: %s", found)
            return found

    async def _usable(self) -> Settings:
        settings = self._hosting.load()
        problems = needs_restart(self._supervisor.settings, settings)
        if not problems and (same := await self._supervisor.same_as_known(settings)):
            problems = (Problem("clusters", str(same)),)
        if problems:
            raise ConfigurationError("on disk", problems)
        return settings

    async def _follow(self, settings: Settings, found: Changes) -> None:
        supervisor = self._supervisor
        for name in found.stopped:
            flow = supervisor.flows[name]
            await supervisor.remove(flow)
            await self._hosting.retire(flow)
        await supervisor.adopt(settings, found.moved)
        configs = {flow.name: flow for flow in settings.flows}
        for name in (*found.rebuilt, *found.limited, *found.kept):
            supervisor.flows[name].take_up(configs[name], settings, rebuild=name in found.rebuilt)
        for name in found.started:
            await supervisor.add(await self._hosting.host(configs[name], settings))
