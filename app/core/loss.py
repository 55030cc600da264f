"""Where a partition goes on, and what was lost before it could be copied. Nothing is ever passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.core.formats import Position
from app.core.runs import Run

Kind = Literal["recreated", "target-emptied", "expired", "truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the clusters say of a partition now: where it begins and ends on the source, and where its copy ends.

    `epoch_end` is where the position's leader epoch ends in the source's log, `newest` the last run of copies. What is
    not known is None.
    """

    topic_id: str | None
    target_id: str | None = None
    start: int
    end: int
    target_end: int
    epoch_end: int | None = None
    newest: Run | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What is missing: offsets `first` to `last` of the source (None: unknown), and the offset `resume` to go on at."""

    topic: str
    partition: int
    kind: Kind
    first: int
    last: int | None
    resume: int

    @property
    def reason(self) -> str:
        """One sentence for people, without the place."""
        match self.kind:
            case "recreated":
                return (
                    f"the source topic was created anew; what the former one held from offset {self.first} on is gone"
                )
            case "target-emptied":
                if self.last is not None and self.last < self.first:
                    return "the target lost its copies, and the source holds none of these records any more"
                return f"the target lost copies of offsets {self.first} to {self.last}; they are copied again"
            case "expired":
                return f"offsets {self.first} to {self.last} are gone from the source before they were copied"
            case "truncated":
                return (
                    f"the source lost offsets {self.first} to {self.last} after they were copied; what it holds is "
                    f"copied again"
                )

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.reason}; it goes on at offset {self.resume}"


def judge(topic: str, partition: int, position: Position, seen: Seen) -> Loss | None:
    """Return what was lost behind the stored position; None when it can simply be gone on from."""
    found = list(_losses(topic, partition, position, seen))
    return min(found, key=lambda loss: loss.resume) if found else None


def _losses(topic: str, partition: int, position: Position, seen: Seen) -> Iterator[Loss]:
    """Yield every loss; whoever goes on at the smallest offset passes over nothing."""

    def loss(kind: Kind, first: int, last: int | None, resume: int) -> Loss:
        return Loss(topic=topic, partition=partition, kind=kind, first=first, last=last, resume=resume)

    last = position.offset - 1
    if _another(position.topic_id, seen.topic_id):
        yield loss("recreated", position.offset, None, seen.start)
        return
    if _another(position.target_id, seen.target_id):
        # Whatever the topic of that name holds now, nothing of it was copied by this flow.
        yield loss("target-emptied", seen.start, last, seen.start)
    elif seen.newest is not None and seen.target_end < seen.newest.downstream_end:
        resume = max(seen.start, _upstream(seen.newest, seen.target_end))
        yield loss("target-emptied", resume, last, resume)
    if seen.epoch_end is not None and seen.epoch_end < position.offset:
        yield loss("truncated", seen.epoch_end, last, max(seen.start, seen.epoch_end))
    elif position.offset > seen.end:
        # How far back the source went before it grew again is not known: only from its start nothing is missed.
        yield loss("truncated", seen.end, last, seen.start)
    if position.offset < seen.start:
        yield loss("expired", position.offset, seen.start - 1, seen.start)


def _another(known: str | None, present: str | None) -> bool:
    return None not in (known, present) and known != present


def _upstream(newest: Run, target_end: int) -> int:
    """Return the source offset whose copy is the first that is missing, 0 when it lies before the newest run."""
    return newest.upstream + target_end - newest.downstream if target_end >= newest.downstream else 0
