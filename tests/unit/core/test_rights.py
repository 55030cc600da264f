"""Rights to read and prohibitions go along, nothing else, and only what we added is removed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.core.naming import Naming, RenameMap
from app.core.rights import Acl, AddAcls, RemoveAcls, carried, plan_acls, remembered

NAMING = Naming(source="us", target="eu")
SELECTED = {"orders": "us.orders", "orders-eu": "us.orders-eu"}
READ = Acl(name="orders", pattern="LITERAL", principal="User:ann", host="*", operation="READ", permission="ALLOW")


def of(acl: Acl, naming: Naming = NAMING, selected: dict[str, str] = SELECTED) -> set[tuple[str, str, str]]:
    return {(found.name, found.pattern, found.operation) for found in carried([acl], selected, naming)}


@pytest.mark.parametrize(
    ("operation", "permission", "becomes"),
    [
        ("READ", "ALLOW", "READ"),
        ("DESCRIBE", "ALLOW", "DESCRIBE"),
        ("DESCRIBE_CONFIGS", "ALLOW", "DESCRIBE_CONFIGS"),
        ("ALL", "ALLOW", "READ"),
        ("WRITE", "ALLOW", None),
        ("CREATE", "ALLOW", None),
        ("DELETE", "ALLOW", None),
        ("ALTER", "ALLOW", None),
        ("ALTER_CONFIGS", "ALLOW", None),
        ("WRITE", "DENY", "WRITE"),
        ("ALL", "DENY", "ALL"),
    ],
)
@pytest.mark.parametrize("pattern", ["LITERAL", "PREFIXED"])
def test_a_copy_may_be_read_but_not_changed(operation, permission, becomes, pattern):
    acl = replace(READ, operation=operation, permission=permission, pattern=pattern)
    assert of(acl) == ({("us.orders", pattern, becomes)} if becomes else set())


def test_rules_about_topics_that_are_not_carried_stay_behind():
    assert of(replace(READ, name="secret")) == set()
    assert of(replace(READ, name="sec", pattern="PREFIXED")) == set()


def test_a_rule_for_all_topics_becomes_one_for_all_of_the_source():
    assert of(replace(READ, name="*")) == {("us.", "PREFIXED", "READ")}


@pytest.mark.parametrize(
    "naming",
    [
        Naming(source="us", target="eu", style="identity"),
        Naming(source="us", target="eu", renames=RenameMap(names={"orders": "us.orders"})),
    ],
)
@pytest.mark.parametrize(("name", "pattern"), [("orders", "PREFIXED"), ("*", "LITERAL")])
def test_where_names_do_not_tell_copies_from_the_target_s_own_each_copy_gets_a_rule(naming, name, pattern):
    acl = replace(READ, name=name, pattern=pattern)
    assert of(acl, naming) == {("us.orders", "LITERAL", "READ"), ("us.orders-eu", "LITERAL", "READ")}


def test_missing_rules_are_added_and_only_ours_removed():
    ours, by_hand, wanted = (replace(READ, principal=f"User:{name}") for name in ("ours", "hand", "new"))
    steps, forgotten = plan_acls(frozenset([wanted]), frozenset([ours, by_hand]), frozenset([ours]))
    assert steps == [AddAcls(acls=(wanted,)), RemoveAcls(acls=(ours,))]
    assert forgotten == {ours}


def test_a_rule_of_ours_that_somebody_removed_is_forgotten_or_added_again():
    assert plan_acls(frozenset(), frozenset(), frozenset([READ])) == ([], frozenset([READ]))
    assert plan_acls(frozenset([READ]), frozenset(), frozenset([READ])) == ([AddAcls(acls=(READ,))], frozenset())


def test_what_was_added_is_found_again_by_its_key():
    odd = replace(READ, principal='User:CN="a,b"', host="10.0.0.1")
    keys = [json.loads(READ.key("us__eu")), json.loads(odd.key("us__eu")), json.loads(READ.key("us__ap")), ["us__eu"]]
    assert remembered("us__eu", keys) == {READ, odd}
