"""The way of a batch: from the source's topic, through a task, to the target's."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from app.core.provenance import Header, origin_header, returns_home
from app.kafka.convert import merge
from app.runtime.dead_letters import DeadLetters

if TYPE_CHECKING:
    from app.kafka.batches import SourceBatch
    from app.runtime.flow import FlowService

Agent = Callable[[AsyncIterable[Sequence["SourceBatch"]]], Awaitable[None]]


def replicator(flow: FlowService) -> Agent:
    """Return the agent function that carries a flow's batches.

    An event is what one poll of the source brought: whole record batches, consecutive within a partition. Nothing here
    leans on Faust's acknowledgements: progress is what a task commits on the target, and whatever fails makes the task
    read again from there.
    """
    source, target = flow.config.source, flow.config.target
    origin = origin_header(source)
    dead_letters = DeadLetters(flow.config.name, source, origin, flow.read_again)

    def is_new(headers: Sequence[Header]) -> bool:
        return not returns_home(headers, source, target)

    async def replicate(stream: AsyncIterable[Sequence[SourceBatch]]) -> None:
        async for batches in stream:
            for tp, batches_of_partition in groupby(batches, key=attrgetter("tp")):
                task = await flow.owner(tp)
                if task is None:
                    continue  # the partition is another worker's now, which reads from our last commit
                async with task.turn:
                    try:
                        run = flow.expected(task, tp, batches_of_partition)
                        if not run:
                            continue
                        route = task.routes[tp]
                        flow.check_residency(tp.topic)  # again, whatever was selected
                        keep = is_new if route.filter_origins else None
                        end = run[-1].next_offset
                        if flow.needs_care(tp):
                            end = await dead_letters.carry(task, route, run, keep)
                        else:
                            transactional, limit = task.writer.transactional, route.max_batch
                            for batch in merge(run, origin, transactional=transactional, keep=keep, limit=limit):
                                await task.write(route, batch)
                        task.advance(tp, end, run[-1].leader_epoch)
                    except Exception as error:  # noqa: BLE001 - whatever it is: the task goes on from its last commit
                        flow.task_failed(task, error)
            flow.forwarded()

    replicate.__doc__ = f"Carries whole record batches from {source} to {target}."  # what `faust agents` prints
    return replicate
