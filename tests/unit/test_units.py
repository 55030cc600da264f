"""Durations and sizes are written and read without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("3ms", 0.003), ("5s", 5), (" 5 s ", 5), ("1.5s", 1.5), ("2m", 120), ("1h", 3600), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["5", 5, 5.0, "", "s", "5S", "-5s", "5s5", "1e3s", ".5s", "٣s", "5 m s", True, None, ["5s"]]
)
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError) as caught:
        parse_duration(text)
    assert str(caught.value) == f"{text!r} is not a duration such as 500ms, 5s or 2m"


@pytest.mark.parametrize(
    ("text", "size"),
    [(0, 0), (7, 7), ("7", 7), (" 7 ", 7), ("7B", 7), ("2kB", 2000), ("2KB", 2000), ("2KiB", 2048), ("1.5MiB", 3 << 19),
     ("100MiB", 100 << 20), ("50MB", 50_000_000), ("1GB", 10**9), ("1GiB", 1 << 30)],
)  # fmt: skip
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "B", "5kb", "5mib", "-5", -5, 5.5, "5.5", "²", True, None, [5]])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError) as caught:
        parse_size(text)
    assert str(caught.value) == f"{text!r} is not a size such as 64KiB, 100MiB or 1000000"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0ms"), (0.25, "250ms"), (1.0, "1s"), (1.5, "1500ms"), (90.0, "90s"), (120.0, "2m"),
                          (7200.0, "2h"), (86400.0, "1d"), (0.0005, "0.5ms")]
)  # fmt: skip
def test_durations_are_written_briefly(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0B"), (7, "7B"), (1000, "1000B"), (1024, "1KiB"), (1 << 20, "1MiB"), (3 << 30, "3GiB")]
)
def test_sizes_are_written_briefly(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.floats(min_value=0, max_value=1e12, allow_nan=False))
def test_every_duration_survives(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_every_size_survives(size: int) -> None:
    assert parse_size(format_size(size)) == size
