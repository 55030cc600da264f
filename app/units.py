"""Durations and sizes as people write them: `500ms`, `5s`, `2m`, `100MiB`, `50MB`."""

from __future__ import annotations

import re

_DURATIONS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_duration(text: object) -> float:
    """Return seconds. A bare number is refused, since nobody can tell seconds from milliseconds. Raises ValueError."""
    return _parse(text, _DURATIONS, "a duration such as 500ms, 5s or 2m")


def parse_size(text: object) -> int:
    """Return bytes; a bare number is bytes. Raises ValueError."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    if isinstance(text, str) and text.strip().isdigit():
        return int(text)
    return round(_parse(text, _SIZES, "a size such as 64KiB, 100MiB or 1000000"))


def _parse(text: object, units: dict[str, float] | dict[str, int], wanted: str) -> float:
    found = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"{text!r} is not {wanted}")
    return float(found[1]) * units[found[2]]


def format_duration(seconds: float) -> str:
    """Return the shortest form that `parse_duration` reads back."""
    for unit in ("d", "h", "m", "s"):
        amount = seconds / _DURATIONS[unit]
        if amount >= 1 and amount == int(amount):
            return f"{int(amount)}{unit}"
    return f"{seconds * 1000:g}ms"


def format_size(size: int) -> str:
    """Return the shortest form that `parse_size` reads back."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= _SIZES[unit] and size % _SIZES[unit] == 0:
            return f"{size // _SIZES[unit]}{unit}"
    return f"{size}B"
