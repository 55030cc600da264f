"""SIGHUP, by which daemons are told that their configuration has changed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any

from mode import Service

from app.errors import ConfigurationError
from app.runtime.reload import Reloader


class Hangup(Service):  # type: ignore[misc]
    """Reloads at each SIGHUP, but not in a terminal: there the signal says that it was closed, and ends the worker."""

    def __init__(self, reloader: Reloader, **options: Any) -> None:
        super().__init__(**options)
        self._reloader = reloader
        self._jobs: set[asyncio.Task[None]] = set()

    async def on_start(self) -> None:
        """Begin to listen."""
        if _in_terminal():
            return
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._signalled)

    async def on_stop(self) -> None:
        """Listen no longer."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        for job in self._jobs:
            job.cancel()

    def _signalled(self) -> None:
        job = asyncio.create_task(self._reload(), name="reload")
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _reload(self) -> None:
        with contextlib.suppress(ConfigurationError):  # the reloader has told of it
            await self._reloader.reload()


def _in_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
