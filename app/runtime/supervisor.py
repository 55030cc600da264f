"""The root service of a worker: every flow and every target of the configuration, and what is known of the clusters."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mode import Service

from agents import controls
from app.config import Settings
from app.errors import ReplicatorError, SameCluster
from app.kafka.admin import Admin
from app.runtime.flow import FlowService
from app.runtime.target import TargetService
from tables.controls import Control

log = logging.getLogger(__name__)

LOOK_INTERVAL = 2.0

#: A client that hangs in a thread of its own must not keep a worker alive that was told to end. What is not committed
#: by then is read again by the next owner.
STOP_SECONDS = 8.5
LOOK_TIMEOUT = 1.5


class Supervisor(Service):  # type: ignore[misc]
    """Starts all flows and targets and keeps an eye on the clusters. None of them takes another one with it."""

    def __init__(self, settings: Settings, flows: Iterable[FlowService], datadir: Path, **options: Any) -> None:
        super().__init__(**options)
        self.settings = settings
        self.flows = {flow.config.name: flow for flow in flows}
        self.targets = {alias: TargetService(alias, settings, datadir) for alias in settings.targets}
        aliases = {alias for flow in self.flows.values() for alias in (flow.config.source, flow.config.target)}
        self.cluster_ids: dict[str, str | None] = dict.fromkeys(sorted(aliases))
        self.reachable: dict[str, bool] = dict.fromkeys(sorted(aliases), False)
        self._admins = {alias: Admin(alias, settings.clusters[alias], settings.runtime) for alias in sorted(aliases)}
        self._controls = [controls.follower(self._admins[alias], settings, self._obey) for alias in settings.targets]
        self._watch: list[asyncio.Task[None]] = []

    async def on_start(self) -> None:
        """Start everything; nothing here waits for a cluster."""
        await self.look()
        self._watch = [asyncio.create_task(job()) for job in (self._keep_looking, *(c.run for c in self._controls))]
        for service in (*self.targets.values(), *self.flows.values()):
            await self.add_runtime_dependency(service)

    async def on_stop(self) -> None:
        """Stop flows and targets side by side: each drains, and together they have the time of one."""
        last_resort = threading.Timer(STOP_SECONDS, os._exit, (1,))
        last_resort.daemon = True  # an orderly end comes first
        last_resort.start()
        for job in self._watch:
            job.cancel()
        services: list[Service] = [*self.flows.values(), *self.targets.values()]
        await asyncio.gather(*(service.stop() for service in services))

    def _obey(self, wishes: Mapping[str, Control]) -> None:
        for name, control in wishes.items():
            if name in self.flows:
                self.flows[name].obey(control)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            await self.look()

    async def look(self) -> None:
        """See which clusters answer, and refuse one that answers to two aliases."""
        await asyncio.gather(*(self._look_at(alias) for alias in self._admins))
        if same := same_clusters(self.cluster_ids):
            self._refuse(same)

    async def _look_at(self, alias: str) -> None:
        try:
            self.cluster_ids[alias] = await self._admins[alias].cluster_id(LOOK_TIMEOUT)
        except ReplicatorError:
            self.reachable[alias] = False
        else:
            self.reachable[alias] = True

    def _refuse(self, same: SameCluster) -> None:
        log.critical("%s", same)
        raise SystemExit(2)


def same_clusters(cluster_ids: dict[str, str | None]) -> SameCluster | None:
    """Return the error that names two aliases of one cluster."""
    seen: dict[str, str] = {}
    for alias, cluster_id in cluster_ids.items():
        if cluster_id is None:
            continue
        if cluster_id in seen:
            return SameCluster(alias_a=seen[cluster_id], alias_b=alias, cluster_id=cluster_id)
        seen[cluster_id] = alias
    return None
