"""What all configuration models share: frozen, strict about names, and units for durations and sizes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from app.units import format_duration, format_size, parse_duration, parse_size


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to add to "unknown name": the likely one meant, else all that are known."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names)}"


class Model(BaseModel):
    """Base of the models: an unknown key is most likely a typing error, so it is refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, populate_by_name=True, hide_input_in_errors=True
    )

    @classmethod
    def file_keys(cls) -> tuple[str, ...]:
        """Return the keys that the file may hold; what only the environment sets is none."""
        return tuple(field.alias or name for name, field in cls.model_fields.items() if not field.exclude)


#: Kafka's protocol counts milliseconds and bytes in 31 bits.
MAX_COUNT = 2**31 - 1
MAX_SECONDS = 24 * 86400.0


def _positive_duration(value: object) -> float:
    seconds = value if isinstance(value, float) else parse_duration(value)
    if not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"it has to be longer than nothing and at most {format_duration(MAX_SECONDS)}")
    return seconds


def _positive_size(value: object) -> int:
    size = parse_size(value)
    if not 0 < size <= MAX_COUNT:
        raise ValueError(f"it has to be more than nothing and at most {MAX_COUNT} bytes")
    return size


#: Slower than this, a batch of ordinary size would wait for a quarter of an hour.
SLOWEST = 1024


def _rate(value: object) -> int | None:
    rate = None if value is None else _positive_size(value)
    if rate is not None and rate < SLOWEST:
        raise ValueError(f"it has to be at least {format_size(SLOWEST)}")
    return rate


def _count(value: object) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MAX_COUNT:
        raise ValueError(f"it has to be a whole number from 1 to {MAX_COUNT}")
    return value


def _switch(value: object) -> bool:
    word = value.strip().lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if word not in ("true", "false"):
        raise ValueError("it has to be true or false")
    return word == "true"


#: Seconds, written as `500ms`, `5s`, `2m`.
Duration = Annotated[float, BeforeValidator(_positive_duration)]

#: Bytes, written as `64KiB`, `100MiB` or a number.
Size = Annotated[int, BeforeValidator(_positive_size)]


#: Bytes per second, written as a size; None is no limit.
Rate = Annotated[int | None, BeforeValidator(_rate)]


def _listed(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(f"write a list: [{value!r}]")  # noqa: TRY004 - pydantic reports ValueErrors
    return value


#: How many, at least 1.
Count = Annotated[int, BeforeValidator(_count)]

#: On or off.
Switch = Annotated[bool, BeforeValidator(_switch)]

#: A list of names or patterns; a lone text is refused, since it would be read letter by letter.
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
