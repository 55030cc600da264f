"""From what the clusters say of a partition to the facts that its comparison starts from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from app.config import FlowConfig
from app.core.dead_letters import PREFIX
from app.core.formats import Position
from app.core.offset_index import OffsetIndex
from app.core.provenance import Header, origin_header
from app.core.records import TopicPartition
from app.core.topics import Setting
from app.core.verify import Facts
from app.core.verify_records import Record, Side, digest
from app.kafka.admin import TopicInfo

#: Before every timestamp.
ALWAYS = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Where a log may be read, `end` as a read_committed reader sees it; `written` is the end with what is open."""

    start: int = 0
    end: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic on both sides; settings are name to value, none where we may not see them."""

    here: TopicInfo
    there: TopicInfo | None
    settings: Mapping[Side, Mapping[str, str]]


def setting_values(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return what is set or defaulted."""
    return {name: setting.value for name, setting in settings.items() if setting.value is not None}


def unverifiable(
    position: Position | None, topic: Topic, index: OffsetIndex | None, here: Stretch, there: Stretch
) -> str | None:
    """Say why a partition cannot be compared now; None when it can."""
    if position is None:
        return None
    if _another(position.topic_id, topic.here.topic_id):
        return "the source topic was created anew, and the flow has not taken it up yet; verify again when it has"
    if topic.there is not None and _another(position.target_id, topic.there.topic_id):
        return "the target topic was created anew, and the flow has not filled it yet; verify again when it has"
    if position.offset > here.written:
        return f"the source's log ends at {here.written}, before the position {position.offset}; see losses in /status"
    newest = index.newest if index else None
    if newest is not None and there.end < newest.downstream_end <= there.written:
        return (
            f"another producer's open transaction on the target hides what lies behind offset {there.end}; "
            f"verify again when it is over"
        )
    return None


def _another(known: str | None, present: str | None) -> bool:
    return None not in (known, present) and known != present


def flow_facts(
    config: FlowConfig,
    topic: Topic,
    index: OffsetIndex | None,
    position: Position | None,
    here: Stretch,
    there: Stretch,
) -> Facts:
    """Return the facts, without those that need more than this."""
    runs = index.runs() if index else []
    return Facts(
        origin=origin_header(config.source),
        acknowledged=position.offset if position else 0,
        runs=runs,
        superseded=index.superseded() if index else (),
        source_start=here.start,
        target_start=there.start,
        retained_since=retained_since(topic.settings["target"], time.time() * 1000),
        timestamps=topic.settings["target"].get("message.timestamp.type") != "LogAppendTime",
        source_compacted=_compacted(topic.settings["source"]),
        target_compacted=_compacted(topic.settings["target"]),
        starts_later=config.start != "earliest" and not (runs and runs[0].upstream <= here.start),
    )


def _compacted(settings: Mapping[str, str]) -> bool:
    return "compact" in settings.get("cleanup.policy", "").split(",")


def retained_since(settings: Mapping[str, str], now: float) -> int | None:
    """Return from which timestamp on (ms, as `now`) the topic's settings keep records; None when any may go."""
    if "delete" not in settings.get("cleanup.policy", "delete").split(","):
        return ALWAYS
    if settings.get("retention.bytes") != "-1" or "retention.ms" not in settings:
        return None
    kept = int(settings["retention.ms"])
    return ALWAYS if kept < 0 else int(now) - kept


def set_aside(record: Record, origin: Header) -> tuple[TopicPartition, int, int] | None:
    """Return what a dead letter stands for: source partition, offset, digest; None for another writer's record."""
    said = {name.removeprefix(PREFIX): value for name, value in record.headers if name.startswith(PREFIX)}
    own = [header for header in record.headers if not header[0].startswith(PREFIX)]
    try:
        tp = TopicPartition((said["topic"] or b"").decode(), int(said["partition"] or b""))
        offset = int(said["offset"] or b"")
    except (KeyError, ValueError):
        return None
    if own[-1:] != [origin]:
        return None
    return tp, offset, digest(record, tuple(own[:-1]))
