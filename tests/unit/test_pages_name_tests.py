"""Pages that lean on tests name tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGES = ("mm2-behaviour", "guarantees")


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_is_named_exists(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))
    assert len(named) >= 20
    missing = [f"{path}::{name}" for path, name in named if name not in functions(path)]
    assert missing == []
