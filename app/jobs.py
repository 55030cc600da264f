"""The end of background jobs, certain to come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

#: Seconds after which a job that goes on is cancelled again; what a job does at its end takes less.
AGAIN = 3.0


async def end_all(jobs: Iterable[asyncio.Future[Any]], again: float = AGAIN) -> None:
    """Cancel jobs and return when all are over, whatever they make of it; their errors were looked at, or do not count.

    Once is not enough: before Python 3.12 `asyncio.wait_for` loses a cancellation that comes in the moment of its
    answer, and the loop around it goes on. After a process was frozen, many answers come in one moment.
    """
    left = set(jobs)
    while left:
        for job in left:
            job.cancel()
        done, left = await asyncio.wait(left, timeout=again)
        for job in done:
            if not job.cancelled():
                job.exception()  # else asyncio tells of an error that nobody looked at
