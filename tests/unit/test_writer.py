"""What the writers make of a producer that fails, is fenced or never answers (failures.md B23)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.errors import TaskFailed, TaskFenced
from app.kafka import writer as module
from app.kafka.batches import TargetBatch
from app.kafka.writer import AtLeastOnceWriter, ExactlyOnceWriter, PositionRecord, TargetWriter, transactional_id

TP = TopicPartition("a.t", 0)
POSITION = PositionRecord(topic="positions", slot=3, key=b"k", value=b"v")
KINDS = pytest.mark.parametrize("kind", [AtLeastOnceWriter, ExactlyOnceWriter])


class FakeProducer:
    """Acknowledges what `acknowledge` says: an exception, a result, or (None) nothing ever."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.acknowledge: Any = SimpleNamespace(offset=0)
        self.commit_hangs = False
        self.fatal: Exception | None = None
        self.sent: list[str] = []
        self.committed = 0
        self.client = SimpleNamespace(close=self._close)
        self._sender = None
        self._txn_manager = SimpleNamespace(
            is_fatal_error=lambda: self.fatal is not None,
            wait_for_transaction_end=lambda: SimpleNamespace(exception=lambda: self.fatal),
            maybe_add_partition_to_txn=lambda tp: None,
        )

    async def _close(self) -> None:
        pass

    async def begin_transaction(self) -> None:
        pass

    async def commit_transaction(self) -> None:
        if self.commit_hangs:
            await asyncio.Event().wait()
        self.committed += 1

    async def abort_transaction(self) -> None:
        pass

    async def send_batch(self, batch: Any, topic: str, partition: int) -> asyncio.Future[Any]:
        if self.fatal is not None:
            raise errors.IllegalOperation("Can't send messages while not in transaction")
        self.sent.append(topic)
        future = asyncio.get_running_loop().create_future()
        if isinstance(self.acknowledge, Exception):
            future.set_exception(self.acknowledge)
        elif self.acknowledge is not None:
            future.set_result(self.acknowledge)
        return future


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(module, "SafeProducer", FakeProducer)
    failures: list[Exception] = []

    def build(kind: type[TargetWriter]) -> tuple[TargetWriter, Any, list[Exception]]:
        runtime = RuntimeConfig.model_validate({"transaction_timeout": "200ms"})
        cluster = ClusterConfig(bootstrap="127.0.0.1:1")
        writer = kind("a__b", 5, cluster, runtime, lambda task, error: failures.append(error))
        return writer, writer._producer, failures

    return build


def batch(writer: TargetWriter) -> TargetBatch:
    filled = TargetBatch(1000, 0, transactional=writer.transactional)
    filled.append(timestamp=1, key=b"k", value=b"v")
    return filled


@KINDS
async def test_a_commit_covers_what_was_written_and_the_positions(make, kind):
    writer, producer, failures = make(kind)
    await writer.write(TP, batch(writer))
    await writer.commit([POSITION])
    assert producer.sent == ["a.t", "positions"]
    assert producer.committed == (kind is ExactlyOnceWriter)
    assert (writer.records, failures) == (1, [])
    await writer.close()


@KINDS
@pytest.mark.parametrize(
    "error",
    [errors.InvalidProducerIdMapping(), errors.UnknownProducerId(), errors.OutOfOrderSequenceNumber()],
    ids=lambda error: type(error).__name__,
)
async def test_what_the_target_no_longer_knows_ends_the_writer_once(make, kind, error):
    writer, producer, failures = make(kind)
    producer.acknowledge = error
    await writer.write(TP, batch(writer))
    with pytest.raises(TaskFailed, match="task 5"):
        await writer.commit([POSITION])
    with pytest.raises(TaskFailed):
        await writer.write(TP, batch(writer))
    with pytest.raises(TaskFailed):
        await writer.commit([POSITION])
    assert producer.sent == ["a.t"], "no position is written behind a failed record"
    assert producer.committed == 0
    assert len(failures) == 1


@pytest.mark.parametrize("error", [errors.ProducerFenced(), errors.InvalidProducerEpoch()])
async def test_a_fenced_writer_says_so(make, error):
    writer, producer, failures = make(ExactlyOnceWriter)
    producer.acknowledge = error
    await writer.write(TP, batch(writer))
    with pytest.raises(TaskFenced):
        await writer.commit([POSITION])
    assert [type(failure) for failure in failures] == [TaskFenced]


async def test_what_was_learnt_in_the_background_is_the_reason(make):
    writer, producer, failures = make(ExactlyOnceWriter)
    producer.fatal = errors.ProducerFenced()
    with pytest.raises(TaskFenced):
        await writer.write(TP, batch(writer))
    assert [type(failure) for failure in failures] == [TaskFenced]


@pytest.mark.parametrize("what", ["acknowledgement", "commit"])
async def test_a_transaction_without_an_answer_fails_when_the_target_aborts_it(make, what):
    """Such as CONCURRENT_TRANSACTIONS for ever, which the client retries without a word."""
    writer, producer, failures = make(ExactlyOnceWriter)
    producer.acknowledge = None if what == "acknowledgement" else producer.acknowledge
    producer.commit_hangs = what == "commit"
    await writer.write(TP, batch(writer))
    with pytest.raises(TaskFailed, match=r"not committed in 0\.2 s, so the target aborts it \(transaction_timeout\)"):
        await asyncio.wait_for(writer.commit([POSITION]), 10)
    assert len(failures) == 1


async def test_a_writer_that_is_closed_lets_go_of_who_waits(make):
    writer, producer, failures = make(AtLeastOnceWriter)
    producer.acknowledge = None
    await writer.write(TP, batch(writer))
    commit = asyncio.ensure_future(writer.commit([POSITION]))
    await asyncio.sleep(0.01)
    assert not commit.done()
    await writer.close()
    with pytest.raises(TaskFailed, match="closed"):
        await asyncio.wait_for(commit, 10)
    assert failures == [], "who closes a writer knows"


def test_transactional_ids_name_application_flow_and_task():
    assert transactional_id("us__eu", 7) == "krabka-replicator-us__eu-7"
    assert len({transactional_id(flow, task) for flow in ("a__b", "c__b") for task in range(8)}) == 16
