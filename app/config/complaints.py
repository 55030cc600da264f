"""What pydantic found wrong, in words of the configuration file."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import ValidationError

from app.config.base import Model, nearest
from app.errors import Problem

_MAPPING = "a mapping is expected, `name: value`"
_LIST = "a list is expected, `[a, b]`"
_WORDS = {
    "missing": "is missing",
    "string_type": "a text is expected; put it in quotes",
    "tuple_type": _LIST,
    "frozen_set_type": _LIST,
    "dict_type": _MAPPING,
    "mapping_type": _MAPPING,
    "model_type": _MAPPING,
    "too_short": "the list is empty",
    "string_too_short": "it is empty",
}


def problems(error: ValidationError, model: type[Model]) -> list[Problem]:
    """Return one problem for each error; no input is part of any of them but what our own validators show."""
    return [_problem(found, model) for found in error.errors(include_input=False, include_url=False)]


def _problem(found: Any, model: type[Model]) -> Problem:
    kind, location = found["type"], found["loc"]
    if kind == "extra_forbidden":
        return Problem(path(location[:-1]), unknown_key(location[-1], _model_at(location[:-1], model)))
    if kind == "literal_error":
        return Problem(path(location), f"it has to be {found['ctx']['expected']}")
    return Problem(path(location), _WORDS.get(kind) or found["msg"].removeprefix("Value error, "))


def unknown_key(key: str, model: type[Model]) -> str:
    """Say that `key` is none of the model's, and which it may stand for."""
    return f"unknown key {key!r}, {nearest(key, model.file_keys())}"


def path(location: tuple[int | str, ...]) -> str:
    """Return a place in the file as people write it: `flows[0].to`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _model_at(location: tuple[int | str, ...], model: Any) -> type[Model]:
    for part in location:
        if inner := [choice for choice in get_args(model) if choice is not Ellipsis]:
            model = inner[-1]
        else:
            model = next(field.annotation for name, field in model.model_fields.items() if part in (name, field.alias))
    return model  # type: ignore[no-any-return]
