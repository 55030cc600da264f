"""Reads YAML strictly. What it says of an error holds a line number and no value, since any value may be a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from app.errors import ConfigurationError, Problem

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"

#: Messages of PyYAML that quote the value, by how they begin, and what is said in their place.
_INSTEAD = {
    "found undefined alias": "a value that begins with '*' needs quotes",
    "second occurrence": "a value that begins with '&' needs quotes",
    "could not determine a constructor": "a value that begins with '!' needs quotes",
    "found undefined tag handle": "a value that begins with '!' needs quotes",
}


class _Loader(yaml.SafeLoader):
    """YAML whose keys are texts, each given once: of two equal ones the first would be lost without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if key.tag != _TEXT:
                raise _error(key, "a key has to be text; put it in quotes")
            if key.value in seen:
                raise _error(key, f"{key.value!r} is given twice")
            seen.add(key.value)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError:
            raise _error(node, "this looks like a date or a number and is none; put it in quotes") from None


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def read_document(path: Path, hint: str) -> dict[str, Any]:
    """Return the mapping in a file; sections without content are left out.

    `hint` completes the sentence on a missing file. Raises ConfigurationError with the one thing that is wrong.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(str(path), (_problem(error, hint),)) from None
    if not isinstance(document, dict):
        raise ConfigurationError(str(path), (Problem("", "a mapping with clusters and flows is expected"),))
    return {key: value for key, value in document.items() if value is not None}


def _problem(error: Exception, hint: str) -> Problem:
    match error:
        case FileNotFoundError():
            return Problem("", f"there is no such file; {hint}")
        case OSError():
            return Problem("", f"cannot be read: {error.strerror}")
        case ValueError():
            return Problem("", "cannot be read: it is not UTF-8")
        case RecursionError():
            return Problem("", "it is nested too deeply")
        case yaml.MarkedYAMLError() if error.problem_mark is not None:
            said = error.problem or "this is not YAML"
            instead = (text for beginning, text in _INSTEAD.items() if said.startswith(beginning))
            return Problem(f"line {error.problem_mark.line + 1}", next(instead, said))
    return Problem("", "this is not YAML")
