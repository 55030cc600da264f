"""The examples, and the tables in their pages, which say what has to arrive where."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

from app.config import FlowConfig, Settings, load_settings
from app.core.flow_rules import FlowRules
from app.runtime.rules import flow_rules

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "examples").glob("*/replicator.yaml"))

NOTHING = "nothing: "


class Row(NamedTuple):
    """A line of the table: a topic, and its name on the target or the reason why it is not there."""

    source: str
    topic: str
    target: str
    remote_topic: str | None
    reason: str | None

    @property
    def flow(self) -> str:
        return f"{self.source}__{self.target}"


def rows(folder: Path) -> list[Row]:
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    return [_row(line) for line in lines if line.startswith("| `")]


def _row(line: str) -> Row:
    source, topic, target, last = (cell.strip().strip("`") for cell in line.strip("| ").split(" | "))
    if last.startswith(NOTHING):
        return Row(source, topic, target, None, last.removeprefix(NOTHING))
    return Row(source, topic, target, last, None)


def variables(folder: Path) -> list[str]:
    """Return the names that the file takes from the environment, one for each cluster, in the clusters' order."""
    return re.findall(r"\$\{(\w+)\}", (folder / "replicator.yaml").read_text(encoding="utf-8"))


def settings(folder: Path) -> Settings:
    return load_settings(folder / "replicator.yaml", dict.fromkeys(variables(folder), "127.0.0.1:9092"))


def rules(settings: Settings) -> dict[str, tuple[FlowConfig, FlowRules]]:
    return {flow.name: (flow, flow_rules(flow, settings)) for flow in settings.flows}


class Renamed:
    """An example with aliases, topics and groups that no other test has, for clusters that others use, too."""

    def __init__(self, folder: Path, unique: str) -> None:
        self._unique = unique
        self._rules = rules(settings(folder))
        self.folder = folder

    def alias(self, alias: str) -> str:
        return f"{alias}-{self._unique}"

    def row(self, row: Row) -> Row:
        naming = self._rules[row.flow][1].naming

        def name(topic: str) -> str:
            chain = [self.alias(alias) for alias in naming.origins(topic)]
            return ".".join((*chain, f"{self._unique}-{naming.original(topic)}"))

        remote = None if row.remote_topic is None else name(row.remote_topic)
        return Row(self.alias(row.source), name(row.topic), self.alias(row.target), remote, row.reason)

    def _entries(self, entries: Iterable[str]) -> list[str]:
        return [f"{'*' if entry.startswith('*') else ''}{self._unique}-{entry}" for entry in entries]

    def text(self) -> str:
        document = yaml.safe_load((self.folder / "replicator.yaml").read_text(encoding="utf-8"))
        document["clusters"] = {self.alias(alias): cluster for alias, cluster in document["clusters"].items()}
        for flow in document["flows"]:
            flow["from"], flow["to"] = self.alias(flow["from"]), self.alias(flow["to"])
            for selection in (flow["topics"], flow.setdefault("groups", {"include": ["*"]})):
                selection.update({key: self._entries(entries) for key, entries in selection.items()})
        for policy in document.get("policies", ()):
            policy["topics"] = self._entries(policy["topics"])
        return yaml.safe_dump(document, sort_keys=False)
