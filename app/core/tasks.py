"""Who owns a partition: the task it belongs to, and the partition of the positions topic that keeps its place."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from zlib import crc32

#: Partitions of the positions topic. It never changes, so that a position is found whatever the number of tasks.
POSITION_SLOTS = 32


def workers_group(flow: str) -> str:
    """Return the group of a flow's workers on the target; on the source a group of this name shows the progress."""
    return f"krabka-replicator-{flow}"


def tasks_topic(flow: str) -> str:
    """Return the topic that the workers' group shares: empty, a partition for each task."""
    return f"{workers_group(flow)}-tasks"


def task_of(topic: str, partition: int, tasks: int) -> int:
    """Return the task that carries a source partition; a topic's partitions go to different tasks."""
    return (crc32(topic.encode()) + partition) % tasks


def slot_of(flow: str, topic: str, partition: int) -> int:
    """Return the partition of the positions topic that keeps a source partition's place."""
    return (crc32(flow.encode()) + crc32(topic.encode()) + partition) % POSITION_SLOTS


def slots_of_task(flow: str, task: int, tasks: int) -> frozenset[int]:
    """Return the slots in which a position of the task can be, all that its owner has to read.

    `crc32(topic) + partition` is any number that leaves `task` when divided by `tasks`; divided by POSITION_SLOTS it
    leaves every number that agrees with `task` modulo the two divisors' greatest common divisor, and no other.
    """
    step = gcd(tasks, POSITION_SLOTS)
    return frozenset(
        (crc32(flow.encode()) + rest) % POSITION_SLOTS for rest in range(task % step, POSITION_SLOTS, step)
    )


def spans(tasks: Iterable[int]) -> str:
    """Return numbers for people to read, such as `0-3, 7`; `none` when there are none."""
    found: list[list[int]] = []
    for task in sorted(tasks):
        if found and found[-1][1] == task - 1:
            found[-1][1] = task
        else:
            found.append([task, task])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found) or "none"
