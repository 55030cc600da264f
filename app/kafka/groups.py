"""Consumer groups of one cluster, many at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from app.config import RuntimeConfig
from app.core.records import TopicPartition
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin
from app.kafka.group_api import Committed

#: Groups in one request. Its answer is worked through in one go, while the data waits.
AT_ONCE = 20


class Groups:
    """Consumer groups, of the classic and of the new protocol; share and streams groups have other offsets."""

    def __init__(self, admin: Admin, runtime: RuntimeConfig) -> None:
        self._admin = admin
        self._timeout = runtime.client_request_timeout

    async def states(self) -> dict[str, str]:
        """Return the state of every group, such as EMPTY or STABLE. Raises `ClusterUnavailable` if any is missing."""
        return await self._admin.groups.states()

    async def offsets(self, groups: Iterable[str]) -> dict[str, dict[TopicPartition, Committed]]:
        """Return what each group committed; a group whose look-up failed is left out, one that has nothing is empty."""
        found: dict[str, dict[TopicPartition, Committed]] = {}
        async for chunk in self.offsets_in_turn(groups):
            found |= chunk
        return found

    async def offsets_in_turn(self, groups: Iterable[str]) -> AsyncIterator[dict[str, dict[TopicPartition, Committed]]]:
        """Yield the same some groups at a time. Raises `ClusterUnavailable`."""
        wanted = list(groups)
        chunks = [wanted[start : start + AT_ONCE] for start in range(0, len(wanted), AT_ONCE)]
        if chunks:
            async for found in self._admin.groups.committed(chunks):
                yield found

    async def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> str | None:
        """Set offsets of a group without members, and create it if need be; return why the broker refused."""
        try:
            return await self._admin.groups.commit(group, offsets)
        except ClusterUnavailable as error:
            return str(error)

    async def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where those of the partitions that exist are readable with read_committed."""
        topics = await self._admin.describe({tp.topic for tp in partitions})
        there = [tp for tp in partitions if tp.topic in topics and tp.partition < topics[tp.topic].partitions]
        return await self._admin.known_ends(there)
