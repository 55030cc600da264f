"""Which tasks this worker owns: an ordinary consumer group over the empty tasks topic on the target."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import InconsistentGroupProtocolError, KafkaError

from app.config import ClusterConfig, RuntimeConfig
from app.core.tasks import tasks_topic, workers_group
from app.errors import ClusterUnavailable, WorkersDisagree
from app.kafka.clients import WORKER, WORKER_PREFIX, aiokafka_options
from app.kafka.reasons import told
from app.kafka.safe_clients import SafeConsumer

OnRevoked = Callable[[], Awaitable[None]]
OnAssigned = Callable[[frozenset[int]], Awaitable[None]]


class TaskMembership:
    """A membership in the group of a flow's workers.

    `on_revoked` is awaited before the worker takes part in a rebalance, `on_assigned` with the full set of tasks after
    it. aiokafka's assignment is eager but sticky: a task that comes back was never anyone else's in between.

    Invariant: members agree about the number of tasks. It is part of the assignor's name, so the broker admits nobody
    with another one, not even a worker that slept while the number was changed.
    """

    def __init__(
        self,
        *,
        alias: str,
        cluster: ClusterConfig,
        runtime: RuntimeConfig,
        flow: str,
        tasks: int,
        instance_id: str | None,
        on_revoked: OnRevoked,
        on_assigned: OnAssigned,
    ) -> None:
        self._alias = alias
        self._flow = flow
        self._tasks = tasks
        self._topic = tasks_topic(flow)
        self._listener = _Listener(on_revoked, on_assigned)
        self._consumer = SafeConsumer(
            **aiokafka_options(cluster, runtime) | {"client_id": WORKER_PREFIX + WORKER},
            group_id=workers_group(flow),
            group_instance_id=instance_id,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            partition_assignment_strategy=[_assignor(tasks)],
            session_timeout_ms=int(runtime.group_session_timeout * 1000),
            heartbeat_interval_ms=int(runtime.group_heartbeat_interval * 1000),
            # A member that answers late in a rebalance holds all others up; ours answer as soon as they committed.
            rebalance_timeout_ms=int(runtime.group_session_timeout * 1000),
        )

    async def run(self) -> None:
        """Stay a member until cancelled.

        Raises:
            WorkersDisagree: the members have another number of tasks.
            ClusterUnavailable: the membership cannot be kept.
        """
        try:
            await self._consumer.start()
            self._consumer.subscribe([self._topic], listener=self._listener)
            while True:
                await self._consumer.getmany(timeout_ms=1000)
                self._listener.check()
        except InconsistentGroupProtocolError as error:
            raise WorkersDisagree(flow=self._flow, tasks=self._tasks) from error
        except (KafkaError, OSError) as error:
            raise ClusterUnavailable(alias=self._alias, detail=f"group membership: {told(error)}") from error

    async def stop(self) -> None:
        """Leave the group, so that the others take over at once."""
        self._listener.closed = True
        with contextlib.suppress(KafkaError, asyncio.TimeoutError):
            await asyncio.wait_for(self._consumer.stop(), 3)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """aiokafka logs what a callback raises and goes on; here it ends the membership instead."""

    def __init__(self, on_revoked: OnRevoked, on_assigned: OnAssigned) -> None:
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned
        self._error: Exception | None = None
        self.closed = False

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if not self.closed:
            await self._guarded(self._on_revoked())

    async def on_partitions_assigned(self, assigned: Any) -> None:
        if not self.closed:
            await self._guarded(self._on_assigned(frozenset(tp.partition for tp in assigned)))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - kept and raised again by check()
            self._error = error


def _assignor(tasks: int) -> type[StickyPartitionAssignor]:
    """Return an assignor of a membership's own: aiokafka's sticky one remembers the last assignment in its class."""
    return type("TasksAssignor", (StickyPartitionAssignor,), {"name": f"sticky-{tasks}"})
