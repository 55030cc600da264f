"""Holds what a worker reads of a flow back to its part of the flow's limit, before any of it reaches a task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain, groupby, zip_longest
from operator import attrgetter
from typing import Any

from app.core.limits import TokenBucket
from app.kafka.batches import SourceBatch

#: Batches are let through in groups, so that small ones do not come one by one; and a change is seen this soon.
SHORTEST, LONGEST = 0.05, 0.1

#: Seconds after a wait for which a flow counts as held back.
RECENTLY = 2.0


class Pace:
    """The limit of one flow on this worker. It outlives the flow's pipelines, so that a failure is no way around it."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.waited = 0.0
        self._part = 1.0
        self._bucket: TokenBucket | None = None
        self._waited_at: float | None = None

    @property
    def here(self) -> float | None:
        """Bytes per second that this worker may carry."""
        return None if self.limit is None else self.limit * self._part

    def change(self, limit: int | None) -> None:
        """Set the limit of the whole flow."""
        self.limit = limit
        self._apply()

    def share(self, part: float) -> None:
        """Set the worker's part of the limit, more than 0 and at most 1."""
        self._part = part
        self._apply()

    def _apply(self) -> None:
        if self.here is None:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = TokenBucket(self.here, _now())
        elif self._bucket.rate != self.here:
            self._bucket.change(self.here, _now())

    @property
    def held_back(self) -> bool:
        """Whether the limit made something wait just now."""
        return self.limit is not None and self._waited_at is not None and _now() - self._waited_at < RECENTLY

    def order(self, batches: Sequence[SourceBatch]) -> list[SourceBatch]:
        """Deal batches that will have to wait: one of each partition in turn, so that none waits for all of another."""
        if self._limiter() is None:
            return list(batches)
        by_partition = [list(group) for _, group in groupby(batches, key=attrgetter("tp"))]
        return [batch for batch in chain.from_iterable(zip_longest(*by_partition)) if batch is not None]

    def ready(self, batches: Iterable[SourceBatch]) -> int:
        """Return how many of the first batches may go on now; they count as gone."""
        bucket, count, now = self._limiter(), 0, _now()
        for batch in batches:
            if bucket is not None and not bucket.take(batch.size, now):
                break
            count += 1
        return count

    async def wait(self, batch: SourceBatch) -> None:
        """Wait until the batch may go on, or for a moment in which other things may have changed."""
        if (bucket := self._limiter()) is None:
            return
        begun = self._waited_at = _now()
        await asyncio.sleep(min(max(bucket.delay(batch.size, begun), SHORTEST), LONGEST))
        self.waited += _now() - begun

    def _limiter(self) -> TokenBucket | None:
        if self.limit is not None and self._bucket is None:
            self._apply()
        return self._bucket

    def document(self) -> dict[str, Any] | None:
        """Return what `/status` says of the limit; None when there is none."""
        if self.here is None:
            return None
        return {
            "bytes_per_second": self.limit,
            "here": round(self.here),
            "held_back": self.held_back,
            "waited_seconds": round(self.waited, 3),
        }


def _now() -> float:
    return asyncio.get_running_loop().time()
