"""What the flows of a configuration are to each other: circles in which names and records could go round."""

from __future__ import annotations

from collections.abc import Iterable

#: A flow as (source, target).
Link = tuple[str, str]


def reached(start: str, links: Iterable[Link]) -> frozenset[str]:
    """Return the clusters that flows lead to from `start`, in any number of steps."""
    links = list(links)
    found: set[str] = set()
    ahead = [start]
    while ahead:
        here = ahead.pop()
        new = {target for source, target in links if source == here} - found
        found |= new
        ahead += new
    return frozenset(found)


def circle(link: Link, links: Iterable[Link]) -> frozenset[Link]:
    """Return the flows that lie on a circle with `link`, itself included; empty when no way leads back."""
    links = list(links)
    source, target = link
    if source not in reached(target, links):
        return frozenset()
    return frozenset(
        (one, other)
        for one, other in links
        if (one == target or one in reached(target, links)) and (other == source or source in reached(other, links))
    )
