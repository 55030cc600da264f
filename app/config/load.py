"""From a YAML file and the environment to `Settings`, or to everything that is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.config.base import nearest
from app.config.checks import cross_checks
from app.config.complaints import problems as complaints
from app.config.complaints import unknown_key
from app.config.document import read_document
from app.config.models import Settings
from app.config.references import References
from app.config.runtime import RuntimeConfig
from app.errors import ConfigurationError, Problem

PREFIX = "KRABKA_REPLICATOR_"
DEFAULT_FILE = "replicator.yaml"

#: Environment variables of ours that are no runtime settings.
OTHER_VARIABLES = ("CONFIG", "CLUSTERS", "GROUP_INSTANCE_ID")


def load_settings(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read and check the configuration.

    Raises:
        ConfigurationError: with every problem found. No value that may be secret is part of it.
    """
    environ = os.environ if environ is None else environ
    path = path or settings_path(environ)
    document = read_document(path, f"write one, or name another by {PREFIX}CONFIG")
    references = References(environ)
    try:
        settings, problems = _checked(document, environ, references)
    except RecursionError:
        raise ConfigurationError(str(path), (Problem("", "it holds itself, by an alias ('*')"),)) from None
    if settings is None or problems:
        raise ConfigurationError(str(path), tuple(map(references.hide, problems)))
    return settings


def settings_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return where the configuration is."""
    return Path((os.environ if environ is None else environ).get(f"{PREFIX}CONFIG") or DEFAULT_FILE)


def _checked(
    document: dict[str, Any], environ: Mapping[str, str], references: References
) -> tuple[Settings | None, list[Problem]]:
    hidden = [key for key in document if key in Settings.model_fields and key not in Settings.file_keys()]
    problems = [Problem("", unknown_key(key, Settings)) for key in hidden]
    for section in ("clusters", "web"):  # only here may secrets stand
        if section in document:
            document = document | {section: references.resolve(document[section], section)}
    problems += references.problems
    variables, unknown = _variables(environ)
    problems += unknown
    targets = tuple(alias.strip() for alias in environ.get(f"{PREFIX}CLUSTERS", "").split(",") if alias.strip())
    problems += cross_checks(document, targets, f"{PREFIX}CLUSTERS")
    document = _overridden(document, variables)
    document |= {"only_targets": targets, "group_instance_id": environ.get(f"{PREFIX}GROUP_INSTANCE_ID") or None}
    try:
        return Settings.model_validate(document), problems
    except ValidationError as error:
        found = [problem for problem in complaints(error, Settings) if not references.explain(problem)]
        return None, problems + [_at_variable(problem, variables) for problem in found]


def _variables(environ: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """Return the runtime settings that the environment makes, and its variables that are none."""
    known = [PREFIX + name.upper() for name in (*RuntimeConfig.model_fields, *OTHER_VARIABLES)]
    ours = {variable: value for variable, value in environ.items() if variable.startswith(PREFIX)}
    unknown = [
        Problem(variable, f"unknown variable, {nearest(variable, known)}") for variable in ours if variable not in known
    ]
    names = {variable: variable.removeprefix(PREFIX).lower() for variable in ours}
    return {name: ours[variable] for variable, name in names.items() if name in RuntimeConfig.model_fields}, unknown


def _overridden(document: dict[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    runtime = document.get("runtime", {})
    if not isinstance(runtime, dict):
        return dict(document)
    # `5.0` has no unit: as a text it is refused as one, while code may give the models plain seconds.
    plain = {name: str(value) if isinstance(value, float) else value for name, value in runtime.items()}
    return document | {"runtime": plain | dict(variables)}


def _at_variable(problem: Problem, variables: Mapping[str, str]) -> Problem:
    section, _, name = problem.where.partition(".")
    if section == "runtime" and name in variables:
        return Problem(PREFIX + name.upper(), problem.what)
    return problem
