"""The last things worth an operator's look, for the dashboard: what was logged as a warning or worse."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

KEPT = 200

#: Parts of the application whose words are meant for operators. Clients' own warnings stay in the log.
SPEAKERS = ("app", "agents", "tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One logged sentence; `time` is in seconds of the wall clock."""

    time: float
    level: str
    text: str


class EventLog(logging.Handler):
    """Keeps the last events. The same sentence again, at once, is counted as new only after others."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.events: deque[Event] = deque(maxlen=KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record, without its traceback."""
        text = record.getMessage()
        if self.events and self.events[-1].text == text:
            self.events.pop()
        self.events.append(Event(time=record.created, level=record.levelname.lower(), text=text))

    def attach(self) -> None:
        """Listen to the application's loggers; once, however often it is called."""
        for name in SPEAKERS:
            logger = logging.getLogger(name)
            if self not in logger.handlers:
                logger.addHandler(self)
