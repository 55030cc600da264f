"""Resolves `${NAME}` and `${file:/path}`, and keeps what they stood for out of messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.errors import Problem

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")


class References:
    """`problems` are the references that could not be resolved, by name."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self._environ = environ
        self._resolved: list[tuple[str, str, str]] = []  # where, what it stood for, the reference

    def resolve(self, value: Any, where: str) -> Any:
        """Return `value` with all references in its texts resolved; `$${` stands for `${`, `$` alone for itself."""
        if isinstance(value, dict):
            return {key: self.resolve(inner, f"{where}.{key}") for key, inner in value.items()}
        if isinstance(value, list):
            return [self.resolve(inner, f"{where}[{index}]") for index, inner in enumerate(value)]
        if isinstance(value, str):
            return _REFERENCE.sub(lambda match: self._replace(match, where), value)
        return value

    def explain(self, problem: Problem) -> bool:
        """Tell whether an unresolved reference, already a problem of its own, lies at or within the problem's place."""
        return any(f"{found.where}.".startswith(f"{problem.where}.") for found in self.problems)

    def hide(self, problem: Problem) -> Problem:
        """Return the problem with every resolved value at its place shown as the reference."""
        what = problem.what
        for where, value, reference in sorted(self._resolved, key=lambda found: -len(found[1])):
            if where.startswith(problem.where):
                what = what.replace(repr(value)[1:-1], reference).replace(value, reference)
        return Problem(problem.where, what)

    def _replace(self, match: re.Match[str], where: str) -> str:
        if match[0] == "$${":
            return "${"
        if not match[1]:
            self.problems.append(Problem(where, "a reference is written ${NAME} or ${file:/path}, a plain '${' '$${'"))
            return ""
        value = self._look_up(match[1], where)
        if value:
            self._resolved.append((where, value, match[0]))
        return value

    def _look_up(self, name: str, where: str) -> str:
        try:
            if name.startswith("file:"):
                return Path(name[5:]).read_text(encoding="utf-8").rstrip("\n")
            return self._environ[name]
        except KeyError:
            self.problems.append(Problem(where, f"environment variable {name} is not set"))
        except OSError as error:
            self.problems.append(Problem(where, f"file {name[5:]} cannot be read: {error.strerror}"))
        except ValueError:
            self.problems.append(Problem(where, f"file {name[5:]} cannot be read: it is not UTF-8"))
        return ""
