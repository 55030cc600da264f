"""Names of topics on the target, and what a name tells about where its records came from.

The only module that joins or splits names at the separator.

    us-east: orders  ->  eu-west: us-east.orders  ->  ap: eu-west.us-east.orders
                                                         origins, nearest first: eu-west, us-east; original: orders
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

HEARTBEATS = "heartbeats"
MAX_NAME_LENGTH = 249  # Kafka's limit: a partition's directory name has to fit into 255 characters

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameMap:
    """Names given topic by topic; a topic that is not listed is named by the flow's style."""

    names: Mapping[str, str]

    def rename(self, topic: str, source: str) -> str | None:
        """Return the name on the target, None when the style decides."""
        return self.names.get(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTemplate:
    """One text for all topics, in which `{topic}` is the topic's name and `{source}` the source's alias.

    Raises ValueError when `{topic}` is missing (all topics would become one) or something else is in braces.
    """

    text: str

    def __post_init__(self) -> None:
        if "{topic}" not in self.text:
            raise ValueError(f"template {self.text!r} lacks {{topic}}: all topics would get one name")
        rest = self.text.replace("{topic}", "").replace("{source}", "")
        if rest and not _LEGAL.fullmatch(rest):
            raise ValueError(
                f"template {self.text!r} may hold {{topic}}, {{source}}, letters, digits, '.', '_' and '-'"
            )

    def rename(self, topic: str, source: str) -> str | None:
        """Return the name on the target."""
        return self.text.replace("{source}", source).replace("{topic}", topic)

    def gives(self, name: str, source: str) -> bool:
        """Tell whether `name` is one that this template gives to some topic and that differs from the topic's."""
        text = self.text.replace("{source}", source)
        before, _, after = text.partition("{topic}")
        named = len(name) > len(before) + len(after) and name.startswith(before)
        return text != "{topic}" and named and name.endswith(after.replace("{topic}", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How one flow names its topics on the target.

    `aliases` are all clusters that the configuration knows: a name's head is an origin only when it is one of them, a
    separator means nothing by itself. When one alias could be read as another and the beginning of a topic, the longest
    is taken; `ambiguous` finds such aliases.

    Raises ValueError when the separator is empty or holds characters that no topic name has.
    """

    source: str
    target: str
    aliases: frozenset[str] = frozenset()
    style: Literal["default", "identity"] = "default"
    separator: str = "."
    renames: RenameMap | RenameTemplate | None = None
    _longest_first: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _LEGAL.fullmatch(self.separator):
            raise ValueError(f"separator {self.separator!r} has to be made of letters, digits, '.', '_' and '-'")
        known = self.aliases | {self.source, self.target}
        object.__setattr__(self, "_longest_first", tuple(sorted(known, key=lambda alias: (-len(alias), alias))))

    def remote_topic(self, topic: str) -> str:
        """Return the name of `topic` on the target; heartbeats are prefixed always, or two clusters' would mix."""
        return self._renamed(topic) or f"{self.source}{self.separator}{topic}"

    @property
    def syncs_topic(self) -> str:
        """MM2's topic of offset syncs, on the target."""
        return self.separator.join(("mm2-offset-syncs", self.source, "internal"))

    @property
    def checkpoints_topic(self) -> str:
        """MM2's topic of group checkpoints, on the target."""
        return self.separator.join((self.source, "checkpoints", "internal"))

    def names_origin(self, topic: str) -> bool:
        """Tell whether the name on the target begins with the source; if not, only provenance can stop a loop."""
        return self._renamed(topic) is None

    def _renamed(self, topic: str) -> str | None:
        if self.is_heartbeats(topic):
            return None
        renamed = self.renames.rename(topic, self.source) if self.renames else None
        return renamed or (topic if self.style == "identity" else None)

    def names(self, topic: str) -> tuple[str, ...]:
        """Return the names the topic has had on its way, as far as its name tells: from `topic` to the original."""
        names = [topic]
        for alias in self.origins(topic):
            names.append(names[-1][len(alias) + len(self.separator) :])
        return tuple(names)

    def origins(self, topic: str) -> tuple[str, ...]:
        """Return the chain of known aliases at the head of `topic`, nearest first."""
        chain: list[str] = []
        while alias := self._head(topic):
            chain.append(alias)
            topic = topic[len(alias) + len(self.separator) :]
        return tuple(chain)

    def _head(self, topic: str) -> str | None:
        for alias in self._longest_first:
            head = alias + self.separator
            if topic.startswith(head) and topic != head:
                return alias
        return None

    def original(self, topic: str) -> str:
        """Return the name without its chain of known aliases."""
        return self.names(topic)[-1]

    def is_heartbeats(self, topic: str) -> bool:
        """Tell whether `topic` holds some cluster's heartbeats."""
        return self.original(topic) == HEARTBEATS

    def cycle(self, topic: str, *, target_in_front: bool = False, leads_back: bool = False) -> str | None:
        """Say why sending `topic` would bring it back to where it was; None when its name is no reason.

        Topics that do not get the source's alias in front may bear the target's alias for other reasons. They are
        refused by it only where a flow out of the target puts it there (`target_in_front`); else their records are, by
        provenance. `leads_back` tells that flows lead from the target to the source: a template would be applied to
        what it named before.
        """
        if self.target in self.origins(topic) and (target_in_front or self.names_origin(topic)):
            return f"its name says that its records came from {self.target}, they would return there"
        template = self.renames if isinstance(self.renames, RenameTemplate) else None
        if leads_back and template and any(template.gives(name, self.source) for name in self.names(topic)):
            return f"its name is one that {template.text!r} gave, and flows lead back: it would grow without end"
        return None


def problems(name: str) -> str | None:
    """Say why Kafka would refuse a topic of this name."""
    if len(name) > MAX_NAME_LENGTH:
        return f"the name {name!r} has {len(name)} characters, Kafka allows {MAX_NAME_LENGTH}"
    if name in (".", ".."):
        return f"Kafka allows no topic named {name!r}"
    if not _LEGAL.fullmatch(name):
        return f"the name {name!r} is empty or holds characters other than letters, digits, '.', '_' and '-'"
    return None


def collides(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return each name with the first before it that Kafka holds for the same: equal, or equal with `.` as `_`."""
    first: dict[str, str] = {}
    pairs: list[tuple[str, str]] = []
    for name in names:
        folded = name.replace(".", "_")
        if folded in first:
            pairs.append((first[folded], name))
        first.setdefault(folded, name)
    return pairs


def ambiguous(aliases: Iterable[str], separator: str) -> list[tuple[str, str]]:
    """Return pairs of aliases of which the second reads like a topic that came from the first (`us`, `us.west`)."""
    known = sorted(aliases)
    return [(short, long) for short in known for long in known if long.startswith(short + separator)]
