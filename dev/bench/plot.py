"""The measurement as a picture: bars by hand, since two charts need no library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dev.bench import report
from dev.bench.cases import Case
from dev.bench.contestants import FLOOR

WIDTH, BAR, GAP, LABELS, HEAD = 760, 18, 6, 190, 44
#: The first cases of a plan, which every plan has; all of them would be a poster.
CASES = 2
FONT = "font-family='system-ui, sans-serif' font-size='13'"


def plot(date: str, results: report.Results) -> str:
    """Return an SVG with records/s and CPU-seconds per million records of each contestant but the floor."""
    charts: list[str] = []
    top = HEAD
    for case in list(dict.fromkeys(case for case, _ in results))[:CASES]:
        for title, measure, form in (
            ("records/s (more is better)", report.rate, ",.0f"),
            ("CPU-seconds per million records (less is better)", report.cpu, ".2f"),
        ):
            bars = _values(results, case, measure)
            charts.append(_chart(f"{case.title}: {title}", bars, form, top))
            top += 30 + len(bars) * (BAR + GAP) + 14
    head = f"<text x='12' y='24' {FONT} font-weight='bold'>krabka-replicator and MirrorMaker 2, {escape(date)}</text>"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{top}' viewBox='0 0 {WIDTH} {top}'>\n"
        f"<rect width='100%' height='100%' fill='white'/>\n{head}\n" + "\n".join(charts) + "\n</svg>\n"
    )


def _values(results: report.Results, case: Case, measure: report.Measure) -> list[tuple[str, float]]:
    return [
        (contestant.name, report.middle(runs, measure))
        for (of, contestant), runs in results.items()
        if of == case and contestant != FLOOR
    ]


def _chart(title: str, bars: Sequence[tuple[str, float]], form: str, top: int) -> str:
    most = max(value for _, value in bars)
    lines = [f"<text x='12' y='{top + 16}' {FONT}>{escape(title)}</text>"]
    for number, (name, value) in enumerate(bars):
        y = top + 26 + number * (BAR + GAP)
        width = max(1, round((WIDTH - LABELS - 100) * value / most))
        color = "#b0b7c3" if name.startswith("MM2") else "#2563eb"
        lines += [
            f"<text x='{LABELS - 8}' y='{y + 13}' text-anchor='end' {FONT}>{escape(name)}</text>",
            f"<rect x='{LABELS}' y='{y}' width='{width}' height='{BAR}' fill='{color}'/>",
            f"<text x='{LABELS + width + 6}' y='{y + 13}' {FONT}>{value:{form}}</text>",
        ]
    return "\n".join(lines)
