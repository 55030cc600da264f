"""What the environment asks of the demonstration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: What DEMO_DELIVERY may name.
DELIVERIES = ("exactly-once", "at-least-once")


class DemoFailed(Exception):
    """The demonstration cannot go on; one line for the person before the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """Ports, and how long it lasts: `seconds` of traffic, 0 until Ctrl-C."""

    seconds: float
    source_port: int
    target_port: int
    web_port: int
    delivery: str

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> DemoSettings:
        """Read the variables. Raises `DemoFailed` with the name of one that cannot be used."""
        delivery = environ.get("DEMO_DELIVERY") or DELIVERIES[0]
        if delivery not in DELIVERIES:
            raise DemoFailed(f"DEMO_DELIVERY={delivery} is not one of {', '.join(DELIVERIES)}")
        settings = cls(
            seconds=_seconds(environ.get("DEMO_SECONDS") or "0"),
            source_port=_port(environ, "DEMO_SOURCE_PORT", 19092),
            target_port=_port(environ, "DEMO_TARGET_PORT", 29092),
            web_port=_port(environ, "DEMO_WEB_PORT", 6066),
            delivery=delivery,
        )
        if len({settings.source_port, settings.target_port, settings.web_port}) < 3:
            raise DemoFailed("DEMO_SOURCE_PORT, DEMO_TARGET_PORT and DEMO_WEB_PORT must differ")
        return settings


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float("inf"):
        raise DemoFailed(f"DEMO_SECONDS={text} is not a number of seconds")
    return seconds


def _port(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise DemoFailed(f"{name}={text} is not a port (1 to 65535)")
    return int(text)
