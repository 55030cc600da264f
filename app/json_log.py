"""A worker's log as JSON (`runtime.logging: json`): each line is an object with time, level, logger and message.

A record that tells of an exception has its traceback under `exception`; what its author added (`extra`) stands beside.
Only what ends the process, such as a configuration that is refused, is still written as text.
"""

from __future__ import annotations

from typing import Any

from faust.cli.worker import worker as faust_worker

from app.config import Settings

_FORMATTER = {
    "()": "pythonjsonlogger.json.JsonFormatter",
    "fmt": ("time", "levelname", "name", "message"),
    "rename_fields": {"levelname": "level", "name": "logger", "exc_info": "exception", "stack_info": "stack"},
    "timestamp": "time",
}

#: For Faust: its own handlers and the level of `--loglevel`, with other formatters (one is for files, one for stderr).
CONFIG: dict[str, Any] = {"merge": True, "formatters": {"default": _FORMATTER, "colored": _FORMATTER}}


def wanted(settings: Settings | None) -> bool:
    """Tell whether the log is to be JSON; without a configuration it is text."""
    return settings is not None and settings.runtime.logging == "json"


def register(settings: Settings | None) -> None:
    """Replace the command `worker` by one that prints no banner, where the log is JSON."""
    if not wanted(settings):
        return

    class worker(faust_worker):  # type: ignore[misc]
        __doc__ = faust_worker.__doc__

        def on_worker_created(self, worker: Any) -> None:
            pass
