"""Where a record has been: one header per hop, appended behind the record's own headers."""

from __future__ import annotations

from collections.abc import Iterable

ORIGIN_HEADER = "__krabka_origin"

Header = tuple[str, bytes | None]


def origin_header(alias: str) -> tuple[str, bytes]:
    """Return the header that a flow from the cluster `alias` appends."""
    return ORIGIN_HEADER, alias.encode()


def origins(headers: Iterable[Header]) -> tuple[str, ...]:
    """Return the aliases of the clusters a record was replicated from, the first hop first."""
    return tuple(value.decode(errors="replace") for key, value in headers if key == ORIGIN_HEADER and value is not None)


def returns_home(headers: Iterable[Header], source: str, target: str) -> bool:
    """Tell whether a record must be dropped because it has left the target, or the source, before.

    For topics whose name does not tell where they came from (`Naming.names_origin`). A record that carries the source's
    own alias has left the source and come back: whoever wants it already has it.
    """
    for key, value in headers:
        if key == ORIGIN_HEADER and value is not None and value.decode(errors="replace") in (source, target):
            return True
    return False
