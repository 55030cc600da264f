"""Names on the target, and what a name tells about its origin."""

import pytest

from app.core.naming import Naming, RenameMap, RenameTemplate, ambiguous, collides, problems

ALIASES = frozenset({"A", "B", "C", "source", "target"})


def naming(source: str = "source", target: str = "target", **more: object) -> Naming:
    return Naming(source=source, target=target, **{"aliases": ALIASES, **more})  # type: ignore[arg-type]


def test_default_naming_puts_the_source_in_front() -> None:
    assert naming().remote_topic("orders") == "source.orders"
    assert naming(separator="_").remote_topic("A.orders") == "source_A.orders"
    assert naming().names_origin("orders")


def test_identity_keeps_names_but_not_those_of_heartbeats() -> None:
    identity = naming("A", "B", style="identity")
    assert identity.remote_topic("orders") == "orders"
    assert not identity.names_origin("orders")
    assert identity.remote_topic("heartbeats") == "A.heartbeats"
    assert identity.remote_topic("C.heartbeats") == "A.C.heartbeats"
    assert identity.names_origin("C.heartbeats")


def test_a_map_names_what_it_lists_and_leaves_the_rest_to_the_style() -> None:
    renames = RenameMap(names={"orders": "orders-eu", "heartbeats": "pulse"})
    assert naming(renames=renames).remote_topic("orders") == "orders-eu"
    assert naming(renames=renames).remote_topic("payments") == "source.payments"
    assert naming(renames=renames, style="identity").remote_topic("payments") == "payments"
    assert naming(renames=renames).remote_topic("heartbeats") == "source.heartbeats"
    assert not naming(renames=renames).names_origin("orders")
    assert naming(renames=renames).names_origin("payments")


def test_a_template_names_every_topic_but_heartbeats() -> None:
    renamed = naming(renames=RenameTemplate(text="eu.{topic}-{source}"))
    assert renamed.remote_topic("orders") == "eu.orders-source"
    assert renamed.remote_topic("heartbeats") == "source.heartbeats"
    assert not renamed.names_origin("orders")


@pytest.mark.parametrize("text", ["eu", "eu.{name}", "{source}", "{topic}/{source}", "{topic}{target}", "{topic} "])
def test_a_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^template "):
        RenameTemplate(text=text)


@pytest.mark.parametrize("separator", ["", "/", " ", ". "])
def test_a_separator_is_refused(separator: str) -> None:
    with pytest.raises(ValueError, match=r"^separator "):
        naming(separator=separator)


@pytest.mark.parametrize(
    ("topic", "origins", "original"),
    [
        ("orders", (), "orders"),
        ("A.orders", ("A",), "orders"),
        ("B.A.orders", ("B", "A"), "orders"),
        ("orders.A.x", (), "orders.A.x"),
        ("unknown.A.orders", (), "unknown.A.orders"),
        ("A.unknown.B.orders", ("A",), "unknown.B.orders"),
        ("A", (), "A"),
        ("A.", (), "A."),
        ("A.B", ("A",), "B"),
        ("A_orders", (), "A_orders"),
        ("Ax.orders", (), "Ax.orders"),
        (".orders", (), ".orders"),
    ],
)
def test_only_known_aliases_at_the_head_are_origins(topic: str, origins: tuple[str, ...], original: str) -> None:
    assert naming().origins(topic) == origins
    assert naming().original(topic) == original


def test_names_are_all_that_the_topic_has_had() -> None:
    assert naming().names("B.A.orders") == ("B.A.orders", "A.orders", "orders")
    assert naming().names("orders") == ("orders",)


def test_the_flow_s_own_clusters_are_always_known() -> None:
    assert Naming(source="x", target="y").origins("y.x.t") == ("y", "x")


def test_the_longest_alias_is_read() -> None:
    known = Naming(source="us", target="us.west")
    assert known.origins("us.west.orders") == ("us.west",)
    assert known.origins("us.east.orders") == ("us",)
    assert ambiguous({"us", "us.west", "us-west", "eu"}, ".") == [("us", "us.west")]
    assert ambiguous({"us", "us.west", "us-west"}, "-") == [("us", "us-west")]


@pytest.mark.parametrize(
    ("topic", "refused"),
    [
        ("target.topic1", True),
        ("target.source.topic1", True),
        ("source.target.topic1", True),
        ("target.source.target.topic1", True),
        ("source.target.source.topic1", True),
        ("source.topic1", False),
        ("topic1", False),
        ("heartbeats", False),
        ("target.heartbeats", True),
        ("unknown.target.topic1", False),
        ("target", False),
    ],
)
def test_a_name_that_would_return_is_refused(topic: str, refused: bool) -> None:
    assert (naming().cycle(topic) is not None) == refused


def test_the_ring_of_three() -> None:
    closing = naming("C", "A")
    assert closing.cycle("B.A.t") is not None
    assert closing.cycle("B.t") is None
    assert closing.remote_topic("B.t") == "C.B.t"
    assert closing.cycle("t") is None


def test_identity_leaves_loops_to_provenance_except_for_heartbeats() -> None:
    identity = naming(style="identity")
    assert identity.cycle("target.topic1") is None
    assert identity.cycle("target.heartbeats") is not None


def test_a_name_with_the_target_in_front_is_refused_where_flows_put_it_there() -> None:
    identity = naming(style="identity")
    assert identity.cycle("target.topic1", target_in_front=True) is not None
    assert identity.cycle("other.topic1", target_in_front=True) is None


@pytest.mark.parametrize(
    ("template", "name", "given"),
    [
        ("x.{topic}", "x.t", True),
        ("x.{topic}", "x.", False),
        ("x.{topic}", "t", False),
        ("{topic}.{source}", "t.A", True),
        ("{topic}", "t", False),
    ],
)
def test_a_template_is_not_applied_to_what_it_gave_where_flows_lead_back(template: str, name: str, given: bool) -> None:
    named = Naming(source="A", target="B", renames=RenameTemplate(text=template))
    assert (named.cycle(name, leads_back=True) is not None) == given
    assert named.cycle(name) is None


@pytest.mark.parametrize("style", ["default", "identity"])
def test_heartbeats_of_two_sources_and_the_target_s_own_never_share_a_name(style: str) -> None:
    assert {naming(alias, "C", style=style).remote_topic("heartbeats") for alias in "AB"} == {
        "A.heartbeats",
        "B.heartbeats",
    }


def test_heartbeats_are_known_through_hops() -> None:
    assert naming().is_heartbeats("heartbeats")
    assert naming().is_heartbeats("B.A.heartbeats")
    assert not naming().is_heartbeats("my.heartbeats")
    assert not naming().is_heartbeats("heartbeats.A")


@pytest.mark.parametrize(
    ("name", "word"),
    [("x" * 250, "249"), ("", "empty"), ("a/b", "other than"), ("ü", "other than"), (".", "'.'"), ("..", "'..'")],
)
def test_names_that_kafka_refuses(name: str, word: str) -> None:
    assert word in (problems(name) or "")


@pytest.mark.parametrize("name", ["x" * 249, "a", "...", "A.b_c-9", "a\n"[:1]])
def test_names_that_kafka_takes(name: str) -> None:
    assert problems(name) is None


def test_a_line_break_at_the_end_is_seen() -> None:
    assert problems("orders\n") is not None


def test_a_prefix_leaves_less_room() -> None:
    flow = naming("A", "B")
    assert problems(flow.remote_topic("x" * 247)) is None
    assert problems(flow.remote_topic("x" * 248)) is not None


def test_names_collide_when_equal_or_equal_with_underscores() -> None:
    assert collides(["A.x_y", "ok", "A_x_y", "A_x.y", "ok"]) == [
        ("A.x_y", "A_x_y"),
        ("A.x_y", "A_x.y"),
        ("ok", "ok"),
    ]
    assert collides(["a", "A", "a-b", "a_b"]) == []
