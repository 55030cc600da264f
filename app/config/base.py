"""What all configuration models share: frozen, strict about names, and units for durations and sizes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from app.units import parse_duration, parse_size


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to add to "unknown name": the likely one meant, else all that are known."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names)}"


class Model(BaseModel):
    """Base of the models: an unknown key is most likely a typing error, so it is refused with the nearest name."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = {field.alias or name for name, field in cls.model_fields.items()} | set(cls.model_fields)
            shown = {field.alias or name for name, field in cls.model_fields.items()}
            unknown = [f"unknown key {key!r}, {nearest(str(key), shown)}" for key in data if key not in known]
            if unknown:
                raise ValueError("; ".join(unknown))
        return data


def _positive_duration(value: object) -> float:
    seconds = value if isinstance(value, float) else parse_duration(value)
    if seconds <= 0:
        raise ValueError("it has to be longer than nothing")
    return seconds


def _positive_size(value: object) -> int:
    size = parse_size(value)
    if size <= 0:
        raise ValueError("it has to be more than nothing")
    return size


#: Seconds, written as `500ms`, `5s`, `2m`.
Duration = Annotated[float, BeforeValidator(_positive_duration)]

#: Bytes, written as `64KiB`, `100MiB` or a number.
Size = Annotated[int, BeforeValidator(_positive_size)]


def _listed(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(f"write a list: [{value!r}]")  # noqa: TRY004 - pydantic reports ValueErrors
    return value


#: A list of names or patterns; a lone text is refused, since it would be read letter by letter.
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
