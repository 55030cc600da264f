"""What a pipeline asks of the outside world. Kafka answers in production, a simulated world in tests/simulation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.config import FlowConfig, Settings
from app.core.formats import Position, parse_position_key
from app.core.records import TopicPartition
from app.core.runs import RUNS_TOPIC, StoredRun
from app.errors import ReplicatorError
from app.kafka.admin import Admin
from app.kafka.batches import SourceBatch
from app.kafka.membership import TaskMembership
from app.kafka.positions import read_to_end
from app.kafka.source import SourceEnd, SourceReader
from app.kafka.writer import AtLeastOnceWriter, ExactlyOnceWriter, TargetWriter
from app.runtime.counters import FlowCounters
from app.runtime.ledger import Bookkeeping, Ledger, runs_of
from app.runtime.task import POSITIONS_TOPIC

OnFailure = Callable[[int, ReplicatorError], None]
OnRevoked = Callable[[], Awaitable[None]]
OnAssigned = Callable[[frozenset[int]], Awaitable[None]]


class Reader(Protocol):
    """See `app.kafka.source.SourceReader`."""

    @property
    def partitions(self) -> frozenset[TopicPartition]: ...  # noqa: D102

    async def start(self) -> None: ...  # noqa: D102

    async def stop(self) -> None: ...  # noqa: D102

    def seek(  # noqa: D102
        self, offsets: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int] | None = None
    ) -> None: ...

    def drop(self, partitions: Iterable[TopicPartition]) -> None: ...  # noqa: D102

    def is_current(self, batch: SourceBatch) -> bool: ...  # noqa: D102

    async def read(self) -> list[SourceBatch]: ...  # noqa: D102

    def position(self, tp: TopicPartition) -> int | None: ...  # noqa: D102

    def end(self, tp: TopicPartition) -> SourceEnd | None: ...  # noqa: D102

    def caught_up(self) -> bool: ...  # noqa: D102


class Membership(Protocol):
    """See `app.kafka.membership.TaskMembership`."""

    async def run(self) -> None: ...  # noqa: D102

    async def stop(self) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The clients of one incarnation of a flow."""

    source_admin: Admin
    target_admin: Admin
    reader: Reader
    make_writer: Callable[[int, OnFailure], TargetWriter]
    make_membership: Callable[[OnRevoked, OnAssigned], Membership]
    read_positions: Callable[..., Awaitable[dict[TopicPartition, Position]]]
    bookkeeping: Bookkeeping | None = None
    counters: FlowCounters = field(default_factory=FlowCounters)


def kafka_ports(config: FlowConfig, settings: Settings, counters: FlowCounters) -> Ports:
    """Return clients of the two real clusters, none of them connected yet."""
    source, target, runtime = settings.clusters[config.source], settings.clusters[config.target], settings.runtime
    target_admin = Admin(config.target, target, runtime)
    kind = ExactlyOnceWriter if config.delivery == "exactly-once" else AtLeastOnceWriter

    async def read_positions(slots: Iterable[int], *, decided: bool) -> dict[TopicPartition, Position]:
        records = await read_to_end(target_admin, target, runtime, POSITIONS_TOPIC, slots, decided=decided)
        return positions_of(config.name, records)

    async def read_runs(slots: Iterable[int]) -> dict[TopicPartition, list[StoredRun]]:
        return runs_of(config.name, await read_to_end(target_admin, target, runtime, RUNS_TOPIC, slots, decided=True))

    syncs = config.core_naming(frozenset(settings.clusters)).syncs_topic
    atomic = config.delivery == "exactly-once"
    return Ports(
        source_admin=Admin(config.source, source, runtime),
        target_admin=target_admin,
        reader=SourceReader(config.source, source, runtime),
        make_writer=lambda number, on_failure: kind(config.name, number, target, runtime, on_failure),
        make_membership=lambda on_revoked, on_assigned: TaskMembership(
            alias=config.target,
            cluster=target,
            runtime=runtime,
            flow=config.name,
            tasks=config.tasks,
            instance_id=settings.group_instance_id,
            on_revoked=on_revoked,
            on_assigned=on_assigned,
        ),
        read_positions=read_positions,
        bookkeeping=Bookkeeping(make_ledger=lambda: Ledger(config.name, syncs, atomic=atomic), read_runs=read_runs),
        counters=counters,
    )


def positions_of(flow: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[TopicPartition, Position]:
    """Return the last position of each partition of a flow; a tombstone takes one away."""
    positions: dict[TopicPartition, Position] = {}
    for key, value in records:
        if key is None:
            continue
        owner, topic, partition = parse_position_key(key)
        if owner != flow:
            continue
        if value is None:
            positions.pop(TopicPartition(topic, partition), None)
        else:
            positions[TopicPartition(topic, partition)] = Position.decode(value)
    return positions
