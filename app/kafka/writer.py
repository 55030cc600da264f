"""Writing a task's records and positions to the target, at least once or exactly once.

Both writers have one contract:
    A. `write` hands a batch to the producer; `commit(positions)` returns only when every batch written before it and
       the positions are durable on the target, positions never before the records that they cover.
    B. After any failure the writer stays failed: `write` and `commit` raise (those that wait for an answer, too),
       nothing more is sent, and the owner makes a new writer and reads again from the last durable positions.
    C. A partition has one request in flight, as aiokafka's sender keeps it. With two, the first could come before the
       broker leads a topic that was just created, the second be taken whatever its sequence number, and the first be
       refused for ever (KAFKA-15591).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import IllegalOperation, InvalidProducerEpoch, KafkaError, KafkaTimeoutError, ProducerFenced
from aiokafka.structs import RecordMetadata
from aiokafka.structs import TopicPartition as ClientPartition

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.errors import RecordsRefused, TaskFailed, TaskFenced
from app.jobs import end_all
from app.kafka.batches import BATCH_OVERHEAD, TargetBatch
from app.kafka.clients import aiokafka_options
from app.kafka.reasons import told
from app.kafka.refusals import refusal
from app.kafka.safe_clients import SafeProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRecord:
    """A position as a record of the positions topic."""

    topic: str
    slot: int
    key: bytes
    value: bytes


#: What aiokafka's producer raises; assertions and illegal operations when it has failed in the background.
_PRODUCER_ERRORS = (KafkaError, IllegalOperation, AssertionError)

#: A key holds a topic's name and a flow's, a value some numbers: far below a megabyte in all.
_RECORDS_PER_BATCH = 1000

OnFailure = Callable[[int, "TaskFailed | TaskFenced"], None]

#: Asked once everything written is acknowledged: what was learnt from the acknowledgements, to be stored.
Learnt = Callable[[], Iterable[PositionRecord]]


def _nothing() -> Iterable[PositionRecord]:
    return ()


def _ignore(task: int, error: TaskFailed | TaskFenced) -> None:
    """For writers whose owner looks at what `commit` raises."""


class TargetWriter:
    """What both deliveries share: a producer, the batches in flight and the first failure."""

    transactional = False

    def __init__(
        self, flow: str, task: int, cluster: ClusterConfig, runtime: RuntimeConfig, on_failure: OnFailure = _ignore
    ) -> None:
        self.flow = flow
        self.task = task
        self.records = 0
        self.bytes = 0
        self._runtime = runtime
        self._on_failure = on_failure
        self._producer = SafeProducer(**aiokafka_options(cluster, runtime), **self._producer_options())
        self._in_flight: set[asyncio.Future[RecordMetadata]] = set()
        self._bytes_in_flight = 0
        self._room = asyncio.Event()
        self._room.set()
        self.failure: BaseException | None = None
        self._failed_at: TopicPartition | None = None
        self._closed = False
        self._broken = asyncio.Event()

    def _producer_options(self) -> dict[str, Any]:
        return {"enable_idempotence": True, "acks": "all", "linger_ms": 0}

    async def start(self) -> None:
        """Connect and get a producer id; with a transactional id this fences its former owner."""
        try:
            await self._producer.start()
        except (KafkaError, OSError) as error:
            await self.close()
            raise self._named(error) from error

    async def write(
        self, tp: TopicPartition, batch: TargetBatch, places: Iterable[TopicPartition] = ()
    ) -> asyncio.Future[RecordMetadata]:
        """Hand over a filled batch; wait while too many bytes are unacknowledged.

        `places` are where the commit that covers the batch will write what it keeps.

        Raises:
            TaskFenced: another worker owns the task now.
            TaskFailed: anything else that this writer cannot get over.
        """
        return await self._send(tp, batch, fatal=True)

    async def offer(self, tp: TopicPartition, batch: TargetBatch) -> RecordMetadata:
        """Hand over a batch and wait for its acknowledgement; a refusal leaves this writer as it was before.

        Nothing else for the partition may be under way.

        Raises:
            RecordsRefused: the target has none of these records; this writer goes on.
            TaskFenced, TaskFailed: as `write`.
        """
        future = await self._send(tp, batch, fatal=False)
        await self._unless_broken(asyncio.wait({future}))
        if (error := future.exception()) is None:
            return future.result()
        self._check()
        # The sequence numbers of the refused records are free again, and the next batch has to begin with them.
        manager = self._producer._txn_manager
        manager.increment_sequence_number(ClientPartition(*tp), -batch.record_count())
        raise self._named(error, tp)

    async def _send(self, tp: TopicPartition, batch: TargetBatch, *, fatal: bool) -> asyncio.Future[RecordMetadata]:
        await self._room.wait()
        self._check()
        size = batch.full_size
        try:
            future: asyncio.Future[RecordMetadata] = await self._producer.send_batch(
                batch, tp.topic, partition=tp.partition
            )
        except _PRODUCER_ERRORS as error:
            self._fail(error)
            raise self._named(error) from error
        self._in_flight.add(future)
        self._bytes_in_flight += size
        if self._bytes_in_flight >= self._runtime.max_in_flight_bytes:
            self._room.clear()
        records = batch.record_count()
        future.add_done_callback(lambda done: self._acknowledged(tp, done, records, size, fatal=fatal))
        return future

    def _acknowledged(
        self, tp: TopicPartition, future: asyncio.Future[RecordMetadata], records: int, size: int, *, fatal: bool
    ) -> None:
        self._in_flight.discard(future)
        self._bytes_in_flight -= size
        if self._bytes_in_flight < self._runtime.max_in_flight_bytes:
            self._room.set()
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            if fatal or refusal(error) is None:
                self._fail(error, tp)
        else:
            self.records += records
            self.bytes += size

    async def commit(self, positions: Iterable[PositionRecord], learnt: Learnt = _nothing) -> None:
        """Make everything written so far, what was learnt of it, and the positions, durable. Raises as `write`."""
        raise NotImplementedError

    async def prepare(self, learnt: Learnt) -> None:
        """Store what must be known before the first record is written. Raises as `write`."""

    async def _flushed(self) -> None:
        if self._in_flight:
            await self._unless_broken(asyncio.wait(set(self._in_flight)))
        self._check()

    async def _unless_broken(self, work: Awaitable[Any]) -> None:
        """Await the work, or raise as `write` as soon as this writer has failed: some answers never come then."""
        jobs = [asyncio.ensure_future(work), asyncio.ensure_future(self._broken.wait())]
        try:
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            if not jobs[0].done():
                self._check()
            jobs[0].result()
        finally:
            await end_all(jobs)

    async def _send_positions(self, positions: Iterable[PositionRecord]) -> list[asyncio.Future[RecordMetadata]]:
        by_slot: dict[tuple[str, int], list[PositionRecord]] = {}
        for position in positions:
            by_slot.setdefault((position.topic, position.slot), []).append(position)
        futures = []
        for (topic, slot), records in by_slot.items():
            for start in range(0, len(records), _RECORDS_PER_BATCH):
                batch = self._batch_of(records[start : start + _RECORDS_PER_BATCH])
                futures.append(await self._producer.send_batch(batch, topic, partition=slot))
        return futures

    def _batch_of(self, records: Sequence[PositionRecord]) -> TargetBatch:
        size = BATCH_OVERHEAD + sum(len(r.key) + len(r.value) + 40 for r in records)
        batch = TargetBatch(size, 0, transactional=self.transactional)
        for record in records:
            batch.append(timestamp=None, key=record.key, value=record.value)
        return batch

    def _check(self) -> None:
        if self.failure is not None:
            raise self._named(self.failure)

    def _fail(self, error: BaseException | None, tp: TopicPartition | None = None) -> None:
        if self.failure is None and error is not None:
            self.failure, self._failed_at = error, tp
            if not self._closed:
                self._on_failure(self.task, self._named(error))
        self._room.set()
        self._broken.set()

    def _named(self, error: BaseException, at: TopicPartition | None = None) -> TaskFailed | TaskFenced:
        """Return the error in our words; `at` is the partition that an answer was about."""
        if isinstance(error, (ProducerFenced, InvalidProducerEpoch)):
            return TaskFenced(flow=self.flow, task=self.task)
        at = at or (self._failed_at if error is self.failure else None)
        if at is not None and (why := refusal(error)):
            return RecordsRefused(
                flow=self.flow,
                task=self.task,
                **at._asdict(),
                reason=f"{why.reason} ({error})",
                remedy=why.remedy,
                kind=why.kind,
            )
        return TaskFailed(flow=self.flow, task=self.task, reason=told(error))

    async def close(self) -> None:
        """Let go of the producer without waiting for what is in flight: it was committed or will be read again."""
        self._closed = True
        self._fail(IllegalOperation("the writer is closed"))
        await _close(self._producer)


async def _close(producer: SafeProducer) -> None:
    """Close a producer in bounded time: aiokafka's own `stop` waits for acknowledgements that may never come."""
    sender = producer._sender
    producer._closed = True
    if sender is not None and sender.sender_task is not None and not sender.sender_task.done():
        sender.sender_task.cancel()
    with contextlib.suppress(KafkaError, OSError, asyncio.TimeoutError):
        await asyncio.wait_for(producer.client.close(), 2)
    if sender is not None and sender.sender_task is not None:
        await asyncio.wait([sender.sender_task], timeout=2)


class AtLeastOnceWriter(TargetWriter):
    """Idempotent producer; positions follow when the records before them are acknowledged."""

    async def commit(self, positions: Iterable[PositionRecord], learnt: Learnt = _nothing) -> None:
        """Wait for the acknowledgement of what is written, then of what was learnt, then of the positions."""
        await self._flushed()
        await self._store(learnt())
        await self._store(positions)

    async def prepare(self, learnt: Learnt) -> None:
        """Write at once what exactly-once writes with the first commit."""
        await self._store(learnt())

    async def _store(self, records: Iterable[PositionRecord]) -> None:
        try:
            await self._unless_broken(asyncio.gather(*await self._send_positions(records)))
        except _PRODUCER_ERRORS as error:
            self._fail(error)
            raise self._named(error) from error


class ExactlyOnceWriter(TargetWriter):
    """Transactional producer: records and positions become visible together, or not at all."""

    transactional = True

    _open = False
    _deadline: asyncio.TimerHandle | None = None

    def _producer_options(self) -> dict[str, Any]:
        return {
            "transactional_id": transactional_id(self.flow, self.task),
            "transaction_timeout_ms": int(self._runtime.transaction_timeout * 1000),
            "acks": "all",
            "linger_ms": 0,
        }

    async def write(
        self, tp: TopicPartition, batch: TargetBatch, places: Iterable[TopicPartition] = ()
    ) -> asyncio.Future[RecordMetadata]:
        """As the base class. The caller lets no write run beside a commit."""
        await self._join(places)
        return await super().write(tp, batch)

    async def offer(self, tp: TopicPartition, batch: TargetBatch) -> RecordMetadata:
        """As the base class. The caller lets no write run beside a commit."""
        await self._join(())
        return await super().offer(tp, batch)

    async def _join(self, places: Iterable[TopicPartition]) -> None:
        """Have a transaction open that writes to `places`, too."""
        self._check()
        try:
            await self._begin()
            for place in places:  # all partitions of the transaction in one request, instead of one more at the commit
                self._producer._txn_manager.maybe_add_partition_to_txn(ClientPartition(*place))
        except _PRODUCER_ERRORS as error:
            self._fail(error)
            raise self._named(error) from error

    async def _begin(self) -> None:
        if not self._open:
            await self._producer.begin_transaction()
            self._open = True
            self._deadline = asyncio.get_running_loop().call_later(self._runtime.transaction_timeout, self._expired)

    async def commit(self, positions: Iterable[PositionRecord], learnt: Learnt = _nothing) -> None:
        """Add the positions, and what was learnt, to the open transaction and commit it."""
        self._check()
        try:
            await self._begin()
            # aiokafka commits a transaction although one of its batches was refused, so every acknowledgement, the
            # positions' too, is awaited first. Within a transaction their order does not matter.
            await self._flushed()
            await self._unless_broken(asyncio.gather(*await self._send_positions([*positions, *learnt()])))
            await self._unless_broken(self._producer.commit_transaction())
        except _PRODUCER_ERRORS as error:
            self._fail(error)
            raise self._named(error) from error
        self._end()

    def _named(self, error: BaseException, at: TopicPartition | None = None) -> TaskFailed | TaskFenced:
        """As the base class; what the producer learnt in the background comes before what followed from it."""
        manager = self._producer._txn_manager
        if manager is not None and manager.is_fatal_error():
            error = manager.wait_for_transaction_end().exception() or error
        return super()._named(error, at)

    def _end(self) -> None:
        self._open = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expired(self) -> None:
        seconds = self._runtime.transaction_timeout
        self._fail(KafkaTimeoutError(f"not committed in {seconds:g} s, so the target aborts it (transaction_timeout)"))

    async def close(self) -> None:
        """As the base class; an open transaction is aborted, so that its records hold no reader back."""
        self._closed = True
        if self._open and self.failure is None:
            with contextlib.suppress(*_PRODUCER_ERRORS, asyncio.TimeoutError):
                await asyncio.wait_for(self._producer.abort_transaction(), 1)
        self._end()
        await super().close()


def transactional_id(flow: str, task: int) -> str:
    """Return the id that fences: one owner at a time for each task of a flow (design contract)."""
    return f"krabka-replicator-{flow}-{task}"
