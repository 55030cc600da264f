"""Circles of flows."""

from __future__ import annotations

import pytest

from app.core.network import circle, reached

RING = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]


def test_clusters_are_reached_in_any_number_of_steps() -> None:
    assert reached("a", RING) == {"a", "b", "c", "d"}
    assert reached("d", RING) == frozenset()


@pytest.mark.parametrize("link", RING[:3])
def test_a_ring_is_one_circle(link: tuple[str, str]) -> None:
    assert circle(link, RING) == set(RING[:3])


def test_what_leads_out_of_it_is_not_part_of_it() -> None:
    assert circle(("c", "d"), RING) == frozenset()
