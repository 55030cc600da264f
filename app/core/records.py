"""Names for what flows through the replicator."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic; equal to every client's own type of the same two fields."""

    topic: str
    partition: int
