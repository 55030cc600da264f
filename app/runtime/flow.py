"""A flow's life cycle: built, running, failed and built again, drained at the end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from mode import Service

from app.config import FlowConfig, Settings
from app.core.flow_rules import FlowRules, kept_back
from app.core.records import TopicPartition
from app.errors import FatalError, ReplicatorError, ResidencyViolation
from app.jobs import end_all
from app.kafka.batches import SourceBatch
from app.runtime.channel import BatchChannel
from app.runtime.counters import FlowCounters
from app.runtime.pace import Pace
from app.runtime.pipeline import Pipeline
from app.runtime.ports import kafka_ports
from app.runtime.rules import flow_rules
from app.runtime.task import Task
from tables.controls import Control, stored_controls

log = logging.getLogger(__name__)

State = Literal["starting", "running", "paused", "draining", "stopped", "failed"]


class FlowService(Service):  # type: ignore[misc]
    """Keeps one flow running.

    A pipeline that fails is closed and built again; nothing that happens to it reaches another flow. Building is tried
    with growing pauses until `worker_build_retry_budget` is spent, then the flow counts as failed and is tried again
    every `supervisor_interval`.
    """

    def __init__(self, config: FlowConfig, settings: Settings, channel: BatchChannel, **options: Any) -> None:
        super().__init__(**options)
        self.config = config
        self.settings = settings
        self.channel = channel
        self._next: tuple[FlowConfig, Settings] | None = None
        self._adopt(config, settings)
        self.flow_state: State = "starting"
        self.error: str | None = None
        self.pipeline: Pipeline | None = None
        self.carried = (0, 0)
        self.counters = FlowCounters()
        self.pace = Pace(config.limits.bytes_per_second)
        self.control: Control | None = None
        self._resumed = asyncio.Event()
        self._asked = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        """What Faust's logs call this service."""
        return f"flow {self.config.name}"

    async def on_start(self) -> None:
        """Begin; returns at once."""
        self._life = asyncio.create_task(self._live(), name=self.label)

    async def on_stop(self) -> None:
        """Drain: stop reading, commit what is written, leave the group."""
        self.flow_state = "draining"
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait([self._life], timeout=2 * self.settings.runtime.drain_timeout)
        self.flow_state = "stopped"

    async def _live(self) -> None:
        runtime = self.settings.runtime
        while True:
            try:
                await self._learn_control()
                self.pipeline = await self._build()
                self.flow_state, self.error = "paused" if self.paused else "running", None
                log.info("%s: %s", self.label, self.flow_state)
                await self._run(self.pipeline)
            except ReplicatorError as error:
                self._failed(str(error))
            except asyncio.CancelledError:
                if self.flow_state == "draining":
                    raise
                self._failed("a client cancelled the work that was waiting for it")  # nobody asked us to end
            except Exception as error:  # a defect of ours or of a client; the flow is built anew all the same
                log.exception("%s: unexpected failure", self.label)
                self._failed(repr(error))
            finally:
                await self._close()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._asked.wait(), runtime.supervisor_interval)
            self._asked.clear()

    async def _learn_control(self) -> None:
        """Know what operators want before the first record is read. Raises `ReplicatorError`."""
        if self.control is None:
            found = await stored_controls(self.config.target, self.settings)
            self.control = self.control or found.get(self.config.name) or Control()
            self._apply(self.control)

    async def _run(self, pipeline: Pipeline) -> None:
        """Work until something fails, or a restart is asked for."""
        jobs = [asyncio.create_task(pipeline.run()), asyncio.create_task(self._asked.wait())]
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
            self.flow_state = "starting"
        finally:
            await end_all(jobs)

    async def _build(self) -> Pipeline:
        runtime = self.settings.runtime
        loop = asyncio.get_running_loop()
        deadline = loop.time() + runtime.worker_build_retry_budget
        delay = runtime.worker_build_initial_backoff
        while True:
            pipeline = self._new_pipeline()
            try:
                await pipeline.build()
            except ReplicatorError as error:
                await pipeline.close(drain=False)
                if isinstance(error, FatalError) or loop.time() + delay > deadline:
                    raise
                self.error = str(error)
                log.warning("%s: not built, again in %.2f s: %s", self.label, delay, error)
            except BaseException:
                await pipeline.close(drain=False)
                raise
            else:
                return pipeline
            await asyncio.sleep(delay)
            delay = min(delay * 2, runtime.worker_build_max_backoff)

    def _adopt(self, config: FlowConfig, settings: Settings) -> None:
        self.config, self.settings = config, settings
        self.rules: FlowRules = flow_rules(config, settings)
        self._kept_back = functools.cache(functools.partial(kept_back, rules=self.rules))

    def _new_pipeline(self) -> Pipeline:
        if self._next is not None:
            self._adopt(*self._next)
            self._next = None
        ports = kafka_ports(self.config, self.settings, self.counters)
        return Pipeline(
            self.config,
            self.settings.runtime,
            self.rules,
            ports,
            self.channel.deliver_batches,
            self._resumed,
            self.pace,
        )

    def _failed(self, reason: str) -> None:
        self.counters.flow_failures += 1
        if self.flow_state != "failed" or reason != self.error:
            interval = self.settings.runtime.supervisor_interval
            said = (self.label, interval, reason)
            log.error("%s: failed, built again every %g s: %s", *said, extra={"kind": "failed"})
        self.flow_state, self.error = "failed", reason

    async def _close(self) -> None:
        pipeline, self.pipeline = self.pipeline, None
        if pipeline is not None:
            await self._let_go(pipeline)
            records, size = pipeline.share.carried()
            self.carried = (self.carried[0] + records, self.carried[1] + size)

    async def _let_go(self, pipeline: Pipeline) -> None:
        """Close a pipeline. Whatever a client makes of that, the flow is built anew."""
        try:
            await pipeline.close(drain=True)
        except asyncio.CancelledError:
            if self.flow_state == "draining":
                raise
            log.warning("%s: a client cancelled its own end; the flow is built anew all the same", self.label)
        except Exception:
            log.exception("%s: a client failed when it was closed; the flow is built anew all the same", self.label)

    # -- for operators ------------------------------------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """Whether operators want nothing to be read."""
        return self.control is not None and self.control.paused

    def obey(self, control: Control) -> None:
        """Do what operators want now, as far as it is not done yet.

        A worker that joins sees former wishes pass by; only a newer one than is known counts.
        Paused: reading stops, what is written already is committed, and the tasks stay with this worker.
        """
        before = self.control
        if before is None or control.at <= before.at:
            return
        self.control = control
        self._apply(control)
        if control.paused != before.paused:
            log.warning("%s: %s", self.label, "paused on request" if control.paused else "goes on on request")
        if control.restart != before.restart:
            log.warning("%s: built anew on request", self.label)
            self._asked.set()

    def take_up(self, config: FlowConfig, settings: Settings, *, rebuild: bool) -> None:
        """Go on with another configuration of the flow.

        With `rebuild` the pipeline ends first, with what it has written committed: one goes by one set of rules from
        its beginning to its end.
        """
        self.pace.change(config.limits.bytes_per_second)
        if not rebuild and self._next is None:
            self.config, self.settings = config, settings
            return
        self._next = config, settings
        if rebuild:
            self._asked.set()

    def _apply(self, control: Control) -> None:
        if control.paused:
            self._resumed.clear()
        else:
            self._resumed.set()
        if self.flow_state in ("running", "paused"):
            self.flow_state = "paused" if control.paused else "running"

    def totals(self) -> tuple[int, int]:
        """Return records and bytes that the target acknowledged since the worker started."""
        records, size = self.pipeline.share.carried() if self.pipeline else (0, 0)
        return self.carried[0] + records, self.carried[1] + size

    # -- for the agent ------------------------------------------------------------------------------------------------

    async def owner(self, tp: TopicPartition) -> Task | None:
        """Return the task that carries the partition, or None when it is not ours (any more)."""
        pipeline = self.pipeline
        return None if pipeline is None else await pipeline.share.owner(tp)

    def check_residency(self, topic: str) -> None:
        """Raise ResidencyViolation when a policy keeps the topic from the target."""
        if reason := self._kept_back(topic):
            raise ResidencyViolation(flow=self.config.name, topic=topic, reason=reason)

    def expected(self, task: Task, tp: TopicPartition, batches: Iterable[SourceBatch]) -> Sequence[SourceBatch]:
        """Return those of the batches that continue the partition without a gap or a repeat."""
        pipeline = self.pipeline
        return [] if pipeline is None else pipeline.expected(task, tp, batches)

    def needs_care(self, tp: TopicPartition) -> bool:
        """Tell whether records of the partition were refused, and the flow sets such records aside."""
        pipeline, now = self.pipeline, asyncio.get_running_loop().time()
        return pipeline is not None and pipeline.share.refusals.needs_care(tp, now)

    def read_again(self, tp: TopicPartition, offset: int) -> None:
        """Have what was read of a partition from `offset` on, and not written, read again."""
        if self.pipeline is not None:
            self.pipeline.reader.seek({tp: offset})

    def task_failed(self, task: Task, error: Exception) -> None:
        """Have the task made anew; the flow's other tasks go on."""
        if self.pipeline is not None:
            self.pipeline.share.task_failed(task, error)

    def forwarded(self) -> None:
        """Note that an event was worked through."""
        if self.pipeline is not None:
            self.pipeline.forwarded(more=not self.channel.is_empty())
