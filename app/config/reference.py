"""Writes docs/configuration.md from the models: `python -m app.config.reference` prints it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from app.config import base, models, sync, web
from app.config.load import DEFAULT_FILE, PREFIX
from app.config.runtime import WITHOUT_EFFECT, RuntimeConfig

#: The example at the top; a test loads it.
EXAMPLE = """\
clusters:
  us-east: {bootstrap: "127.0.0.1:19092", region: us-east-1, zones: [us]}
  eu-west: {bootstrap: "127.0.0.1:29092", zones: [eu, gdpr]}
flows:
  - {from: us-east, to: eu-west, topics: {include: ["*"], exclude: []}, groups: {include: ["*"]}, naming: default, \
delivery: at-least-once, tasks: 8}
policies:
  - {name: gdpr, topics: ["customers*"], residency: {allow_zones: [gdpr], deny_zones: []}}
runtime: {heartbeat_interval: 1s}
"""

_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("clusters.<alias>", models.ClusterConfig),
    ("clusters.<alias>.security", models.SecurityConfig),
    ("flows[]", models.FlowConfig),
    ("flows[].topics, flows[].groups", models.NameFilter),
    ("flows[].sync", sync.SyncConfig),
    ("flows[].limits", models.Limits),
    ("policies[]", models.PolicyConfig),
    ("policies[].residency", models.Residency),
    ("web", web.WebConfig),
    ("runtime", RuntimeConfig),
)
_VALIDATORS: dict[Any, str] = {
    base._positive_duration: "duration",
    base._positive_size: "size",
    base._rate: "size",
    base._count: "whole number from 1",
    base._switch: "`true` or `false`",
    base._listed: "list of texts",
    sync._start: "`earliest`, `latest` or a time (ISO 8601; UTC if it names no zone)",
}
_HEAD = f"""\
# Configuration

Generated from the models by `python -m app.config.reference`.

The file is named by `{PREFIX}CONFIG`; without it, `{DEFAULT_FILE}` in the working folder is read.

```yaml
{EXAMPLE}```

- A duration is a number with a unit: `500ms`, `5s`, `2m`, `1h`, `1d`. A size is a number of bytes, or one with a unit:
  `64KiB`, `100MiB`, `50MB`.
- In everything below `clusters` and `web`, `${{NAME}}` stands for an environment variable and `${{file:/path}}` for
  what a file holds, without line ends at its end. `$${{` stands for `${{`; any other `$` is itself. What cannot be
  resolved is refused.
- An unknown key, a key given twice, an unknown alias, two flows with one name and two topics that a map gives one name
  are refused. All problems are reported at once, by their place in the file; no value that may be secret is shown.
- Every setting of `runtime` may be given by the environment, in capitals behind `{PREFIX}`, for example
  `{PREFIX}HEARTBEAT_INTERVAL=2s`. The environment wins. An unknown variable with that beginning is refused.
- `{PREFIX}CLUSTERS=eu-west,ap` limits a worker to the flows into these clusters.
  `{PREFIX}GROUP_INSTANCE_ID` names a worker that keeps its tasks over a restart.
- An entry of a list of topics or groups is a name in which `*` stands for any characters, or `re:` and a regular
  expression for the whole name. Exclude wins; an empty include matches nothing.
- A value that begins with `*`, `&`, `!`, `%` or `@`, or holds ` #` or `: `, needs quotes in YAML.
"""


def reference() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(_section(where, model) for where, model in _SECTIONS)])


def _section(where: str, model: type[BaseModel]) -> str:
    rows = "\n".join(_row(name, field) for name, field in model.model_fields.items())
    return f"## {where}\n\n{model.__doc__}\n\n| name | type | default | meaning |\n|---|---|---|---|\n{rows}\n"


def _row(name: str, field: FieldInfo) -> str:
    meaning = field.description or ""
    if why := WITHOUT_EFFECT.get(name):
        meaning = f"without effect: {why}"
    cells = (f"`{field.alias or name}`", _type(field), _default(field), meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _type(field: FieldInfo) -> str:
    for part in field.metadata:
        if words := _VALIDATORS.get(getattr(part, "func", None)):
            bounds = [bound.le for bound in field.metadata if hasattr(bound, "le")]
            return f"{words} to {bounds[0]}" if bounds else words
    return _words(field.annotation)


def _words(annotation: Any) -> str:
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in inner)
    if get_origin(annotation) in (frozenset, tuple):
        return "list of texts"
    if get_origin(annotation) is Mapping:
        return "mapping"
    if inner:
        return " or ".join(_words(choice) for choice in inner if choice is not type(None))
    if annotation is SecretStr:
        return "text, secret"
    return "mapping" if isinstance(annotation, type) and issubclass(annotation, BaseModel) else "text"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.default
    if isinstance(value, BaseModel):
        return "defaults of its own"
    return f"`{_shown(value)}`" if value is not None else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | frozenset):
        return f"[{', '.join(f'{chr(34)}{entry}{chr(34)}' for entry in sorted(value))}]"
    return str(value)


if __name__ == "__main__":
    sys.stdout.write(reference())
