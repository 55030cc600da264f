"""Group offsets on the target: only of groups that nobody uses there, and only forwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from app.core.records import TopicPartition
from app.kafka.group_api import Committed
from app.kafka.groups import Groups

Offsets = Mapping[TopicPartition, Committed]

#: Seconds after which what a group has on the target is looked up again although nothing is to be written.
FORGET = 60.0


class WriteBack:
    """Gives groups on the target the offsets that their namesakes have on the source.

    A look-up that failed says nothing, least of all that the group is absent: it means not now.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._there: dict[tuple[str, TopicPartition], int] = {}
        self._forget_at = time.monotonic() + FORGET

    async def write(self, wanted: Mapping[str, Offsets]) -> frozenset[str]:
        """Write what is ahead of the target; return what was refused. Raises `ClusterUnavailable`."""
        if time.monotonic() > self._forget_at:
            self._there.clear()
            self._forget_at = time.monotonic() + FORGET
        ahead = {group: offsets for group in wanted if (offsets := self._ahead(group, wanted[group]))}
        if not ahead:
            return frozenset()
        states = await self._groups.states()
        unused = [group for group in ahead if states.get(group, "DEAD") in ("EMPTY", "DEAD")]
        refusals: set[str] = set()
        async for there in self._groups.offsets_in_turn(unused):
            written = await asyncio.gather(*(self._write(group, ahead[group], now) for group, now in there.items()))
            refusals.update(refusal for refusal in written if refusal)
        return frozenset(refusals)

    def _ahead(self, group: str, offsets: Offsets) -> Offsets:
        return {tp: to for tp, to in offsets.items() if to.offset > self._there.get((group, tp), -1)}

    async def _write(self, group: str, wanted: Offsets, now: Offsets) -> str | None:
        forwards = {tp: to for tp, to in wanted.items() if tp not in now or to.offset > now[tp].offset}
        refusal = await self._groups.commit(group, forwards) if forwards else None
        if refusal is None:
            known = {tp: at.offset for tp, at in now.items()} | {tp: to.offset for tp, to in forwards.items()}
            self._there |= {(group, tp): offset for tp, offset in known.items()}
            return None
        return f"group {group} is not moved: {refusal}"
