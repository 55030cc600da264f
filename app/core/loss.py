"""Where a partition goes on, and what was lost before it could be copied. Nothing is ever passed over in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.core.formats import Position
from app.core.runs import Run

Kind = Literal["recreated", "target-emptied", "expired", "truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the clusters say of a partition now: where it begins and ends on the source, and where its copy ends.

    `newest` is the last run of copies that is known; None when none is. Ids are None when they are not known.
    """

    topic_id: str | None
    target_id: str | None = None
    start: int
    end: int
    target_end: int
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
    kind: Kind
    first, last, resume = position.offset, seen.start - 1, seen.start
    if _another(position.topic_id, seen.topic_id):
        kind, last_known = "recreated", None
        return Loss(topic=topic, partition=partition, kind=kind, first=first, last=last_known, resume=resume)
    if _another(position.target_id, seen.target_id):
        # Whatever the topic of that name holds now, nothing of it was copied by this flow.
        kind, first, last = "target-emptied", resume, position.offset - 1
    elif seen.newest is not None and seen.target_end < seen.newest.downstream_end:
        resume = max(seen.start, _upstream(seen.newest, seen.target_end))
        kind, first, last = "target-emptied", resume, position.offset - 1
    elif position.offset < seen.start:
        kind = "expired"
    elif position.offset > seen.end:
        # How far back the source went before it grew again is not known: only from its start nothing is missed.
        kind, first, last = "truncated", seen.end, position.offset - 1
    else:
        return None
    return Loss(topic=topic, partition=partition, kind=kind, first=first, last=last, resume=resume)


def _another(known: str | None, present: str | None) -> bool:
    return None not in (known, present) and known != present


def _upstream(newest: Run, target_end: int) -> int:
    """Return the source offset whose copy is the first that is missing, 0 when it lies before the newest run."""
    return newest.upstream + target_end - newest.downstream if target_end >= newest.downstream else 0
