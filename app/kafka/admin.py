"""Admin work on one cluster, as coroutines over confluent-kafka's AdminClient.

confluent-kafka is used because aiokafka's admin client knows neither incremental configs nor ACLs. What a cluster says
of itself, its topics, logs and groups is asked for through aiokafka (metadata.py, log_offsets.py, group_api.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.core.topics import AlterConfigs, Setting
from app.errors import ClusterUnavailable, TopicNotCreated
from app.kafka.clients import aiokafka_options, confluent_options
from app.kafka.epoch_protocol import OffsetForLeaderEpoch
from app.kafka.group_api import GroupApi
from app.kafka.log_offsets import EARLIEST, LATEST, ask_leaders, log_offsets
from app.kafka.metadata import DENIED, NO_LEADER, UNKNOWN_TOPIC, Metadata, TopicMetadata, ask, too_old
from app.kafka.reasons import told
from app.kafka.settings import edits, setting

#: Names in one request: a describe of thousands of topics in one go outgrows brokers' limits and our time-outs.
DESCRIBE_CHUNK = 500

#: Topics created in one request.
CREATE_CHUNK = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """What a cluster says of a topic: its id (changes when it is re-created) and its number of partitions."""

    name: str
    partitions: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWish:
    """A topic as it is to be created."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class Admin:
    """Admin calls on one cluster. Every call raises `ClusterUnavailable` when the cluster does not answer in time."""

    def __init__(self, alias: str, cluster: ClusterConfig, runtime: RuntimeConfig) -> None:
        self.alias = alias
        self._options = confluent_options(cluster, runtime)
        self._metadata_options = aiokafka_options(cluster, runtime)
        self._timeout = runtime.client_request_timeout
        self._create_timeout = runtime.topic_create_timeout
        self._client: AdminClient | None = None

    @property
    def client(self) -> AdminClient:
        """The client, made at the first call (it starts a thread)."""
        if self._client is None:
            self._client = AdminClient(self._options)
        return self._client

    async def cluster_id(self, timeout: float | None = None) -> str:
        """Return the cluster's own id, the proof of which cluster an address leads to."""
        return (await self._ask([], timeout)).cluster_id

    async def too_old(self) -> list[str]:
        """Return what will not work because the cluster's Kafka is too old."""
        with self._named():
            return await too_old(self._metadata_options, self._timeout)

    async def topics(self) -> dict[str, TopicInfo]:
        """Return every topic the cluster shows us, by name, with topic ids."""
        return _present((await self._ask(None)).topics)

    async def describe(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return those of `names` that exist and that we may see."""
        wanted = list(names)
        return _present((await self._ask(wanted)).topics) if wanted else {}

    async def gone(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of `names` of which the cluster says that they do not exist, not that we may not see them."""
        return await self._answered(names, UNKNOWN_TOPIC)

    async def denied(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of `names` of which the cluster does not even say whether they exist."""
        return await self._answered(names, DENIED)

    async def _answered(self, names: Iterable[str], code: int) -> frozenset[str]:
        """Return those of `names` that the cluster answers with this code."""
        wanted = list(names)
        if not wanted:
            return frozenset()
        return frozenset(topic.name for topic in (await self._ask(wanted)).topics if topic.error_code == code)

    async def _ask(self, topics: Iterable[str] | None, timeout: float | None = None) -> Metadata:
        with self._named():
            return await ask(self._metadata_options, topics, timeout or self._timeout)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except asyncio.TimeoutError as error:
            raise ClusterUnavailable(alias=self.alias, detail="it does not answer") from error
        except (AiokafkaError, OSError) as error:
            raise ClusterUnavailable(alias=self.alias, detail=told(error)) from error

    async def create_topics(self, wishes: Iterable[TopicWish], *, validate_only: bool = False) -> dict[str, str]:
        """Create topics, many in a request, and wait until the controller has them.

        Return the refusals, topic name to reason; a topic that exists already is no refusal. With `validate_only` the
        controller says what it would refuse, and nothing is created.
        """
        wanted = [
            NewTopic(
                w.name, num_partitions=w.partitions, replication_factor=w.replication_factor, config=dict(w.config)
            )
            for w in wishes
        ]
        refusals: dict[str, str] = {}
        for start in range(0, len(wanted), CREATE_CHUNK):
            futures = self.client.create_topics(
                wanted[start : start + CREATE_CHUNK],
                operation_timeout=self._create_timeout,
                request_timeout=self._timeout,
                validate_only=validate_only,
            )
            refusals |= await self._refusals(futures, KafkaError.TOPIC_ALREADY_EXISTS)
        return refusals

    async def topic_settings(self, names: Iterable[str]) -> dict[str, dict[str, Setting] | None]:
        """Return the settings of those of `names` that exist; None for those whose settings we may not see."""
        wanted = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        found: dict[str, dict[str, Setting] | None] = {}
        for start in range(0, len(wanted), DESCRIBE_CHUNK):
            futures = self.client.describe_configs(
                wanted[start : start + DESCRIBE_CHUNK], request_timeout=self._timeout
            )
            for resource, future in futures.items():
                try:
                    entries = await asyncio.wrap_future(future)
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        found[resource.name] = None
                    elif error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise self._unavailable(error.args[0]) from error
                else:
                    found[resource.name] = {name: setting(entry) for name, entry in entries.items()}
        return found

    async def alter_settings(self, changes: Iterable[AlterConfigs]) -> dict[str, str]:
        """Set and remove single settings, all others untouched. Return the refusals, topic name to reason."""
        resources = list(map(edits, changes))
        if not resources:
            return {}
        futures = self.client.incremental_alter_configs(resources, request_timeout=self._timeout)
        return await self._refusals({resource.name: future for resource, future in futures.items()})

    async def delete_topics(self, names: Iterable[str]) -> dict[str, str]:
        """Delete topics. Return the refusals, topic name to reason; a topic that is gone already is no refusal."""
        wanted = list(names)
        if not wanted:
            return {}
        futures = self.client.delete_topics(
            wanted, operation_timeout=self._create_timeout, request_timeout=self._timeout
        )
        return await self._refusals(futures, KafkaError.UNKNOWN_TOPIC_OR_PART)

    async def create_partitions(self, counts: Mapping[str, int]) -> dict[str, str]:
        """Grow topics to the given numbers of partitions. Return the refusals, topic name to reason."""
        if not counts:
            return {}
        wanted = [NewPartitions(name, count) for name, count in counts.items()]
        futures = self.client.create_partitions(
            wanted, operation_timeout=self._create_timeout, request_timeout=self._timeout
        )
        return await self._refusals(futures, KafkaError.INVALID_PARTITIONS)

    async def ensure_topic(self, wish: TopicWish) -> TopicInfo:
        """Create one of our own topics unless it exists, and return it as it is.

        Raises:
            TopicNotCreated: it does not exist and the cluster refuses to create it.
        """
        found = await self.describe([wish.name])
        if wish.name not in found:
            refusals = await self.create_topics([wish])
            if wish.name in refusals:
                raise TopicNotCreated(topic=wish.name, reason=f"{self.alias}: {refusals[wish.name]}")
            found = await self._wait_for(wish.name)
        return found[wish.name]

    async def _wait_for(self, name: str) -> dict[str, TopicInfo]:
        deadline = asyncio.get_running_loop().time() + self._create_timeout
        while asyncio.get_running_loop().time() < deadline:
            found = await self.describe([name])
            if name in found:
                return found
            await asyncio.sleep(0.05)
        raise ClusterUnavailable(alias=self.alias, detail=f"topic {name} was created but does not appear")

    async def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end of each partition's log, open transactions included."""
        return await self._offsets(partitions, LATEST)

    async def stable_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where each partition is readable with read_committed."""
        return await self._offsets(partitions, LATEST, committed=True)

    async def known_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """As `stable_offsets`, without the partitions that have no leader now."""
        return await self._offsets(partitions, LATEST, committed=True, partial=True)

    async def log_starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still holds."""
        return await self._offsets(partitions, EARLIEST)

    async def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """Return the first offset with `timestamp` (ms) or a later one; partitions without one are left out."""
        found = await self._offsets(partitions, timestamp)
        return {tp: offset for tp, offset in found.items() if offset >= 0}

    async def _offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int, *, committed: bool = False, partial: bool = False
    ) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not wanted:
            return {}
        with self._named():
            return await log_offsets(
                self._metadata_options, wanted, timestamp, self._timeout, committed=committed, partial=partial
            )

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where a leader epoch of each partition ends, in the log as it is now; 0 when the epoch is not known.

        What was read under that epoch, and lies at or behind the end, was cut off since.
        """
        if not epochs:
            return {}
        with self._named():
            found = await ask_leaders(
                self._metadata_options,
                epochs,
                self._timeout,
                lambda led: OffsetForLeaderEpoch({tp: epochs[tp] for tp in led}),
                OffsetForLeaderEpoch.rows,
            )
        return {tp: max(0, end) for tp, end in found.items()}

    @property
    def groups(self) -> GroupApi:
        """The cluster's consumer groups."""
        return GroupApi(self.alias, self._metadata_options, self._timeout)

    async def _refusals(self, futures: Mapping[str, Future[Any]], *harmless: int) -> dict[str, str]:
        refusals = {}
        for name, future in futures.items():
            try:
                await asyncio.wrap_future(future)
            except KafkaException as error:
                cause = error.args[0]
                if cause.code() in harmless:
                    continue
                if cause.retriable() or cause.code() in _UNREACHABLE:
                    raise self._unavailable(cause) from error
                refusals[name] = cause.str()
        return refusals

    def _unavailable(self, cause: KafkaError) -> ClusterUnavailable:
        return ClusterUnavailable(alias=self.alias, detail=f"{cause.str().rstrip(' :')} ({cause.name()})")

    def close(self) -> None:
        """Let go of the client; its thread ends when the last reference is gone."""
        with contextlib.suppress(AttributeError):
            self._client = None


def _present(topics: Iterable[TopicMetadata]) -> dict[str, TopicInfo]:
    """Return the topics that exist; one whose leader is being elected does, though its partitions may be unknown."""
    return {
        topic.name: TopicInfo(name=topic.name, partitions=topic.partitions, topic_id=topic.topic_id)
        for topic in topics
        if topic.error_code in (0, NO_LEADER) and topic.partitions
    }


_UNREACHABLE = frozenset(
    (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
)
