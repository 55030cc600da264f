"""Which worker has what, as a group's coordinator on the target says: so every worker can tell of all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.errors import ReplicatorError
from app.kafka.admin import Admin
from app.kafka.clients import WORKER_PREFIX
from app.kafka.group_api import Member

#: Seconds between two looks. A rebalance takes about as long.
INTERVAL = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """A worker, by the name it gives itself and the address the broker sees, and its partitions of the shared topic."""

    worker: str
    address: str
    tasks: tuple[int, ...]


class Roster:
    """Keeps the list of who has what of `topic`.

    While the group is being settled or does not answer, the last list stands.
    """

    def __init__(self, admin: Admin, group: str, topic: str) -> None:
        self.workers: list[Crew] | None = None
        self._admin = admin
        self._group = group
        self._topic = topic

    async def keep(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL)

    async def look(self) -> None:
        """Ask once. What the target does not tell is left for the next time."""
        try:
            members = await self._admin.groups.assignments(self._group)
        except ReplicatorError:
            return
        if members is not None:
            self.workers = sorted(map(self._crew, members), key=lambda crew: (crew.tasks, crew.worker))

    def owner(self, number: int) -> str | None:
        """Return the worker that has a partition of the topic; None when nobody is known to."""
        return next((crew.worker for crew in self.workers or () if number in crew.tasks), None)

    def _crew(self, member: Member) -> Crew:
        tasks = sorted(tp.partition for tp in member.partitions if tp.topic == self._topic)
        return Crew(worker=member.client_id.removeprefix(WORKER_PREFIX), address=member.host, tasks=tuple(tasks))
