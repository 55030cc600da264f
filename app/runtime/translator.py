"""Where a consumer group of a source goes on at a target: the rules of a flow, and what is known of its copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from app.core.flow_rules import FlowRules, NotSelected, select
from app.core.mm2_store import Behind, NoSync
from app.core.mm2_store import Translated as Synced
from app.core.offset_index import BeforeIndex, Exact
from app.core.records import TopicPartition
from tables.offset_runs import OffsetRuns, OffsetSyncs


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """Start here: no record is missed, and at most `repeats` that the group has read come again."""

    target: TopicPartition
    offset: int
    repeats: int = 0

    @property
    def exact(self) -> bool:
        """Whether nothing comes again."""
        return self.repeats == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Untranslated:
    """No offset can be given without the danger of missing records, or of reading everything again."""

    why: str
    target: TopicPartition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    topic: str
    returns: bool  # to the topic of the target that the source's is a copy of


class Translator:
    """Translates offsets on a flow's source into offsets on its target.

    `runs` and `syncs` are what the target keeps, `home_runs` what the source keeps of copies that came from the target:
    a group that reads such a copy goes on with the original.
    """

    def __init__(self, rules: FlowRules, *, runs: OffsetRuns, syncs: OffsetSyncs, home_runs: OffsetRuns) -> None:
        self._rules = rules
        naming = rules.naming
        self._flow = f"{naming.source}__{naming.target}"
        self._reverse = f"{naming.target}__{naming.source}"
        self._runs = runs
        self._syncs = syncs
        self._home_runs = home_runs
        self._place = lru_cache(maxsize=None)(self._find_place)

    def _find_place(self, topic: str) -> _Place | str:
        naming = self._rules.naming
        if naming.origins(topic)[:1] == (naming.target,):
            return _Place(topic=naming.names(topic)[1], returns=True)
        choice = select(topic, self._rules)
        if isinstance(choice, NotSelected):
            return choice.reason
        return _Place(topic=choice.remote_topic, returns=False)

    def concerns(self, topic: str) -> bool:
        """Tell whether the flow has anything to do with the topic."""
        return not isinstance(self._place(topic), str)

    def translate(self, source: TopicPartition, offset: int, position: int | None = None) -> Translated | Untranslated:
        """Translate the next offset that a group would read.

        `position`, how far the flow has copied the partition, tells apart what lies behind the last copy: nothing to be
        copied, or what is still to come and was read by the group already.
        """
        place = self._place(source.topic)
        if isinstance(place, str):
            return Untranslated(why=place)
        target = TopicPartition(place.topic, source.partition)
        if place.returns:
            return self._return(source, target, offset)
        return self._forward(source, target, offset, position)

    def _return(self, source: TopicPartition, target: TopicPartition, offset: int) -> Translated | Untranslated:
        index = self._home_runs.index(self._reverse, target)
        match index.translate_back(offset) if index else None:
            case Exact(found):
                return Translated(target=target, offset=found)
            case BeforeIndex(first):
                why = f"what is known of the copies begins at offset {first} of {source.topic}"
                return Untranslated(why=why, target=target)
        return Untranslated(why=f"nothing is known of how {source.topic} was copied from {target.topic}", target=target)

    def _forward(
        self, source: TopicPartition, target: TopicPartition, offset: int, position: int | None
    ) -> Translated | Untranslated:
        index = self._runs.index(self._flow, source)
        match index.translate(offset) if index else None:
            case Exact(found):
                runs = index.runs() if index else []
                copied = max(runs[-1].upstream_end if runs else 0, position or 0)
                return Translated(target=target, offset=found, repeats=max(0, offset - copied))
        match self._syncs.store(source).translate(offset):
            case Synced(found, sync):
                return Translated(target=target, offset=found, repeats=max(0, offset - sync.upstream - 1))
            case Behind(first):
                return Untranslated(why=f"what is known of the copies begins at offset {first}", target=target)
            case NoSync() if offset == 0:
                return Translated(target=target, offset=0)
        return Untranslated(why="no record of the partition was copied yet", target=target)


def clamped(answer: Translated | Untranslated, ends: Mapping[TopicPartition, int]) -> Translated | Untranslated:
    """Keep an answer within what the target has now: it may have lost records, or the topic was deleted there."""
    if isinstance(answer, Untranslated):
        return answer
    end = ends.get(answer.target)
    if end is None:
        return Untranslated(why=f"{answer.target.topic}-{answer.target.partition} is not there", target=answer.target)
    return replace(answer, offset=min(answer.offset, end))
