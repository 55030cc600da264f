"""Durations and sizes as people write them: `500ms`, `5s`, `2m`, `100MiB`, `50MB`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

# Decimals, so that `3ms` is exactly the float that 0.003 is, and every duration survives being written and read.
_DURATIONS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_SIZES = {
    unit: Decimal(size)
    for unit, size in {
        "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30
    }.items()
}  # fmt: skip
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_BYTES = re.compile(r"\s*[0-9]+\s*")


def parse_duration(text: object) -> float:
    """Return seconds. A bare number is refused, since nobody can tell seconds from milliseconds. Raises ValueError."""
    return float(_parse(text, _DURATIONS, "a duration such as 500ms, 5s or 2m"))


def parse_size(text: object) -> int:
    """Return bytes; a bare number is bytes. Raises ValueError."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    if isinstance(text, str) and _BYTES.fullmatch(text):
        return int(text)
    return round(_parse(text, _SIZES, "a size such as 64KiB, 100MiB or 1000000"))


def _parse(text: object, units: Mapping[str, Decimal], wanted: str) -> Decimal:
    found = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"{text!r} is not {wanted}")
    return Decimal(found[1]) * units[found[2]]


def format_duration(seconds: float) -> str:
    """Return the shortest form that `parse_duration` reads back as the same number."""
    exact = Decimal(repr(float(seconds)))
    for unit in ("d", "h", "m", "s"):
        amount = exact / _DURATIONS[unit]
        if amount >= 1 and amount == amount.to_integral_value():
            return f"{int(amount)}{unit}"
    text = f"{exact * 1000:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}ms"


def format_size(size: int) -> str:
    """Return the shortest form that `parse_size` reads back."""
    for unit in ("GiB", "MiB", "KiB"):
        amount, rest = divmod(size, int(_SIZES[unit]))
        if amount and not rest:
            return f"{amount}{unit}"
    return f"{size}B"
