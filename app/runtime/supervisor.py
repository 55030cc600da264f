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
from app.config import FlowConfig, Settings
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
        self.cluster_ids: dict[str, str | None] = {}
        self.reachable: dict[str, bool] = {}
        self._datadir = datadir
        self._admins: dict[str, Admin] = {}
        self._controls: dict[str, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._know(_used(flow.config for flow in self.flows.values()))

    def _know(self, aliases: frozenset[str]) -> None:
        """Keep an eye on exactly these clusters."""
        for alias in self._admins.keys() - aliases:
            self._admins.pop(alias).close()
        for alias in sorted(aliases - self._admins.keys()):
            self._admins[alias] = Admin(alias, self.settings.clusters[alias], self.settings.runtime)
        self.cluster_ids = {alias: self.cluster_ids.get(alias) for alias in sorted(aliases)}
        self.reachable = {alias: self.reachable.get(alias, False) for alias in sorted(aliases)}

    async def on_start(self) -> None:
        """Start everything; nothing here waits for a cluster."""
        await self.look()
        self._watch = asyncio.create_task(self._keep_looking())
        for alias in self.targets:
            self._follow_controls(alias)
        for service in (*self.targets.values(), *self.flows.values()):
            await self.add_runtime_dependency(service)

    def _follow_controls(self, alias: str) -> None:
        follower = controls.follower(self._admins[alias], self.settings, self._obey)
        self._controls[alias] = asyncio.create_task(follower.run())

    async def on_stop(self) -> None:
        """Stop flows and targets side by side: each drains, and together they have the time of one."""
        last_resort = threading.Timer(STOP_SECONDS, os._exit, (1,))
        last_resort.daemon = True  # an orderly end comes first
        last_resort.start()
        for job in (self._watch, *self._controls.values()):
            if job is not None:
                job.cancel()
        services: list[Service] = [*self.flows.values(), *self.targets.values()]
        await asyncio.gather(*(service.stop() for service in services))

    # -- for a reload -------------------------------------------------------------------------------------------------

    async def same_as_known(self, settings: Settings) -> SameCluster | None:
        """Return the error when a cluster of another configuration is one that has another alias already."""
        ids = dict(self.cluster_ids)
        for alias in sorted(_used(settings.flows) - ids.keys()):
            admin = Admin(alias, settings.clusters[alias], settings.runtime)
            try:
                ids[alias] = await admin.cluster_id(LOOK_TIMEOUT)
            except ReplicatorError:
                ids[alias] = None  # it is looked at again and again from now on
            finally:
                admin.close()
        return same_clusters({alias: ids[alias] for alias in ids if alias in settings.clusters})

    async def remove(self, flow: FlowService) -> None:
        """Stop a flow, with what it has written committed."""
        await flow.stop()
        del self.flows[flow.config.name]

    async def add(self, flow: FlowService) -> None:
        """Start a flow."""
        self.flows[flow.config.name] = flow
        await self.add_runtime_dependency(flow)

    async def adopt(self, settings: Settings, moved: frozenset[str]) -> None:
        """Have the leader work of targets as another configuration wants it, where `moved` flows lead to."""
        former, self.settings = self.settings, settings
        gone = self.targets.keys() - set(settings.targets)
        for alias in gone:
            self._controls.pop(alias).cancel()
            await self.targets.pop(alias).stop()
        flows = {flow.name: flow for flow in (*former.flows, *settings.flows)}
        used = (flow for flow in settings.flows if flow.target in settings.targets)
        self._know(_used(used))
        for alias in {flows[name].target for name in moved} - gone:
            if alias in self.targets:
                self.targets[alias].renew(settings)
            else:
                self.targets[alias] = TargetService(alias, settings, self._datadir)
                self._follow_controls(alias)
                await self.add_runtime_dependency(self.targets[alias])

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
        await asyncio.gather(*(self._look_at(alias, admin) for alias, admin in self._admins.items()))
        if same := same_clusters(self.cluster_ids):
            self._refuse(same)

    async def _look_at(self, alias: str, admin: Admin) -> None:
        try:
            cluster_id = await admin.cluster_id(LOOK_TIMEOUT)
        except ReplicatorError:
            cluster_id = None
        if self._admins.get(alias) is not admin:
            return  # a reload removed it meanwhile
        self.reachable[alias] = cluster_id is not None
        self.cluster_ids[alias] = cluster_id or self.cluster_ids[alias]

    def _refuse(self, same: SameCluster) -> None:
        log.critical("%s", same)
        raise SystemExit(2)


def _used(flows: Iterable[FlowConfig]) -> frozenset[str]:
    return frozenset(alias for flow in flows for alias in (flow.source, flow.target))


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
