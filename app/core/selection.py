"""Which topics and groups a flow takes.

Exclude wins, an empty include matches nothing. An entry is a name in which `*` stands for any characters (also none),
or, after `re:`, a regular expression that has to match the whole name. Nothing else in an entry is special.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: What every topic, group and transactional id of ours begins with, besides the topics that MM2 names for us.
OWN_PREFIX = "krabka-replicator"

_REGEX = "re:"
_NOT_IN_TOPIC_GLOBS = re.compile(r"[^a-zA-Z0-9._*-]")

# Kafka 4.3.1 takes `mm2*<separator>internal` and `*<separator>checkpoints<separator>internal` for MM2's own. Its
# separator is configurable, so that others than the dot count too, but only in names of the full shape: names such as
# `notes-internal` or `mm2_notes_internal` are users' topics.
_MM2_TOPICS = re.compile(
    r"mm2.*\.internal"
    r"|.*\.checkpoints\.internal"
    r"|mm2-offset-syncs([_-]+).+\1internal"
    r"|.+([_-]+)checkpoints\2internal"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of an include or exclude list.

    Raises ValueError when the entry is blank or not a regular expression of Python's `re`.
    """

    entry: str
    _regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_regex", _compile(self.entry))

    def matches(self, name: str) -> bool:
        """Tell whether the whole of `name` matches."""
        return self._regex.fullmatch(name) is not None


def _compile(entry: str) -> re.Pattern[str]:
    if not entry.removeprefix(_REGEX).strip():
        raise ValueError(f"entry {entry!r} is blank, it would match nothing")
    if not entry.startswith(_REGEX):
        return re.compile(".*".join(map(re.escape, entry.split("*"))), re.DOTALL)
    try:
        return re.compile(entry.removeprefix(_REGEX))
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"entry {entry!r} is not a regular expression: {exc}") from exc


def is_name(entry: str) -> bool:
    """Tell whether an entry stands for one name only."""
    return "*" not in entry and not entry.startswith(_REGEX)


def beginning(entry: str) -> str:
    """Return what every name begins with that an entry matches; empty when that can be anything."""
    return "" if entry.startswith(_REGEX) else entry.partition("*")[0]


def never_a_topic(entry: str) -> str | None:
    """Say why an entry without `re:` cannot match any topic: it holds characters that no topic name has.

    MM2's lists are regular expressions, so `a|b` or `^orders$` is what people bring along. Groups may have such names.
    """
    strange = None if entry.startswith(_REGEX) else _NOT_IN_TOPIC_GLOBS.search(entry)
    if strange is None:
        return None
    return (
        f"{entry!r} holds {strange[0]!r}, which no topic name has; a regular expression is written {_REGEX + entry!r}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """An include and an exclude list of entries.

    Raises ValueError when an entry is not a `Pattern`.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    _include: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_include", tuple(map(Pattern, self.include)))
        object.__setattr__(self, "_exclude", tuple(map(Pattern, self.exclude)))

    def matches(self, name: str) -> bool:
        """Tell whether `name` is taken."""
        return self.why_not(name) is None

    def why_not(self, name: str) -> str | None:
        """Say which entry excludes `name`, or that none includes it; None when it is taken."""
        if reason := self.why_excluded(name):
            return reason
        if any(pattern.matches(name) for pattern in self._include):
            return None
        return "no include entry matches it" if self.include else "the include list is empty"

    def why_excluded(self, name: str) -> str | None:
        """Say which entry excludes `name`; None when none does, whether included or not."""
        for pattern in self._exclude:
            if pattern.matches(name):
                return f"excluded by {pattern.entry!r}"
        return None


def never_selected(topic: str) -> str | None:
    """Say why `topic` may never be replicated, whatever the lists say; None for a user's topic."""
    if topic.startswith("__"):
        return "topics that begin with '__' are internal to Kafka and its tools"
    if topic.startswith(OWN_PREFIX):
        return f"topics that begin with {OWN_PREFIX!r} are the replicator's own"
    if topic.endswith("-__assignor-__leader"):
        return "it is the leader topic of a Faust application"
    if _MM2_TOPICS.fullmatch(topic):
        return "it is an internal topic of MirrorMaker 2: offset syncs, checkpoints or Connect's state"
    return None


def never_translated(group: str) -> str | None:
    """Say why the offsets of `group` may never be translated, whatever the lists say; None for a user's group."""
    if group.startswith(OWN_PREFIX):
        return f"groups that begin with {OWN_PREFIX!r} are the replicator's own"
    return None
