"""Jobs end when they have to, also when a cancellation is lost."""

from __future__ import annotations

import asyncio

from app.jobs import end_all


async def looping(losses: int) -> None:
    """Lose some cancellations, as wait_for does."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if losses == 0:
                raise
            losses -= 1


async def failing() -> None:
    raise ValueError


async def failing_at_the_end() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        raise ValueError


def test_a_job_that_loses_cancellations_is_cancelled_again() -> None:
    async def run() -> None:
        jobs = [asyncio.create_task(job) for job in (looping(0), looping(2), failing(), failing_at_the_end())]
        await asyncio.sleep(0)
        await asyncio.wait_for(end_all(jobs, again=0.01), 5)
        assert all(job.done() for job in jobs)

    asyncio.run(run())


def test_nothing_to_end() -> None:
    asyncio.run(end_all([]))
