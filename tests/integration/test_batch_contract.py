"""What app/kafka/batches.py relies on in aiokafka: whole batches, the fetcher's own handling of the rest intact."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.structs import TopicPartition as ClientPartition
from confluent_kafka import Producer

from app.kafka.batches import BatchConsumer, SourceBatch, TargetBatch
from app.kafka.safe_clients import SafeConsumer, SafeProducer
from tests.support.records import create_topic, end_offsets, produce, read_all, topics

pytestmark = pytest.mark.integration


async def read_batches(bootstrap: str, topic: str, start: int, end: int) -> list[SourceBatch]:
    consumer = BatchConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="none",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        tp = ClientPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek(tp, start)
        batches: list[SourceBatch] = []
        for _ in range(100):
            for found in (await consumer.getmany(timeout_ms=100)).values():
                batches += found
            if await consumer.position(tp) >= end:
                return batches
        raise AssertionError(f"position {await consumer.position(tp)} of {end}")
    finally:
        await consumer.stop()


def transact(bootstrap: str, topic: str, name: str, values: list[bytes], *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(20)
    (producer.commit_transaction if commit else producer.abort_transaction)(20)


def values(batches: list[SourceBatch], start: int = 0) -> list[Any]:
    return [record.value for b in batches if b.batch is not None for record in b.batch if record.offset >= start]


async def test_batches_touch_and_aborted_and_control_batches_count_as_progress(clusters, unique):
    bootstrap, topic = clusters.source.bootstrap, f"contract-{unique}"
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [{"value": b"plain", "partition": 0}])
    transact(bootstrap, topic, f"a-{unique}", [b"gone1", b"gone2"], commit=False)
    transact(bootstrap, topic, f"b-{unique}", [b"kept"], commit=True)
    transact(bootstrap, topic, f"c-{unique}", [b"gone3"], commit=False)
    end = end_offsets(bootstrap, topic)[0]

    batches = await read_batches(bootstrap, topic, 0, end)

    assert values(batches) == [b"plain", b"kept"]
    assert batches[0].start == 0
    assert batches[-1].next_offset == end
    assert [b.start for b in batches[1:]] == [b.next_offset for b in batches[:-1]]


async def test_a_position_inside_a_batch_gives_the_rest_of_it(clusters, unique):
    bootstrap, topic = clusters.source.bootstrap, f"inside-{unique}"
    create_topic(bootstrap, topic)
    producer = SafeProducer(bootstrap_servers=bootstrap)
    await producer.start()
    batch = TargetBatch(4096, 0, transactional=False)
    for number in range(10):
        batch.append(timestamp=1000 + number, key=None, value=b"%d" % number)
    await (await producer.send_batch(batch, topic, partition=0))
    await producer.stop()

    (found,) = await read_batches(bootstrap, topic, 4, 10)

    assert (found.start, found.next_offset) == (4, 10)
    copy = TargetBatch(4096, 0, transactional=False)
    assert copy.fill(found.batch, found.start, ("origin", b"x")) is None
    assert copy.record_count() == 6


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_codec_null_and_empty_survive_filling_and_writing(clusters, unique, codec):
    bootstrap, topic, copy = clusters.source.bootstrap, f"fill-{unique}", f"filled-{unique}"
    for name in (topic, copy):
        create_topic(bootstrap, name)
    originals = [{"key": None, "value": None}, {"key": b"", "value": b""}, {"key": b"k", "value": b"v" * 3000}]
    produce(
        bootstrap, topic, [o | {"partition": 0, "timestamp": 1000} for o in originals], **{"compression.type": codec}
    )
    batches = await read_batches(bootstrap, topic, 0, 3)
    producer = SafeProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    for source in batches:
        target = TargetBatch(8192, source.codec, transactional=False)
        target.fill(source.batch, source.start, ("origin", b"x"))
        await (await producer.send_batch(target, copy, partition=0))
    await producer.stop()

    copied = read_all(bootstrap, copy)
    assert [(r.key, r.value) for r in copied] == [(o["key"], o["value"]) for o in originals]
    assert {r.headers for r in copied} == {(("origin", b"x"),)}
    assert {r.timestamp for r in copied} == {1000}
    assert {b.codec for b in await read_batches(bootstrap, copy, 0, 3)} == {b.codec for b in batches}


async def test_asking_for_a_topic_does_not_create_it(make_broker):
    broker = make_broker(auto_create_topics_enable="true")
    broker.start()
    broker.wait_ready()
    consumer = BatchConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none", enable_auto_commit=False)
    await consumer.start()
    tp = ClientPartition("never-made", 0)
    consumer.assign([tp])
    consumer.seek(tp, 0)
    await consumer.getmany(timeout_ms=1500)
    await consumer.stop()
    producer = SafeProducer(bootstrap_servers=broker.bootstrap, request_timeout_ms=1500)
    await producer.start()
    batch = TargetBatch(1024, 0, transactional=False)
    batch.append(timestamp=None, key=None, value=b"x")
    with pytest.raises(Exception, match="UnknownTopic"):
        await producer.send_batch(batch, "never-made", partition=0)
    await producer.stop()
    assert "never-made" not in topics(broker.bootstrap)


@pytest.mark.parametrize("kind", [SafeConsumer, BatchConsumer])
async def test_a_consumer_may_be_stopped_right_after_its_start(clusters, kind):
    consumer = kind(bootstrap_servers=clusters.source.bootstrap)
    await consumer.start()
    await consumer.stop()


async def test_a_topic_that_was_known_already_is_not_forgotten_when_another_one_is_added(clusters, unique):
    bootstrap, known, added = clusters.source.bootstrap, f"known-{unique}", f"added-{unique}"
    create_topic(bootstrap, known)
    producer = SafeProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        await producer.client.force_metadata_update()  # tracks no topic yet, so it looks at all
        assert await producer.partitions_for(known) == {0}
        create_topic(bootstrap, added)
        assert await producer.partitions_for(added) == {0}
        await producer.client.force_metadata_update()
        assert producer.client.cluster.leader_for_partition(ClientPartition(known, 0)) == 1
    finally:
        await producer.stop()
