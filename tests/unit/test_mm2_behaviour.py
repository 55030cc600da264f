"""docs/mm2-behaviour.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (ROOT / "docs/mm2-behaviour.md").read_text(encoding="utf-8"))


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_is_named_exists() -> None:
    assert len(NAMED) > 30
    missing = [f"{path}::{name}" for path, name in NAMED if name not in functions(path)]
    assert missing == []
