"""The last things worth an operator's look, for the dashboard: warnings and worse from the log, and rebalances."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

KEPT = 200

#: Parts of the application whose words are meant for operators. Clients' own warnings stay in the log.
SPEAKERS = ("app", "agents", "tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One sentence; `time` is in seconds of the wall clock.

    `kind` is loss, refused, dead-letter, fenced, failed or rebalance, None for anything else.
    """

    time: float
    level: str
    kind: str | None = None
    text: str


class EventLog(logging.Handler):
    """Keeps the last events. The same sentence again, at once, is counted as new only after others."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.events: deque[Event] = deque(maxlen=KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record, without its traceback; its author may have named a `kind` (`extra`)."""
        kind, level = getattr(record, "kind", None), record.levelname.lower()
        self.add(Event(time=record.created, level=level, kind=kind, text=record.getMessage()))

    def add(self, event: Event) -> None:
        """Take an event."""
        if self.events and self.events[-1].text == event.text:
            self.events.pop()
        self.events.append(event)

    def attach(self) -> None:
        """Listen to the application's loggers; once, however often it is called."""
        for name in SPEAKERS:
            logger = logging.getLogger(name)
            if self not in logger.handlers:
                logger.addHandler(self)
