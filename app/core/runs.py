"""A stretch of copies without a gap on either side, and the bytes in which it is kept on the target."""

from __future__ import annotations

import json
from dataclasses import dataclass

from app.core.formats import to_json

#: The topic that holds them, on the target.
RUNS_TOPIC = "krabka-replicator-offset-runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`count` records: `upstream` + i on the source is `downstream` + i on the target. 0 records: it may begin here."""

    upstream: int
    downstream: int
    count: int

    @property
    def upstream_end(self) -> int:
        """The source offset behind the last record."""
        return self.upstream + self.count

    @property
    def downstream_end(self) -> int:
        """The target offset behind the last copy."""
        return self.downstream + self.count

    def first(self, count: int) -> Run:
        """Return the first `count` records of the run, itself when that is all."""
        return self if count >= self.count else Run(upstream=self.upstream, downstream=self.downstream, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as it is kept in the ring of its partition.

    Numbers go up by one. `after` is the source offset at which run `number - 1` ended, None when no earlier run counts:
    a run that was lost, or overwritten by another writer, is noticed by its successor. `reach` is the highest source
    offset at which any earlier run ended: that this one copies again is known also when those runs have left the ring.
    `unseen` is how many records from `reach` on may have been copied before this run without being in any.
    """

    number: int
    run: Run
    after: int | None = None
    reach: int = 0
    unseen: int = 0

    @property
    def furthest(self) -> int:
        """The highest source offset at which this run or an earlier one ended."""
        return max(self.reach, self.run.upstream_end)

    @property
    def still_unseen(self) -> int:
        """How many records from `furthest` on may have been copied without being in a run."""
        return max(0, self.unseen - max(0, self.run.upstream_end - max(self.run.upstream, self.reach)))

    def next(self, run: Run, *, unseen: int) -> StoredRun:
        """Return what follows; `unseen` records may have been copied between the two."""
        return StoredRun(
            number=self.number + 1,
            run=run,
            after=self.run.upstream_end,
            reach=self.furthest,
            unseen=max(unseen, self.still_unseen),
        )

    def value(self) -> bytes:
        """Return the JSON object."""
        run = self.run
        return to_json(
            {
                "number": self.number,
                "upstream": run.upstream,
                "downstream": run.downstream,
                "count": run.count,
                "after": self.after,
                "reach": self.reach,
                "unseen": self.unseen,
            }
        )

    @classmethod
    def decode(cls, value: bytes) -> StoredRun:
        """Read the JSON object, ignoring fields of later versions; raises ValueError when it is malformed."""
        match json.loads(value):
            case {
                "number": int(number),
                "upstream": int(upstream),
                "downstream": int(downstream),
                "count": int(count),
                "after": int() | None as after,
                "reach": int(reach),
                "unseen": int(unseen),
            } if min(number, upstream, downstream, after or 0, reach, unseen) >= 0 and count >= 0:
                run = Run(upstream=upstream, downstream=downstream, count=count)
                return cls(number=number, run=run, after=after, reach=reach, unseen=unseen)
        raise ValueError(f"not a run: {value!r}")


def run_key(flow: str, topic: str, partition: int, slot: int) -> bytes:
    """Return the key of a slot of a source partition's ring: a JSON array, as `position_key`."""
    return to_json([flow, topic, partition, slot])


def parse_run_key(key: bytes) -> tuple[str, str, int, int]:
    """Return flow, topic, partition and slot; raises ValueError when it is no such key."""
    match json.loads(key):
        case [str(flow), str(topic), int(partition), int(slot)] if type(partition) is type(slot) is int:
            return flow, topic, partition, slot
    raise ValueError(f"not a run's key: {key!r}")
