"""Pages for people: their links lead somewhere, and docs/concepts.md uses names and numbers of the code."""

import re
from pathlib import Path

import pytest

from app.core.naming import HEARTBEATS, Naming
from app.core.offset_index import Exact, OffsetIndex
from app.core.provenance import ORIGIN_HEADER
from app.runtime.task import POSITIONS_TOPIC

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for path in ROOT.glob(pattern))
CONCEPTS = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_concepts_and_examples_are_found_from_the_front_page() -> None:
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"(docs/concepts.md)", "(examples/README.md)"} <= set(re.findall(r"\(\S+?\.md\)", front))


def test_the_names_in_concepts_are_the_code_s() -> None:
    naming = Naming(source="<source>", target="<target>")
    names = (naming.syncs_topic, naming.checkpoints_topic, POSITIONS_TOPIC, ORIGIN_HEADER, HEARTBEATS)
    assert [name for name in names if f"`{name}`" not in CONCEPTS] == []
    hop = Naming(source="eu-west", target="ap", aliases=frozenset({"us-east"})).remote_topic("us-east.orders")
    assert f"named `{hop}`" in CONCEPTS


def test_the_offsets_in_concepts_are_translated_as_it_says() -> None:
    index = OffsetIndex(8)
    index.observe(40, 12, 2)
    index.observe(43, 14, 3)
    stood, goes_on = map(int, re.findall(r"stood at (\d+) on us-east goes on at\s+(\d+)", CONCEPTS)[0])
    assert index.translate(stood) == Exact(goes_on)
    assert index.translate(43) == Exact(14)
