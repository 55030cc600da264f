"""What operators want of each flow: paused or not, and the last restart asked for.

A compacted topic on the flow's target, one record per flow, that every worker follows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from app.config import Settings
from app.kafka.admin import Admin
from app.kafka.positions import read_to_end

log = logging.getLogger(__name__)


def controls_topic(target: str) -> str:
    """Return the topic's name."""
    return f"krabka-replicator-{target}-controls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The wish for one flow, given at `at` (seconds of the wall clock); a new name in `restart` asks for one."""

    paused: bool = False
    restart: str = ""
    at: float = 0.0

    def value(self) -> bytes:
        """Return the bytes of a record's value."""
        return json.dumps({"paused": self.paused, "restart": self.restart, "at": self.at}).encode()

    @classmethod
    def decode(cls, value: bytes) -> Control:
        """Read a value. Raises ValueError for bytes that are none."""
        document = json.loads(value)
        if not isinstance(document, dict) or not isinstance(document.get("paused"), bool):
            raise ValueError(f"not a flow's control: {value[:80]!r}")  # noqa: TRY004 - as for bytes that are no JSON
        return cls(
            paused=document["paused"], restart=str(document.get("restart", "")), at=float(document.get("at", 0.0))
        )


def controls_of(records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[str, Control]:
    """Return the last wish for each flow; a tombstone takes one away, and what is malformed is left out."""
    found: dict[str, Control] = {}
    for key, value in records:
        name = (key or b"").decode(errors="replace")
        try:
            if value is None:
                found.pop(name, None)
            else:
                found[name] = Control.decode(value)
        except ValueError as error:
            log.warning("flow %s: a control record is left out, see who else writes to its topic: %s", name, error)
    return found


async def stored_controls(target: str, settings: Settings) -> dict[str, Control]:
    """Read the topic to its end. Raises `ReplicatorError`."""
    cluster, topic = settings.clusters[target], controls_topic(target)
    admin = Admin(target, cluster, settings.runtime)
    try:
        if topic not in await admin.describe([topic]):
            return {}
        return controls_of(await read_to_end(admin, cluster, settings.runtime, topic, [0], decided=False))
    finally:
        admin.close()
