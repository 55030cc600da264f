"""What has to change on the target so that its topics are as the source's are: steps as data, applied elsewhere.

Settings follow MM2 4.3.1 but for two things: `message.timestamp.before.max.ms` and `.after.max.ms` are left out as well
(with them the target would refuse old records that the source holds; MM2's list names the broker's settings instead),
and what a source broker sets for all its topics counts as a default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from app.core.selection import Pattern

#: Settings that are not carried: they are about the cluster, or would make the copy refuse what the source has taken.
CONFIG_EXCLUDE = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A topic's setting as its cluster describes it.

    `own` when it was set for this topic, not for a broker or by nobody; `fixed` when it cannot be set (read-only) or is
    not shown (sensitive).
    """

    value: str | None
    own: bool
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as its cluster describes it; `settings` is None when we may not see them."""

    name: str
    partitions: int
    settings: Mapping[str, Setting] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRules:
    """Which settings are carried.

    With `defaults` "target", what is not set for the source topic is left to the target cluster; with "source" the
    copy gets the source cluster's defaults as settings of its own. Raises ValueError for an entry that is no `Pattern`.
    """

    exclude: tuple[str, ...] = CONFIG_EXCLUDE
    defaults: Literal["target", "source"] = "target"
    _exclude: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_exclude", tuple(map(Pattern, self.exclude)))

    def excluded(self, name: str) -> bool:
        """Tell whether the setting `name` is never touched."""
        return any(pattern.matches(name) for pattern in self._exclude)

    def wanted(self, settings: Mapping[str, Setting] | None) -> dict[str, str]:
        """Return what a copy of a topic with `settings` has to be set to."""
        return {
            name: setting.value
            for name, setting in sorted((settings or {}).items())
            if setting.value is not None
            and not setting.fixed
            and (setting.own or self.defaults == "source")
            and not self.excluded(name)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Create `remote_topic`, with these settings from the start."""

    topic: str
    remote_topic: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowTopic:
    """Add partitions to `remote_topic`, before the first record of the new ones is sent."""

    topic: str
    remote_topic: str
    present: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigs:
    """Set and remove single settings; all others of `remote_topic` stay as they are."""

    topic: str
    remote_topic: str
    set: Mapping[str, str]
    remove: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    """Delete `remote_topic`, whose source topic is gone."""

    topic: str
    remote_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A selected topic that cannot be carried, and why."""

    topic: str
    remote_topic: str
    reason: str


TopicStep = CreateTopic | GrowTopic | AlterConfigs


def plan_topic(source: TopicState, remote_topic: str, target: TopicState | None, rules: ConfigRules) -> list[TopicStep]:
    """Return what makes `target` (None: absent) a place for the source topic; a larger target stays as it is."""
    if target is None:
        config = rules.wanted(source.settings)
        return [CreateTopic(topic=source.name, remote_topic=remote_topic, partitions=source.partitions, config=config)]
    steps: list[TopicStep] = []
    if target.partitions < source.partitions:
        grow = GrowTopic(
            topic=source.name, remote_topic=remote_topic, present=target.partitions, partitions=source.partitions
        )
        steps.append(grow)
    if alter := _alter(source, target, rules):
        steps.append(alter)
    return steps


def _alter(source: TopicState, target: TopicState, rules: ConfigRules) -> AlterConfigs | None:
    if source.settings is None or target.settings is None:
        return None
    wanted = rules.wanted(source.settings)
    pinned = rules.defaults == "target"  # a default that happens to equal the wanted value may change one day
    changed = {
        name: value
        for name, value in wanted.items()
        if (present := target.settings.get(name)) is None or present.value != value or (pinned and not present.own)
    }
    removed = tuple(
        name
        for name, present in sorted(target.settings.items())
        if present.own and not present.fixed and name not in wanted and not rules.excluded(name)
    )
    if not changed and not removed:
        return None
    return AlterConfigs(topic=source.name, remote_topic=target.name, set=changed, remove=removed)


def described(step: TopicStep | DeleteTopic) -> str:
    """Return the step as a line for people."""
    match step:
        case CreateTopic():
            return f"create {step.remote_topic}, {_counted(step.partitions)}{_settings(step.config)}"
        case GrowTopic():
            return f"grow {step.remote_topic} from {step.present} to {_counted(step.partitions)}"
        case AlterConfigs():
            removed = f", remove {', '.join(step.remove)}" if step.remove else ""
            return f"change {step.remote_topic}{_settings(step.set)}{removed}"
        case DeleteTopic():
            return f"delete {step.remote_topic}, its source topic {step.topic} is gone"


def _counted(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


def _settings(config: Mapping[str, str]) -> str:
    return f", set {', '.join(f'{name}={value}' for name, value in config.items())}" if config else ""


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """A topic of the replicator's own as it has to be; where `or_more` partitions may be, the others stay empty."""

    name: str
    partitions: int
    cleanup_policy: str
    or_more: bool = False


def differences(wanted: Iterable[OwnTopic], present: Mapping[str, TopicState]) -> list[str]:
    """Say which of our own topics exist with other values: positions in a topic that deletes would be forgotten."""
    found = []
    for own in wanted:
        state = present.get(own.name)
        if state is None:
            continue
        if state.partitions < own.partitions or (state.partitions > own.partitions and not own.or_more):
            found.append(f"topic {own.name} has {state.partitions} partitions, {own.partitions} are expected")
        policy = (state.settings or {}).get("cleanup.policy")
        if policy is not None and policy.value != own.cleanup_policy:
            found.append(f"topic {own.name} has cleanup.policy={policy.value}, {own.cleanup_policy} is expected")
    return found


def as_json(step: Any) -> dict[str, Any]:
    """Return a step with its kind, for people and tools."""
    return {"step": type(step).__name__, **asdict(step)}
