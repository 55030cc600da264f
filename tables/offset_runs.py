"""Where the copies lie: a table over `krabka-replicator-offset-runs`, and one over MM2's offset syncs.

Not Faust tables: what tasks write in transactions ends in markers, behind which Faust's recovery waits for ever, and it
reads what was aborted. These are fed by `app.kafka.follow.Follower`.
"""

from __future__ import annotations

from app.core.formats import OffsetSync
from app.core.mm2_store import OffsetSyncStore
from app.core.offset_index import OffsetIndex
from app.core.records import TopicPartition
from app.core.runs import StoredRun, run_key

#: Runs that a ring may hold; more than any writer's ring, so that none is left out.
MOST = 1 << 20


class OffsetRuns:
    """The rings of all partitions of all flows into a cluster; an index is built when it is asked for."""

    def __init__(self) -> None:
        self._rings: dict[bytes, dict[bytes, bytes]] = {}
        self._built: dict[bytes, OffsetIndex] = {}

    def learn(self, key: bytes, value: bytes | None) -> None:
        """Take a record. Nothing is decoded here: of most records only the last value per key is ever needed."""
        ring, _, slot = key.rpartition(b",")
        slots = self._rings.setdefault(ring, {})
        if value is None:
            slots.pop(slot, None)
        else:
            slots[slot] = value
        self._built.pop(ring, None)

    def index(self, flow: str, source: TopicPartition) -> OffsetIndex | None:
        """Return what is known of a source partition's copies."""
        ring = run_key(flow, *source, 0).rpartition(b",")[0]
        index = self._built.get(ring)
        if index is None and (slots := self._rings.get(ring)):
            index = self._built[ring] = OffsetIndex(MOST, map(StoredRun.decode, slots.values()))
        return index


class OffsetSyncs:
    """MM2's sparse syncs of one flow, ours or an earlier MM2's."""

    def __init__(self) -> None:
        self._stores: dict[TopicPartition, OffsetSyncStore] = {}

    def learn(self, key: bytes, value: bytes | None) -> None:
        """Take a record. Raises ValueError when it is not a sync."""
        if value is None:
            return
        sync = OffsetSync.decode(key, value)
        self.store(TopicPartition(sync.topic, sync.partition)).observe(sync.upstream, sync.downstream)

    def store(self, source: TopicPartition) -> OffsetSyncStore:
        """Return the syncs of a source partition.

        All of them may be used: the checkpoints that were written are read too, so that none moves backwards.
        """
        store = self._stores.get(source)
        if store is None:
            store = self._stores[source] = OffsetSyncStore(must_read_to_end=False)
            store.loaded()
        return store
