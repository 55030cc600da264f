"""The origin header, and the records that it keeps from coming home."""

import pytest

from app.core.provenance import ORIGIN_HEADER, origin_header, origins, returns_home


def test_the_header_is_the_source_s_alias() -> None:
    assert origin_header("us-östlich") == ("__krabka_origin", "us-östlich".encode())


def test_origins_are_the_hops_in_order_among_other_headers() -> None:
    headers = [("trace", b"A"), origin_header("A"), ("", None), (ORIGIN_HEADER, None), origin_header("B")]
    assert origins(headers) == ("A", "B")
    assert origins([]) == ()


@pytest.mark.parametrize(
    ("hops", "source", "target", "home"),
    [
        ([], "A", "B", False),
        (["A"], "B", "A", True),
        (["A"], "B", "C", False),
        (["A", "B"], "C", "A", True),
        (["A", "B"], "B", "C", True),
    ],
)
def test_a_record_that_has_left_either_side_returns(hops: list[str], source: str, target: str, home: bool) -> None:
    assert returns_home([origin_header(alias) for alias in hops], source, target) is home


def test_only_whole_aliases_in_our_header_count() -> None:
    headers = [("origin", b"A"), (ORIGIN_HEADER, b"AA"), (ORIGIN_HEADER, b""), (ORIGIN_HEADER, b"\xff"), ("x", b"B")]
    assert not returns_home(headers, "A", "B")
