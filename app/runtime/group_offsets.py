"""Where the groups of a flow's source are, and where they would go on: what the last complete round found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from app.core.records import TopicPartition
from app.kafka.group_api import Committed
from app.runtime.translator import Translated

#: Partitions of groups that are kept to be shown. The status document is asked for every few seconds.
SHOWN = 500

Answers = Mapping[str, Sequence[tuple[TopicPartition, Translated, Committed]]]
Due = Mapping[str, Mapping[TopicPartition, Committed]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets:
    """How many groups and partitions are translated, and the first of them by name."""

    groups: int = 0
    partitions: int = 0
    first: tuple[dict[str, Any], ...] = field(default=())

    @classmethod
    def of(cls, answers: Answers, due: Due) -> GroupOffsets:
        """Take a round: what was translated of each group, and what of it has a place on the target."""
        return cls(
            groups=sum(map(bool, due.values())),
            partitions=sum(map(len, due.values())),
            first=tuple(islice(_rows(answers, due), SHOWN)),
        )


def _rows(answers: Answers, due: Due) -> Iterator[dict[str, Any]]:
    for group in sorted(due):
        for source, answer, committed in sorted(answers[group], key=lambda found: found[0]):
            if (there := due[group].get(answer.target)) is None:
                continue
            yield {
                "group": group,
                "topic": source.topic,
                "partition": source.partition,
                "source_offset": committed.offset,
                "target_topic": answer.target.topic,
                "target_offset": there.offset,
                "exact": answer.exact,
            }
