"""Partitions whose records the target refuses: held, so that the others go on, and tried again at a gentle rate.

With `on_rejected: dead-letter` they are carried with care instead, as long as single records are the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.core.records import TopicPartition
from app.errors import RecordsRefused
from app.runtime.task import Task

log = logging.getLogger(__name__)

#: Seconds; a task that is made anew needs some of them before its other partitions flow.
SHORTEST = 3.0

#: Seconds for which a partition is carried with care, which is slower, after a record of it was refused.
CARE = 600.0

#: The pause before the next try doubles up to this many times the first one.
LONGEST = 8

#: Marks what is logged of refusals.
REFUSED = {"kind": "refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a partition is held at a source offset, and from when (loop time) it may be tried again."""

    offset: int
    reason: str
    pause: float
    until: float


class Refusals:
    """Which partitions of a flow are held. Each try makes the task anew, so the tries become rarer."""

    def __init__(self, flow: str, interval: float, *, dead_letters: bool = False) -> None:
        self._flow = flow
        self._dead_letters = dead_letters
        self._care: dict[TopicPartition, float] = {}
        self._interval = max(SHORTEST, interval)
        self._held: dict[TopicPartition, Refusal] = {}

    @property
    def reasons(self) -> Mapping[TopicPartition, str]:
        """Partitions that are held or being tried again, with the reason."""
        return {tp: f"held at offset {held.offset}: {held.reason}" for tp, held in self._held.items()}

    def note(self, task: Task, error: RecordsRefused, now: float) -> bool:
        """Hold the partition that the target refuses, or have it carried with care if that was not tried yet.

        Tell whether it is one of the task's.
        """
        refused = TopicPartition(error.topic, error.partition)
        found = [tp for tp, route in task.routes.items() if route.target == refused]
        if self._dead_letters and error.kind != "topic" and not any(self.needs_care(tp, now) for tp in found):
            self._care |= dict.fromkeys(found, now + CARE)
            return bool(found)
        for tp in found:
            offset, before = task.committed[tp], self._held.get(tp)
            again = before is not None and before.offset == offset
            pause = min(2 * before.pause, LONGEST * self._interval) if before and again else self._interval
            self._held[tp] = Refusal(offset=offset, reason=str(error), pause=pause, until=now + pause)
            if not again:
                log.error("%s: %s-%d is held at offset %d: %s", self._flow, *tp, offset, error, extra=REFUSED)
        self._give_others_time(now)
        return bool(found)

    def _give_others_time(self, now: float) -> None:
        """Leave all held partitions alone for a while after any refusal.

        A refusal throws away what the task wrote beside it. If held partitions were tried in turn, one or the other
        would always spoil it, and records that nobody refuses would never get through.
        """
        for tp, held in self._held.items():
            self._held[tp] = replace(held, until=max(held.until, now + self._interval))

    def needs_care(self, tp: TopicPartition, now: float) -> bool:
        """Tell whether records of the partition have to be offered one batch after the other."""
        return now < self._care.get(tp, 0.0)

    def holds(self, tp: TopicPartition, now: float) -> bool:
        """Tell whether the partition has to be left alone now."""
        held = self._held.get(tp)
        return held is not None and now < held.until

    def settle(self, tasks: Mapping[int, Task]) -> None:
        """Forget the refusals that were overcome: their partitions are committed further on, or gone."""
        for task in tasks.values():
            for tp in task.routes:
                held = self._held.get(tp)
                if held is not None and task.error is None and task.committed[tp] > held.offset:
                    del self._held[tp]
                    log.info("%s: %s-%d goes on: the target takes its records", self._flow, *tp)
