"""What stays of a measurement: a section of docs/benchmarks.md, its first line, and a plot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dev.bench import report
from dev.bench.plot import plot

DATED_LINE = re.compile(r"\d{4}-\d\d-\d\d: ")


def keep(docs: Path, date: str, lines: Sequence[str], results: report.Results) -> None:
    """Append the section, replace the line that the file begins with, and draw."""
    path = docs / "benchmarks.md"
    text = path.read_text(encoding="utf-8")
    if found := report.headline(results):
        first, _, rest = text.partition("\n")
        if DATED_LINE.match(first):
            text = f"{date}: {found}\n{rest}"
    section = "\n".join(["", f"## {date}", "", *lines, ""])
    path.write_text(text.rstrip("\n") + "\n" + section, encoding="utf-8")
    (docs / "benchmarks.svg").write_text(plot(date, results), encoding="utf-8")
