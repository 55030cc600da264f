"""The channel between a flow's source reader and its agent."""

from __future__ import annotations

import asyncio
from typing import Any

from faust.channels import Channel
from mode.utils.queues import FlowControlEvent, ThrowableQueue

#: Events (polls of the source) that may wait for the agent: enough to read while it writes, and a bound on memory.
DEPTH = 2


class _Queue(ThrowableQueue):  # type: ignore[misc]
    """A bounded queue that Faust's rebalances neither suspend nor clear."""

    def __init__(self) -> None:
        super().__init__(maxsize=DEPTH, flow_control=FlowControlEvent(initially_suspended=False), clear_on_resume=False)


class BatchChannel(Channel):  # type: ignore[misc]
    """A Faust channel whose events are the batches of one poll.

    Faust gives each iterating agent a clone with a queue of its own, 4096 deep, suspended during Faust's rebalances
    and cleared after them; here that queue is bounded and left alone.
    """

    _own_queue: _Queue | None = None

    @property
    def queue(self) -> ThrowableQueue:
        """The queue of this clone, made at first use."""
        if self._own_queue is None:
            self._own_queue = self._queue = _Queue()
        return self._own_queue

    async def deliver_batches(self, batches: Any) -> None:
        """Hand an event to the agent; wait for room, and for the agent: without one Faust would drop the event."""
        while not self._subscribers:
            await asyncio.sleep(0.05)
        await self.put(batches)

    def is_empty(self) -> bool:
        """Tell whether no event waits for the agent."""
        return all(subscriber.queue.empty() for subscriber in self._subscribers)
