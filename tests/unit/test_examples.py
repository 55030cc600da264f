"""The examples are accepted, and decide what their pages say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.flow_rules import NotSelected, Selected, select
from tests.support import examples

ROOT = examples.ROOT
EACH = pytest.mark.parametrize("folder", examples.FOLDERS, ids=lambda folder: folder.name)


def test_the_index_names_them_all() -> None:
    index = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\S+)/README\.md\)", index) == [
        "active-active",
        "disaster-recovery",
        "hub-and-spoke",
        "data-residency",
        "move-to-a-new-cluster",
    ]
    assert {folder.name for folder in examples.FOLDERS} == set(re.findall(r"\]\((\S+)/README\.md\)", index))


@EACH
def test_the_rules_decide_what_the_page_says(folder: Path) -> None:
    rules = examples.rules(examples.settings(folder))
    table = examples.rows(folder)
    assert {row.flow for row in table if row.remote_topic} == set(rules), "each flow carries something"
    assert any(row.reason for row in table), "and something is left"
    for row in table:
        decided = select(row.topic, rules[row.flow][1])
        if row.remote_topic is not None:
            assert decided == Selected(topic=row.topic, remote_topic=row.remote_topic)
        else:
            assert decided == NotSelected(topic=row.topic, reason=row.reason or "")


@EACH
def test_no_topic_goes_in_circles(folder: Path) -> None:
    """The names that copying leads to, copying the copies, come to an end and never lead home."""
    rules = examples.rules(examples.settings(folder))
    found = {(row.source, row.topic) for row in examples.rows(folder)} | {
        (alias, "heartbeats") for flow, _ in rules.values() for alias in (flow.source, flow.target)
    }
    for _ in range(len(rules) + 1):
        before = set(found)
        for flow, decides in rules.values():
            choices = [select(topic, decides) for alias, topic in before if alias == flow.source]
            copies = [choice.remote_topic for choice in choices if isinstance(choice, Selected)]
            assert not any(flow.target in decides.naming.origins(copy) for copy in copies)
            found |= {(flow.target, copy) for copy in copies}
    assert found == before


@EACH
def test_the_page_is_short_and_its_commands_fit_the_file(folder: Path, known_commands: set[str]) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    settings = examples.settings(folder)
    assert len(text.splitlines()) < 40
    assert f"export KRABKA_REPLICATOR_CONFIG={(folder / 'replicator.yaml').relative_to(ROOT).as_posix()}\n" in text
    exported = next(line for line in text.splitlines() if line.startswith("$ export") and "CONFIG" not in line)
    assert sorted(re.findall(r"(\w+)=", exported)) == sorted(examples.variables(folder))
    assert set(re.findall(r"faust -A app (\w+)", text)) <= known_commands
    assert set(re.findall(r"KRABKA_REPLICATOR_CLUSTERS=(\S+)", text)) <= set(settings.targets)
    assert set(re.findall(r"(?:--flow|pause|resume) (\w[\w-]*)", text)) <= {flow.name for flow in settings.flows}


@EACH
def test_copies_survive_a_broker_where_clusters_have_several(folder: Path) -> None:
    runtime = examples.settings(folder).runtime
    assert (runtime.data_topic_replication_factor, runtime.internal_topic_replication_factor) == (3, 3)


@pytest.fixture(scope="module")
def known_commands() -> set[str]:
    command = [sys.executable, "-m", "faust", "-A", "app", "--help"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return set(re.findall(r"^  ([a-z-]+)  ", ran.stdout.partition("Commands:")[2], re.MULTILINE))
