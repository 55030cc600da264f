"""The agent's last gate before a record leaves for the target."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock

from agents.replicate import replicator
from app.core.records import TopicPartition
from app.errors import ResidencyViolation
from app.kafka.batches import SourceBatch


async def test_a_record_that_selection_should_have_kept_back_is_not_written():
    tp = TopicPartition("secret", 0)
    failures: list[Exception] = []
    task = SimpleNamespace(turn=asyncio.Lock(), routes={tp: SimpleNamespace()}, write=AsyncMock(), advance=AsyncMock())

    def refuse(topic):
        raise ResidencyViolation(flow="a__b", topic=topic, reason="policy 'gdpr' denies the zone us")

    flow = SimpleNamespace(
        config=SimpleNamespace(name="a__b", source="a", target="b"),
        owner=AsyncMock(return_value=task),
        expected=lambda task, tp, batches: list(batches),
        check_residency=refuse,
        needs_care=lambda tp: False,
        read_again=AsyncMock(),
        task_failed=lambda task, error: failures.append(error),
        forwarded=lambda: None,
    )

    async def stream():
        yield [SourceBatch(tp, 0, 1, None, 10)]

    await replicator(flow)(stream())

    (failure,) = failures
    assert isinstance(failure, ResidencyViolation)
    assert str(failure).startswith("a__b: a record of secret was about to be written although policy 'gdpr' denies")
    task.write.assert_not_called()
    task.advance.assert_not_called()
