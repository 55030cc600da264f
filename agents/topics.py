"""Topics kept in step: settings, rights and deletions. Creation and growth belong to the flow, before its records."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

import faust

from app.config import Settings
from app.core.rights import Acl, AddAcls, RemoveAcls
from app.core.topics import AlterConfigs, DeleteTopic, described
from app.errors import ReplicatorError
from app.kafka.rights import ACLS_TOPIC, add_acls, remove_acls
from app.runtime.catalog import apply
from app.runtime.plan import Plan, Planner
from app.runtime.rules import flow_rules

log = logging.getLogger(__name__)

#: Writes to the memory of the rules that we added, and returns when it is durable; None is a tombstone.
Remember = Callable[[bytes, "bytes | None"], Awaitable[None]]


class TopicSync:
    """Brings the topics of one flow in step, a look at a time. `problems` are the last look's; each is said once."""

    def __init__(self, planner: Planner, remember: Remember) -> None:
        self.planner = planner
        self._remember = remember
        self.problems: frozenset[str] = frozenset()

    async def sync_once(self) -> None:
        """Look, and do what is to be done. A cluster that does not answer is left for the next time."""
        try:
            plan = await self.planner.draw()
            problems = [*plan.warnings, *await self._apply(plan)]
        except ReplicatorError as error:
            problems = [str(error)]
        for problem in problems:
            if problem not in self.problems:
                log.warning("%s: %s", self.planner.config.name, problem)
        self.problems = frozenset(problems)

    async def _apply(self, plan: Plan) -> list[str]:
        """Return what the target refused."""
        target, runtime = self.planner.target, self.planner.settings.runtime
        changes = [step for step in plan.steps if isinstance(step, AlterConfigs)]
        refused = (await apply(changes, target, runtime)).values()
        deletions = [step for step in plan.steps if isinstance(step, DeleteTopic)]
        kept = await target.delete_topics(step.remote_topic for step in deletions)
        for step in deletions:
            if step.remote_topic not in kept:
                log.warning("%s: %s", plan.flow, described(step))
        for rights in plan.steps:
            if isinstance(rights, AddAcls):
                await self._add(rights.acls)
            elif isinstance(rights, RemoveAcls):
                await self._remove(rights.acls)
        return [f"{remote} is not changed on {target.alias}: {why}" for remote, why in (*refused, *kept.items())]

    async def _add(self, acls: Iterable[Acl]) -> None:
        """Remember first: a rule added and then forgotten by a crash would stay for ever."""
        flow, target = self.planner.config.name, self.planner.target
        for acl in acls:
            await self._remember(acl.key(flow), b"{}")
        await add_acls(target, acls)
        for acl in acls:
            log.info("%s: added %s", flow, acl)

    async def _remove(self, acls: Iterable[Acl]) -> None:
        flow, target = self.planner.config.name, self.planner.target
        await remove_acls(target, acls)
        for acl in acls:
            await self._remember(acl.key(flow), None)
            log.info("%s: removed %s", flow, acl)


def register(app: faust.App, target: str, settings: Settings) -> dict[str, TopicSync]:
    """Give the Faust app of a target the timer that keeps topics in step; return what does it, by flow."""
    memory = app.topic(ACLS_TOPIC, key_serializer="raw", value_serializer="raw", partitions=1)

    async def remember(key: bytes, value: bytes | None) -> None:
        sent = await memory.send(key=key, value=value, partition=0)
        await sent

    flows = settings.flows_to(target)
    syncs = {flow.name: TopicSync(Planner(flow, settings, flow_rules(flow, settings)), remember) for flow in flows}

    @app.timer(interval=settings.runtime.topic_refresh_interval, on_leader=True, name=f"topics of {target}")
    async def keep_in_step() -> None:
        """Bring the topics of each flow to this target in step."""
        for sync in syncs.values():
            await sync.sync_once()

    return syncs
