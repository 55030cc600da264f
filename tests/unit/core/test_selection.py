"""Include and exclude lists, and the names that no list can take."""

import pytest

from app.core.selection import Pattern, Selector, never_a_topic, never_selected, never_translated

NAMES = ("orders", "orders-archive", "my.orders", "a", "ab", "prod.eu.global", "prod.eu.globalx", "xx", "BAR")


@pytest.mark.parametrize(
    ("entry", "taken"),
    [
        ("orders", {"orders"}),
        ("orders*", {"orders", "orders-archive"}),
        ("*orders", {"orders", "my.orders"}),
        ("*orders*", {"orders", "orders-archive", "my.orders"}),
        ("o*s", {"orders"}),
        ("*", set(NAMES)),
        ("**", set(NAMES)),
        ("my.orders", {"my.orders"}),
        ("my?orders", set()),
        ("[ab]", set()),
        ("a|b", set()),
        ("Orders", set()),
        ("re:^orders$", {"orders"}),
        ("re:a|b", {"a"}),
        ("re:prod.*.global$", {"prod.eu.global"}),
        ("re:x{1,3}", {"xx"}),
        ("re:(?i)bar", {"BAR"}),
        ("re:order", set()),
    ],
)
def test_an_entry_matches_whole_names(entry: str, taken: set[str]) -> None:
    assert {name for name in NAMES if Selector(include=(entry,)).matches(name)} == taken


def test_a_glob_crosses_line_breaks_since_groups_may_hold_them() -> None:
    assert Pattern("g*").matches("g\n1")
    assert not Pattern("g").matches("g\n")
    assert not Pattern("re:g").matches("g\n")


def test_an_empty_include_matches_nothing() -> None:
    nothing = Selector(include=())
    assert not nothing.matches("orders")
    assert nothing.why_not("orders") == "the include list is empty"


def test_exclude_wins_and_the_reason_names_the_entry() -> None:
    selector = Selector(include=("orders", "*"), exclude=("tmp*", "re:.*-(old|bak)"))
    assert selector.why_not("orders") is None
    assert selector.why_not("tmp") == "excluded by 'tmp*'"
    assert selector.why_not("orders-old") == "excluded by 're:.*-(old|bak)'"
    assert Selector(include=("orders",)).why_not("payments") == "no include entry matches it"


@pytest.mark.parametrize("entry", ["re:*.log", "re:(", r"re:\p{Alpha}+", "re:x{99999999999}", "re:", "", "  "])
@pytest.mark.parametrize("as_exclude", [False, True])
def test_a_bad_entry_is_refused_by_name(entry: str, as_exclude: bool) -> None:
    lists = {"include": ("*",), "exclude": (entry,)} if as_exclude else {"include": (entry,)}
    with pytest.raises(ValueError, match=r"^entry ") as refused:
        Selector(**lists)
    assert repr(entry) in str(refused.value)


def test_a_bad_regular_expression_is_refused_with_its_reason() -> None:
    with pytest.raises(ValueError, match="nothing to repeat"):
        Selector(include=("re:*.log",))


@pytest.mark.parametrize(("entry", "culprit"), [("^orders$", "^"), ("a|b", "|"), ("x{1,3}", "{"), ("a, b", ",")])
def test_an_entry_that_no_topic_can_match_is_pointed_out(entry: str, culprit: str) -> None:
    hint = never_a_topic(entry)
    assert hint is not None
    assert f"holds {culprit!r}" in hint
    assert repr("re:" + entry) in hint


@pytest.mark.parametrize("entry", ["orders", "*.log", "a_b-C.9*", "re:^orders$"])
def test_an_entry_that_a_topic_can_match_is_not(entry: str) -> None:
    assert never_a_topic(entry) is None


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "__transaction_state",
        "krabka-replicator-offsets",
        "krabka-replicator-us-east__eu-west-tasks",
        "billing-__assignor-__leader",
        "mm2-offset-syncs.A.internal",
        "mm2-configs.A.internal",
        "mm2.x.internal",
        "A.checkpoints.internal",
        "A.b.checkpoints.internal",
        "A_checkpoints_internal",
        "mm2-offset-syncs_A_internal",
        "A-checkpoints-internal",
        "mm2-offset-syncs-A-internal",
        "A__checkpoints__internal",
    ],
)
def test_working_topics_are_never_selected(topic: str) -> None:
    assert never_selected(topic) is not None


@pytest.mark.parametrize(
    "topic",
    [
        "billing.internal",
        "notes-internal",
        "notes_internal",
        "mm2x",
        "mm2_notes_internal",
        "data.replica",
        "x-__y",
        "_schemas",
        "us-east.orders",
        "checkpoints.internal",
        "checkpoints_internal",
        "A.checkpoints.internal.v2",
        "A_checkpoints-internal",
        "my-krabka-replicator",
        "leader",
        "heartbeats",
        "orders-changelog",
    ],
)
def test_topics_of_users_may_look_like_them(topic: str) -> None:
    assert never_selected(topic) is None


def test_own_groups_are_never_translated() -> None:
    assert never_translated("krabka-replicator-us-east__eu-west") is not None
    assert never_translated("billing") is None
    assert never_translated("A-mm2") is None
