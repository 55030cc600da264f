"""What runs once per target cluster, on the leader among the workers: a Faust app of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any

import faust
from mode import Service

from agents import checkpoints, heartbeats
from agents import topics as topic_sync
from app.config import ClusterConfig, RuntimeConfig, Settings
from app.errors import ReplicatorError
from app.kafka.admin import Admin
from app.kafka.clients import WORKER, WORKER_PREFIX, aiokafka_options
from app.runtime import own_topics
from app.runtime.roster import Roster

log = logging.getLogger(__name__)

#: A worker that joined Faust's group without getting its assignment for this long is reported by /health.
ASSIGNMENT_PATIENCE = 30.0


def broker_credentials(cluster: ClusterConfig, runtime: RuntimeConfig) -> Any:
    """Return what a Faust app of this cluster authenticates with, None for plain connections."""
    options = aiokafka_options(cluster, runtime)
    context = options.get("ssl_context")
    if "sasl_oauth_token_provider" in options:
        return faust.OAuthCredentials(oauth_cb=options["sasl_oauth_token_provider"], ssl_context=context)
    if "sasl_mechanism" in options:
        return faust.SASLCredentials(
            username=options["sasl_plain_username"],
            password=options["sasl_plain_password"],
            mechanism=options["sasl_mechanism"],
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)


def broker_urls(cluster: ClusterConfig) -> str:
    """Return Faust's form of a bootstrap list."""
    return ";".join(f"kafka://{address.strip()}" for address in cluster.bootstrap.split(","))


class TargetService(Service):  # type: ignore[misc]
    """Keeps the Faust app of one target running: leader election, timers and tables on that cluster.

    Data does not depend on it: flows run beside it. An app that fails, also because its cluster is down, is replaced
    by a fresh one every `supervisor_interval`.
    """

    def __init__(self, alias: str, settings: Settings, datadir: Path, **options: Any) -> None:
        super().__init__(**options)
        self.alias = alias
        self.settings = settings
        self.error: str | None = None
        self._datadir = datadir
        self._app: faust.App | None = None
        self._unassigned_since: float | None = None
        self.heartbeats: heartbeats.Heartbeats | None = None
        self.checkpoints: dict[str, checkpoints.CheckpointFlow] = {}
        self.topics: dict[str, topic_sync.TopicSync] = {}
        self._admin = Admin(alias, settings.clusters[alias], settings.runtime)
        self._app_id = f"krabka-replicator-{alias}"
        self._roster = Roster(self._admin, self._app_id, f"{self._app_id}-__assignor-__leader")
        self._jobs: list[asyncio.Task[None]] = []
        self._renewed = asyncio.Event()

    @property
    def label(self) -> str:
        """What Faust's logs call this service."""
        return f"target {self.alias}"

    async def on_start(self) -> None:
        """Begin; returns at once."""
        jobs = (self._live, self._roster.keep)
        self._jobs = [asyncio.create_task(job(), name=f"{self.label} {job.__name__}") for job in jobs]

    async def on_stop(self) -> None:
        """Stop the app too: its consumer thread would keep the process alive."""
        for job in self._jobs:
            job.cancel()
        if self._jobs:
            await asyncio.wait(self._jobs, timeout=5)
        self._admin.close()

    def renew(self, settings: Settings) -> None:
        """Begin the leader work anew, with other flows or other rules for them."""
        self.settings = settings
        self._renewed.set()

    def problem(self) -> str | None:
        """Say what keeps leader work from running on this target; None when it runs."""
        if self.error is not None:
            return self.error
        if self._app is None:
            return None
        if self._unassigned_since is None:
            return self._stuck()
        waited = asyncio.get_running_loop().time() - self._unassigned_since
        if waited > ASSIGNMENT_PATIENCE:
            return (
                f"Faust's group on {self.alias} gave no assignment for {waited:.0f} s; heartbeats and checkpoints wait"
            )
        return None

    def _stuck(self) -> str | None:
        reasons = [reason for flow in self.checkpoints.values() if (reason := flow.stuck())] if self.leader else []
        return "; ".join(reasons) or None

    @property
    def leader(self) -> bool:
        """Whether this worker is the one that does the target's leader work."""
        if self._app is None or self._unassigned_since is not None or self.error is not None:
            return False
        return bool(self._app.is_leader())

    @property
    def led_by(self) -> str | None:
        """The worker that does the target's leader work, as the group of Faust's apps says."""
        return WORKER if self.leader else self._roster.owner(0)

    def heartbeat_age(self, source: str) -> float | None:
        """Return the seconds since the target took the last heartbeat of a source; only its leader knows."""
        return self.heartbeats.age(source) if self.leader and self.heartbeats is not None else None

    def checkpoints_of(self, flow: str) -> checkpoints.CheckpointFlow | None:
        """Return what writes the checkpoints of a flow, if this worker is the one that does."""
        return self.checkpoints.get(flow) if self.leader else None

    def topics_of(self, flow: str) -> topic_sync.TopicSync | None:
        """Return what keeps the topics of a flow in step, if this worker is the one that does."""
        return self.topics.get(flow) if self.leader else None

    async def _live(self) -> None:
        while True:
            self._renewed.clear()  # here, so that the pause below is one also while the target does not answer
            try:
                await own_topics.ensure(self.alias, self.settings, own_topics.of_target(self.alias, self.settings))
                await self._run()
            except asyncio.CancelledError as error:
                if self.should_stop:
                    raise
                self._report(error)  # nobody asked us to end
            except Exception as error:  # noqa: BLE001 - whatever Faust's side meets, it is tried again
                self._report(error)
            finally:
                await self._discard()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._renewed.wait(), self.settings.runtime.supervisor_interval)

    async def _run(self) -> None:
        """Work until the app fails, or is to be another one."""
        self._app = self._new_app()
        self._unassigned()
        await self._app.start()
        self.error = None
        while not self._app.should_stop:
            await asyncio.sleep(0.5)
            if self._renewed.is_set():
                return
        raise self._app.crash_reason or RuntimeError("it stopped by itself")

    def _report(self, error: BaseException) -> None:
        reason = str(error) if isinstance(error, ReplicatorError) else f"leader work on {self.alias}: {error!r}"
        if reason != self.error:
            log.error("%s: %s", self.label, reason)
        self.error = reason

    async def _discard(self) -> None:
        app, self._app = self._app, None
        if app is not None:
            await asyncio.shield(asyncio.wait([asyncio.ensure_future(app.stop())], timeout=5))

    def _new_app(self) -> faust.App:
        runtime = self.settings.runtime
        app = faust.App(
            self._app_id,
            broker_client_id=WORKER_PREFIX + WORKER,
            broker=broker_urls(self.settings.clusters[self.alias]),
            broker_credentials=broker_credentials(self.settings.clusters[self.alias], runtime),
            store="memory://",
            datadir=self._datadir / self.alias,
            web_enabled=False,
            autodiscover=False,
            loghandlers=[],
            broker_session_timeout=runtime.group_session_timeout,
            broker_heartbeat_interval=min(3.0, runtime.group_session_timeout / 3),
            topic_partitions=1,
            topic_replication_factor=runtime.internal_topic_replication_factor,
        )
        app.on_partitions_revoked.connect(self._unassigned, weak=False)
        app.on_rebalance_complete.connect(self._assigned, weak=False)
        self.heartbeats = heartbeats.register(app, self.alias, self.settings)
        self.topics = topic_sync.register(app, self.alias, self.settings)
        flows = checkpoints.register(app, self.alias, self.settings)
        self.checkpoints = {flow.config.name: flow for flow in flows}
        return app

    def _unassigned(self, *_: Any, **__: Any) -> None:
        self._unassigned_since = asyncio.get_running_loop().time()

    def _assigned(self, *_: Any, **__: Any) -> None:
        self._unassigned_since = None
