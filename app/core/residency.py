"""Which clusters may hold which topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.core.selection import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Zones for topics; `topics` are entries as in an include list.

    An empty `allow_zones` allows every zone, a filled one asks the target to be in at least one of them. One zone of
    the target in `deny_zones` is enough to refuse it: deny beats allow.

    Raises ValueError when an entry of `topics` is not a `Pattern`.
    """

    name: str
    topics: tuple[str, ...]
    allow_zones: frozenset[str] = frozenset()
    deny_zones: frozenset[str] = frozenset()
    _patterns: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_patterns", tuple(map(Pattern, self.topics)))

    def applies(self, names: Iterable[str]) -> bool:
        """Tell whether the policy is about a topic that has, or had, one of `names`."""
        return any(pattern.matches(name) for name in names for pattern in self._patterns)

    def refuses(self, zones: frozenset[str]) -> str | None:
        """Say why a target in `zones` may not hold the policy's topics."""
        if denied := self.deny_zones & zones:
            return f"policy {self.name!r} denies the zone {', '.join(sorted(denied))}"
        if self.allow_zones and not self.allow_zones & zones:
            allowed, found = ", ".join(sorted(self.allow_zones)), ", ".join(sorted(zones)) or "no zone"
            return f"policy {self.name!r} allows only {allowed}, the target is in {found}"
        return None


def blocked(
    topic: str, zones: frozenset[str], policies: Iterable[Policy], *, earlier: Iterable[str] = ()
) -> str | None:
    """Say which policy forbids `topic` on a target in `zones`; None when it may go there. Every policy has to agree.

    A policy applies when an entry matches the topic's name or one of `earlier`, the names it had before it hopped
    (`Naming.names`): who writes `customers*` means these data also as `us-east.customers-eu` on the next cluster. A
    topic renamed by a map or a template no longer tells its earlier name; its policy has to name the new one as well.
    """
    names = (topic, *earlier)
    for policy in policies:
        if policy.applies(names) and (reason := policy.refuses(zones)):
            return reason
    return None
