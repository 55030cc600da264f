"""The table of rights in docs/security.md says what the code asks for."""

from __future__ import annotations

from pathlib import Path

from app.core.naming import Naming
from app.core.needed_rights import CLUSTER, Wants, needed_rights

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_table_of_rights_is_complete_and_true() -> None:
    section = PAGE.split("## What has to be granted")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith(("| source", "| target"))]
    told: set[tuple[str, ...]] = set()
    for line in lines:
        where, resource, _, operations, why, _ = (cell.strip() for cell in line.strip("|").split("|"))
        told |= {(where, resource, operation, why) for operation in operations.split(", ")}
    wants = Wants(
        naming=Naming(source="source", target="target"),
        topics=("orders",),
        groups=("billing",),
        exactly_once=True,
        acls=True,
        group_offsets=True,
        deletions=True,
    )
    rights = needed_rights(wants)
    assert told == {(r.cluster, r.resource, operation, r.why) for r in rights for operation in r.operations}
    for right in rights:
        name = right.name.replace("source", "<source>") if right.cluster == "target" else right.name
        assert right.name in ("orders", "billing", CLUSTER) or f"`{name}`" in section
