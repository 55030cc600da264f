"""Group checkpoints: a table over `<source>.checkpoints.internal`, in MM2's bytes.

Not a Faust GlobalTable: MM2 with exactly-once support writes this topic in transactions, so that on a target that MM2
fed before, the topic ends in a marker, and Faust's recovery would wait for it for ever, heartbeats and all; nor may one
malformed record of another writer keep the table from loading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.core.formats import Checkpoint
from app.core.records import TopicPartition

Key = tuple[str, str, int]


class Checkpoints:
    """The last checkpoint of each group and target partition."""

    def __init__(self) -> None:
        self._last: dict[Key, Checkpoint] = {}

    def __len__(self) -> int:
        return len(self._last)

    def learn(self, key: bytes, value: bytes | None) -> None:
        """Take a record of the topic. Raises ValueError when it is not a checkpoint."""
        if value is not None:
            self.keep([Checkpoint.decode(key, value)])

    def keep(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Take checkpoints that are durable."""
        for checkpoint in checkpoints:
            self._last[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint

    def is_news(self, checkpoint: Checkpoint) -> bool:
        """MM2's rule: forwards on the target, or backwards because the group went back on the source."""
        last = self._last.get((checkpoint.group, checkpoint.topic, checkpoint.partition))
        return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream

    def of_group(self, group: str) -> Iterator[tuple[TopicPartition, Checkpoint]]:
        """Yield a group's checkpoints with the target partitions they are for."""
        for (owner, topic, partition), checkpoint in self._last.items():
            if owner == group:
                yield TopicPartition(topic, partition), checkpoint
