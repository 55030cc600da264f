"""Which worker runs which tasks of a flow, as the target's group coordinator says: every worker can tell of all."""

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
    """A worker, by the name it gives itself and the address the broker sees, and its tasks."""

    worker: str
    address: str
    tasks: tuple[int, ...]


class Roster:
    """Keeps the list; while the group is being settled or does not answer, the last one stands."""

    def __init__(self, admin: Admin, group: str) -> None:
        self.workers: list[Crew] | None = None
        self._admin = admin
        self._group = group

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
            self.workers = sorted(map(_crew, members), key=lambda crew: (crew.tasks, crew.worker))


def _crew(member: Member) -> Crew:
    tasks = sorted(tp.partition for tp in member.partitions)
    return Crew(worker=member.client_id.removeprefix(WORKER_PREFIX), address=member.host, tasks=tuple(tasks))
