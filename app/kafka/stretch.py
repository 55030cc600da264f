"""Reading a stretch of one partition record by record, with read_committed, and nothing else of the cluster."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from aiokafka.structs import TopicPartition as ClientPartition

from app.config import ClusterConfig, RuntimeConfig
from app.core.records import TopicPartition
from app.core.verify_records import Record
from app.errors import ClusterUnavailable
from app.kafka.clients import aiokafka_options
from app.kafka.safe_clients import SafeConsumer

#: Records taken at once.
CHUNK = 5000


class StretchCut(ClusterUnavailable):
    """The log lost what was to be read next, as to retention."""


class StretchReader:
    """Reads one stretch after the other. Every call raises `ClusterUnavailable` when the cluster does not answer."""

    def __init__(self, alias: str, cluster: ClusterConfig, runtime: RuntimeConfig) -> None:
        self._alias = alias
        self._patience = 2 * runtime.client_request_timeout
        self._consumer = SafeConsumer(
            **aiokafka_options(cluster, runtime),
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="none",
            fetch_max_wait_ms=50,
        )
        self._tp = ClientPartition("", 0)
        self._end = 0
        self._at_end = True

    async def start(self) -> None:
        """Connect."""
        try:
            await self._consumer.start()
        except (KafkaError, OSError) as error:
            raise ClusterUnavailable(alias=self._alias, detail=str(error)) from error

    async def stop(self) -> None:
        """Disconnect."""
        with contextlib.suppress(KafkaError, asyncio.TimeoutError):
            await asyncio.wait_for(self._consumer.stop(), 3)

    def open(self, tp: TopicPartition, start: int, end: int) -> None:
        """Turn to the records from `start` to before `end`, which has to be readable."""
        self._tp, self._end = ClientPartition(*tp), max(start, end)
        self._at_end = start >= end
        if self._at_end:
            self._consumer.unsubscribe()
            return
        self._consumer.assign([self._tp])
        self._consumer.seek(self._tp, start)

    async def read(self) -> list[Record]:
        """Return the next records, none at the end. Raises `StretchCut` when they are gone."""
        try:
            return await asyncio.wait_for(self._read(), self._patience)
        except OffsetOutOfRangeError as error:
            raise StretchCut(alias=self._alias, detail=f"{self._place} lost what was to be read next") from error
        except (KafkaError, OSError, asyncio.TimeoutError) as error:
            detail = str(error) or f"{self._place} could not be read on ({type(error).__name__})"
            raise ClusterUnavailable(alias=self._alias, detail=detail) from error

    async def _read(self) -> list[Record]:
        while not self._at_end:
            found = (await self._consumer.getmany(timeout_ms=200, max_records=CHUNK)).get(self._tp, [])
            # By position, not by the last record: a log may end in control batches.
            self._at_end = await self._consumer.position(self._tp) >= self._end
            if records := [_record(r) for r in found if r.offset < self._end]:
                return records
        return []

    @property
    def _place(self) -> str:
        return f"{self._tp.topic}-{self._tp.partition}"


def _record(record: Any) -> Record:
    return Record(record.offset, record.key, record.value, record.timestamp, tuple(record.headers))
