"""Reading positions back from the target: a compacted topic, read committed, to the end that counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition as ClientPartition

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin
from app.kafka.clients import aiokafka_options
from app.kafka.reasons import told
from app.kafka.safe_clients import SafeConsumer


async def read_to_end(
    admin: Admin,
    cluster: ClusterConfig,
    runtime: RuntimeConfig,
    topic: str,
    partitions: Iterable[int],
    *,
    decided: bool,
) -> list[tuple[bytes | None, bytes | None]]:
    """Return the (key, value) of every committed record of these partitions, in order within a partition.

    With `decided` the end is the *high watermark* now, not the last stable offset: a transaction of someone else that
    is open in the same partition may lie before records that are committed already, and those must not be missed. So
    this waits until every transaction that was open is decided, at most `transaction_timeout`. Without, it does not
    wait and returns what is readable now.

    Raises:
        ClusterUnavailable: the end was not reached in time.
    """
    wanted = [TopicPartition(topic, partition) for partition in partitions]
    ends = await (admin.high_watermarks(wanted) if decided else admin.stable_offsets(wanted))
    consumer = SafeConsumer(
        **aiokafka_options(cluster, runtime),
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
    )
    try:
        return await asyncio.wait_for(_read(consumer, ends), runtime.transaction_timeout + 10)
    except (KafkaError, OSError, asyncio.TimeoutError) as error:
        raise ClusterUnavailable(alias=admin.alias, detail=f"{topic} is not read to its end: {told(error)}") from error
    finally:
        await consumer.stop()


async def _read(consumer: SafeConsumer, ends: dict[TopicPartition, int]) -> list[tuple[bytes | None, bytes | None]]:
    await consumer.start()
    left = {ClientPartition(*tp): end for tp, end in ends.items() if end > 0}
    if not left:
        return []
    consumer.assign(list(left))
    await consumer.seek_to_beginning()
    records: list[tuple[bytes | None, bytes | None]] = []
    while left:
        for found in (await consumer.getmany(timeout_ms=100)).values():
            records += [(record.key, record.value) for record in found]
        # By position, not by the last record: a log may end in control batches.
        left = {tp: end for tp, end in left.items() if await consumer.position(tp) < end}
    return records
