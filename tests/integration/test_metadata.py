"""What a cluster says of itself, against what Kafka's other client makes of it."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from app.config import ClusterConfig, RuntimeConfig
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin, TopicInfo
from tests.support.records import create_topic

pytestmark = pytest.mark.integration


def admin_of(bootstrap: str) -> Admin:
    return Admin("x", ClusterConfig(bootstrap=bootstrap), RuntimeConfig())


async def appearing(admin: Admin, name: str) -> TopicInfo:
    """Brokers learn of a topic a moment after the controller created it."""
    while not (found := await admin.describe([name])):
        await asyncio.sleep(0.05)
    return found[name]


async def test_ids_partitions_and_absence(clusters, unique):
    bootstrap, names = clusters.source.bootstrap, [f"one-{unique}", f"two-{unique}"]
    create_topic(bootstrap, names[0], 1)
    create_topic(bootstrap, names[1], 5)
    admin, judge = admin_of(bootstrap), AdminClient({"bootstrap.servers": bootstrap})
    for name in names:
        await appearing(admin, name)
    found = await admin.describe([*names, f"none-{unique}"])
    described = {name: future.result(10) for name, future in judge.describe_topics(TopicCollection(names)).items()}
    assert {name: info.partitions for name, info in found.items()} == {names[0]: 1, names[1]: 5}
    plain = {name: str(topic.topic_id).replace("+", "-").replace("/", "_") for name, topic in described.items()}
    assert {name: info.topic_id for name, info in found.items()} == plain
    assert found.items() <= (await admin.topics()).items()
    assert await admin.gone([*names, f"none-{unique}"]) == {f"none-{unique}"}
    assert await admin.cluster_id() == judge.describe_cluster().result(10).cluster_id


async def test_a_topic_that_is_created_anew_has_another_id(clusters, unique):
    bootstrap, name = clusters.source.bootstrap, f"anew-{unique}"
    admin, judge = admin_of(bootstrap), AdminClient({"bootstrap.servers": bootstrap})
    create_topic(bootstrap, name)
    before = await appearing(admin, name)
    judge.delete_topics([name])[name].result(10)
    while await admin.describe([name]):
        await asyncio.sleep(0.1)
    create_topic(bootstrap, name)
    assert (await appearing(admin, name)).topic_id not in (None, before.topic_id)


async def test_a_cluster_that_is_away_or_not_ready_is_not_available_and_nothing_dies(make_broker, unique):
    """A broker that slept longer than its own session answers without any broker before it is registered again."""
    broker = make_broker()
    broker.start()
    broker.wait_ready()
    admin = admin_of(broker.bootstrap)
    assert await admin.cluster_id()
    broker.pause()
    asked = [asyncio.ensure_future(admin.describe([f"t-{unique}-{n}"])) for n in range(20)]
    with pytest.raises(ClusterUnavailable, match="cluster x is not available: it does not answer"):
        await admin.cluster_id(1)
    await asyncio.sleep(10)
    broker.resume()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert all(answer == {} or isinstance(answer, ClusterUnavailable) for answer in answers)
    while True:
        try:
            assert await admin.cluster_id(5)
            break
        except ClusterUnavailable:
            await asyncio.sleep(0.1)
