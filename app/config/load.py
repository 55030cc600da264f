"""From a YAML file and the environment to `Settings`, or to everything that is wrong with them."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from app.config.base import nearest
from app.config.models import Settings
from app.config.runtime import RuntimeConfig
from app.core.naming import ambiguous
from app.errors import ConfigurationError, Problem

PREFIX = "KRABKA_REPLICATOR_"
DEFAULT_FILE = "replicator.yaml"

#: Environment variables of ours that are no runtime settings.
OTHER_VARIABLES = ("CONFIG", "CLUSTERS", "GROUP_INSTANCE_ID")

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}")


def load_settings(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check the configuration.

    Raises:
        ConfigurationError: with every problem found. No value that may be secret is part of it.
    """
    environ = os.environ if environ is None else environ
    path = path or Path(environ.get(f"{PREFIX}CONFIG", DEFAULT_FILE))
    problems: list[Problem] = []
    document = _read(path)
    document = _resolved_clusters(document, environ, problems)
    document = _overridden(document, environ, problems)
    if problems:
        raise ConfigurationError(str(path), tuple(problems))
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError(str(path), _problems(error)) from None
    if problems := _cross_checks(settings):
        raise ConfigurationError(str(path), tuple(problems))
    return settings


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice: the first would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"{key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except FileNotFoundError:
        what = f"there is no such file; write one, or name another by {PREFIX}CONFIG"
        raise ConfigurationError(str(path), (Problem("", what),)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), (Problem("", f"cannot be read: {error}"),)) from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(str(path), (Problem(line, f"{error.problem}"),)) from None
    except yaml.YAMLError:
        raise ConfigurationError(str(path), (Problem("", "this is not YAML"),)) from None
    if not isinstance(document, dict):
        raise ConfigurationError(str(path), (Problem("", "a mapping with clusters and flows is expected"),))
    return document


def _resolved_clusters(document: dict[str, Any], environ: Mapping[str, str], problems: list[Problem]) -> dict[str, Any]:
    """Resolve `${NAME}` and `${file:/path}` in what is said of clusters: only there may secrets stand."""
    if "clusters" not in document:
        return document
    return document | {"clusters": _resolved(document["clusters"], "clusters", environ, problems)}


def _resolved(value: Any, where: str, environ: Mapping[str, str], problems: list[Problem]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(inner, f"{where}.{key}", environ, problems) for key, inner in value.items()}
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "${"
        try:
            return (
                Path(name[5:]).read_text(encoding="utf-8").rstrip("\n") if name.startswith("file:") else environ[name]
            )
        except KeyError:
            problems.append(Problem(where, f"environment variable {name} is not set"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            problems.append(Problem(where, f"file {name[5:]} cannot be read: {reason}"))
        return ""

    return _REFERENCE.sub(replace, value)


def _overridden(document: dict[str, Any], environ: Mapping[str, str], problems: list[Problem]) -> dict[str, Any]:
    runtime = dict(document.get("runtime") or {})
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable.removeprefix(PREFIX) in OTHER_VARIABLES:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in RuntimeConfig.model_fields:
            runtime[name] = value
        else:
            known = [PREFIX + other.upper() for other in (*RuntimeConfig.model_fields, *OTHER_VARIABLES)]
            problems.append(Problem(variable, f"unknown variable, {nearest(variable, known)}"))
    targets = tuple(alias.strip() for alias in environ.get(f"{PREFIX}CLUSTERS", "").split(",") if alias.strip())
    document = document | {"runtime": runtime, "only_targets": targets}
    if instance := environ.get(f"{PREFIX}GROUP_INSTANCE_ID"):
        document["group_instance_id"] = instance
    return document


def _problems(error: ValidationError) -> tuple[Problem, ...]:
    return tuple(
        Problem(_path(found["loc"]), found["msg"].removeprefix("Value error, "))
        for found in error.errors(include_input=False, include_url=False)
    )


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def _cross_checks(settings: Settings) -> list[Problem]:
    problems = [] if settings.flows else [Problem("flows", "nothing is replicated; add a flow: {from: ..., to: ...}")]
    names: dict[str, int] = {}
    for index, flow in enumerate(settings.flows):
        for key, alias in (("from", flow.source), ("to", flow.target)):
            if alias not in settings.clusters:
                hint = nearest(alias, settings.clusters)
                problems.append(Problem(f"flows[{index}].{key}", f"unknown cluster {alias!r}, {hint}"))
        if flow.name in names:
            problems.append(Problem(f"flows[{index}]", f"is the flow {flow.name} again, see flows[{names[flow.name]}]"))
        names.setdefault(flow.name, index)
        for one, other in ambiguous(settings.clusters, flow.separator):
            what = f"aliases {one!r} and {other!r} look alike in a topic's name, separator {flow.separator!r}"
            problems.append(Problem(f"flows[{index}].separator", what))
    targets = {flow.target for flow in settings.flows}
    for alias in settings.only_targets:
        if alias not in targets:
            problems.append(Problem(f"{PREFIX}CLUSTERS", f"no flow goes to {alias!r}, {nearest(alias, targets)}"))
    return problems
