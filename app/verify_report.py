"""What `faust -A app verify` prints: findings, each with its place and what to do, and a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, fields
from typing import Any

import click

from app.commands_lag import table
from app.config import FlowConfig
from app.core.verify import KEPT, Finding, Tally
from app.runtime.verification import Checked

FIXES = {
    "missing": "delete {target} and the flow fills it again; look at losses in /status for that time",
    "doubled": "consumers have read it twice; to be rid of it delete {target} and the flow fills it again",
    "out of order": "see who else writes to {target}; delete it and the flow fills it again",
    "different": "see who else writes to {target}; delete it and the flow fills it again",
    "foreign": "see who else writes to {target} and take away the right to WRITE there",
    "index": "look at offsets with `translate GROUP` before a group moves; delete {target} and the flow fills it again",
}

#: Columns of the table by what they count; those that are shown when they are 0 come first.
ALWAYS_SHOWN = {"equal": "EQUAL", "differences": "DIFFERENCES", "pending": "NOT YET"}
COLUMNS = ALWAYS_SHOWN | {
    "repeated": "REPEATED",
    "dropped": "CAME FROM TARGET",
    "dead_letters": "DEAD LETTERS",
    "replaced": "COMPACTED",
    "gone_from_source": "GONE FROM SOURCE",
    "gone_from_target": "GONE FROM TARGET BY RETENTION",
    "before_start": "BEFORE START",
}


class Report:
    """What was found of a flow."""

    def __init__(self, config: FlowConfig) -> None:
        self.config = config
        self.error: str | None = None
        self.partitions: list[Checked] = []

    def add(self, checked: Checked) -> None:
        """Take a partition."""
        self.partitions.append(checked)

    @property
    def repeats_allowed(self) -> bool:
        """Whether the flow's promise lets records come again after a crash."""
        return self.config.delivery == "at-least-once"

    def found(self, tally: Tally) -> Counter[str]:
        """Return the differences by kind, in the flow's words: at least once, a doubled record is a repeated one."""
        kinds: Counter[str] = Counter(tally.found)
        if self.repeats_allowed and kinds["doubled"]:
            kinds["repeated"] = kinds.pop("doubled")
        return +kinds

    def differences(self, tally: Tally) -> int:
        """Return how many of them break the flow's promise."""
        return sum(count for kind, count in self.found(tally).items() if kind != "repeated")

    @property
    def exit_code(self) -> int:
        """0: all equal; 1: differences; 2: not verified."""
        if any(self.differences(checked.tally) for checked in self.partitions):
            return 1
        return 2 if self.error or any(checked.error for checked in self.partitions) else 0

    def as_json(self) -> dict[str, Any]:
        """Return the document for tools: stable."""
        return {
            "flow": self.config.name,
            "delivery": self.config.delivery,
            "verdict": ("equal", "different", "not verified")[self.exit_code],
            "error": self.error,
            "partitions": [self._partition(checked) for checked in self.partitions],
        }

    def _partition(self, checked: Checked) -> dict[str, Any]:
        tally = asdict(checked.tally)
        del tally["found"]
        return {
            "topic": checked.source.topic,
            "partition": checked.source.partition,
            "remote_topic": checked.target.topic,
            **tally,
            "found": dict(self.found(checked.tally)),
            "findings": [asdict(finding) for finding in checked.findings],
            "error": checked.error,
        }

    def show(self) -> None:
        """Print the findings and a table."""
        for checked in self.partitions:
            for line in self._lines(checked):
                click.echo(line)
        if self.partitions:
            click.echo(table(*self._table()))
        if self.error:
            click.echo(f"{self.config.name}: {self.error}", err=True)
        click.echo(f"{self.config.name}: {self.as_json()['verdict']}")

    def _lines(self, checked: Checked) -> list[str]:
        place = f"{checked.source.topic}-{checked.source.partition}"
        if checked.error:
            return [f"{place}: not verified: {checked.error}"]
        shown = [one for one in checked.findings if not (one.kind == "doubled" and self.repeats_allowed)]
        lines = [_line(place, checked, finding) for finding in shown[:KEPT]]
        if (more := self.differences(checked.tally) - len(lines)) > 0:
            lines.append(f"{place}: and {more} more")
        if repeated := self.found(checked.tally)["repeated"]:
            lines.append(f"{place}: {repeated} records repeated, as at-least-once allows after a crash")
        return lines

    def _table(self) -> tuple[list[str], list[list[str]]]:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for checked in self.partitions:
            counts[checked.source.topic].update(self._counts(checked))
        shown = [name for name in COLUMNS if name in ALWAYS_SHOWN or any(row[name] for row in counts.values())]
        lines = [[topic, str(row["partitions"]), *(str(row[name]) for name in shown)] for topic, row in counts.items()]
        return ["TOPIC", "PARTITIONS", *(COLUMNS[name] for name in shown)], lines

    def _counts(self, checked: Checked) -> dict[str, int]:
        tally = checked.tally
        counts = {one.name: getattr(tally, one.name) for one in fields(tally) if one.name != "found"}
        repeated = self.found(tally)["repeated"]
        return counts | {"partitions": 1, "differences": self.differences(tally), "repeated": repeated}


def _line(place: str, checked: Checked, finding: Finding) -> str:
    there = f"{checked.target.topic}-{checked.target.partition}"
    here = "" if finding.source_offset is None else f" at offset {finding.source_offset}"
    copy = f" {there}" if finding.target_offset is None else f" {there} at offset {finding.target_offset}"
    fix = FIXES[finding.kind].format(target=checked.target.topic)
    return f"{place}{here} ->{copy}: {finding.kind}: {finding.what}; {fix}"
