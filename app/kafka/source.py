"""Reading a flow's source: whole batches of exactly the partitions it was told to read, from where it was told."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka.errors import KafkaError, OffsetOutOfRangeError, TopicAuthorizationFailedError
from aiokafka.structs import TopicPartition as ClientPartition

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.batches import BatchConsumer, SourceBatch
from app.kafka.clients import aiokafka_options
from app.kafka.formats import NO_EPOCH
from app.kafka.reasons import told

#: Numbers of seeks, over all readers of the process: a batch of a reader that was closed is never taken for current.
_EPOCHS = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEnd:
    """Where a partition ends: `readable` for a read_committed reader, `written` with open transactions."""

    readable: int
    written: int


class PositionsOutOfRange(Exception):
    """The source does not hold these positions (any more); `positions` maps partition to position."""

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        super().__init__(positions)
        self.positions = positions


class TopicDenied(Exception):
    """The source does not let us read `topic`."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic


class SourceReader:
    """Reads batches of an explicitly assigned set of partitions with read_committed.

    Invariants:
        A. Between two `seek`s of a partition its batches touch: each starts where the one before ended.
        B. A batch carries the `epoch` of the last `seek` before it was read, so that what was read earlier is known
           to be stale.
    """

    def __init__(self, alias: str, cluster: ClusterConfig, runtime: RuntimeConfig) -> None:
        self.alias = alias
        self._consumer = BatchConsumer(
            **aiokafka_options(cluster, runtime),
            enable_auto_commit=False,
            isolation_level="read_committed",
            # Where to start is always sought explicitly. A position that no longer exists must be noticed, not moved.
            auto_offset_reset="none",
            fetch_max_wait_ms=int(runtime.source_poll_timeout * 1000),
            fetch_max_bytes=min(runtime.client_frame_max, runtime.fetch_max_bytes),
            max_partition_fetch_bytes=1 << 20,
        )
        self._poll_timeout_ms = int(runtime.source_poll_timeout * 1000)
        self._next: dict[TopicPartition, int] = {}
        self._epoch: dict[TopicPartition, int] = {}
        self._leader_epoch: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, SourceEnd] = {}

    async def start(self) -> None:
        """Connect. Raises `ClusterUnavailable`."""
        try:
            await self._consumer.start()
        except (KafkaError, OSError) as error:
            await self._consumer.stop()
            raise ClusterUnavailable(alias=self.alias, detail=told(error)) from error

    async def stop(self) -> None:
        """Disconnect."""
        with contextlib.suppress(KafkaError, asyncio.TimeoutError):
            await asyncio.wait_for(self._consumer.stop(), 3)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is being read."""
        return frozenset(self._next)

    def seek(
        self, offsets: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Read these partitions from these offsets on, in addition to the others; batches read before are stale.

        `leader_epochs` are those of the records before the offsets, as far as they are known.
        """
        epoch = next(_EPOCHS)
        for tp, offset in offsets.items():
            self._epoch[tp] = epoch
            self._next[tp] = offset
            self._leader_epoch[tp] = (leader_epochs or {}).get(tp, NO_EPOCH)
        self._assign()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions."""
        gone = [tp for tp in partitions if self._next.pop(tp, None) is not None]
        for tp in gone:
            del self._epoch[tp], self._leader_epoch[tp]
            self._ends.pop(tp, None)
        if gone:
            self._assign()

    def _assign(self) -> None:
        # aiokafka replaces the whole assignment: partitions that stay are sought to where their last batch ended.
        if not self._next:
            self._consumer.unsubscribe()
            return
        self._consumer.assign([ClientPartition(*tp) for tp in self._next])
        for tp, offset in self._next.items():
            self._consumer.seek(ClientPartition(*tp), offset)

    def is_current(self, batch: SourceBatch) -> bool:
        """Tell whether the batch was read after its partition's last `seek`."""
        return self._epoch.get(batch.tp) == batch.epoch

    async def read(self) -> list[SourceBatch]:
        """Return the batches that came in, at most one poll's worth; empty when nothing came within the poll time-out.

        Raises:
            PositionsOutOfRange: what was read before is complete; these partitions wait for a `seek`.
            TopicDenied: what was read before is complete; the topic's partitions are to be dropped.
            ClusterUnavailable: reading is refused or failed for good.
        """
        try:
            polled = await self._consumer.getmany(timeout_ms=self._poll_timeout_ms)
        except OffsetOutOfRangeError as error:
            positions = {TopicPartition(*tp): offset for tp, offset in error.args[0].items()}
            raise PositionsOutOfRange(positions) from error
        except TopicAuthorizationFailedError as error:
            raise TopicDenied(str(error.args[0])) from error
        except KafkaError as error:
            raise ClusterUnavailable(alias=self.alias, detail=told(error)) from error
        batches = []
        for client_tp, found in polled.items():
            tp = TopicPartition(*client_tp)
            if tp not in self._next:
                continue
            epoch = self._epoch[tp]
            leader_epoch = self._leader_epoch[tp]
            for batch in found:
                batch.tp = tp
                batch.epoch = epoch
                if batch.leader_epoch != leader_epoch:
                    batch.follows_epoch, leader_epoch = leader_epoch, batch.leader_epoch
            self._leader_epoch[tp] = leader_epoch
            self._next[tp] = found[-1].next_offset
            batches += found
        return batches

    def position(self, tp: TopicPartition) -> int | None:
        """Return where the next batch of a partition will start, None when it is not read."""
        return self._next.get(tp)

    def end(self, tp: TopicPartition) -> SourceEnd | None:
        """Return the partition's end as of the last fetch, or None before the first."""
        client_tp = ClientPartition(*tp)
        if tp not in self._next:
            return None
        written = self._consumer.highwater(client_tp)
        if written is not None:
            readable = self._consumer.last_stable_offset(client_tp)
            unknown = readable is None or readable < 0
            self._ends[tp] = SourceEnd(readable=written if unknown else readable, written=written)
        return self._ends.get(tp)  # aiokafka forgets the ends when the assignment changes

    def caught_up(self) -> bool:
        """Tell whether everything readable, as of the last fetches, has been read."""
        ends = ((self.end(tp), offset) for tp, offset in self._next.items())
        return all(end is not None and offset >= end.readable for end, offset in ends)
