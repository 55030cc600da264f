"""`faust -A app verify FLOW`: reads both sides of a flow and proves that the copies are the source's records."""

from __future__ import annotations

import json
import time

import click
import faust
from faust.cli import AppCommand, argument, option

from app.commands import chosen, configured
from app.config import Settings
from app.core.selection import Selector
from app.errors import ReplicatorError
from app.runtime.verification import Verification
from app.verify_report import Report

#: Seconds between two lines of progress.
PROGRESS = 5.0


def register(app: faust.App, settings: Settings | None) -> None:
    """Add the command to the application."""
    topics = option("--topics", "topics", default="*", help="Only these topics of the source: patterns, with commas.")
    last = option("--last", "last", type=click.IntRange(min=1), help="Only the last N offsets of each partition.")
    as_json = option("--json", "as_json", is_flag=True, help="Print one JSON document.")

    @app.command(argument("flow"), topics, last, as_json)
    async def verify(self: AppCommand, flow: str, topics: str, last: int | None, as_json: bool) -> None:
        """Compare every record of a flow's source with its copy on the target: there, once, in order, and equal.

        The flow may run meanwhile; what it has not acknowledged yet is counted, not compared. The exit code is 0 when
        all is equal, 1 when differences were found, 2 when something could not be verified.
        """
        found = configured(app, settings)
        (config,) = chosen(found, flow)
        report = Report(config)
        try:
            await _verify(report, found, Selector(include=tuple(topics.split(","))), last)
        except (ReplicatorError, ValueError) as error:
            report.error = str(error)
        if as_json or self.json:
            click.echo(json.dumps(report.as_json(), indent=2))
        else:
            report.show()
        if code := report.exit_code:
            raise SystemExit(code)


async def _verify(report: Report, settings: Settings, topics: Selector, last: int | None) -> None:
    async with Verification(report.config, settings, last=last).open() as verification:
        routes = await verification.routes(topics)
        if not routes:
            raise ReplicatorError("no topic of the source is carried and selected; see `faust -A app plan`")
        if not any(map(verification.replicated, routes)):
            raise ReplicatorError("nothing of these topics was replicated yet: no position is stored on the target")
        progress = Progress(len(routes))
        async for checked in verification.check(routes, progress.show):
            report.add(checked)
            progress.done += 1
        progress.show(verification.records, last=True)


class Progress:
    """Tells on stderr how far the comparison is."""

    def __init__(self, partitions: int) -> None:
        self.done = 0
        self._partitions = partitions
        self._begun = self._said = time.monotonic()

    def show(self, records: int, *, last: bool = False) -> None:
        """Print a line, if it is time for one."""
        now = time.monotonic()
        if last or now - self._said >= PROGRESS:
            self._said = now
            rate = records / max(0.001, now - self._begun)
            text = f"verify: {self.done} of {self._partitions} partitions, {records} records read, {rate:.0f} records/s"
            click.echo(text, err=True)
