"""Ports that stay a broker's own while it is down."""

from __future__ import annotations

import random
import socket

import pytest

from dev.kafka import PortBusy, free_port, ports, require_free


@pytest.fixture
def outgoing_from(monkeypatch, tmp_path):
    def set_range(first: int) -> None:
        (tmp_path / "range").write_text(f"{first}\t60999\n", encoding="ascii")
        monkeypatch.setattr(ports, "OUTGOING", tmp_path / "range")

    return set_range


def test_ports_are_free_and_never_given_twice():
    found = []
    for _ in range(50):
        random.seed(1)  # as tests are
        found.append(free_port())
        require_free(found[-1], "a test")
    assert len(set(found)) == 50


def test_ports_lie_below_those_of_outgoing_connections(outgoing_from):
    outgoing_from(32768)
    assert all(20000 <= free_port() < 32000 for _ in range(50))


def test_the_system_chooses_where_everything_is_outgoing(outgoing_from):
    outgoing_from(1024)
    require_free(free_port(), "a test")


def test_elsewhere_than_on_linux_the_recommended_range_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(ports, "OUTGOING", tmp_path / "none")
    assert 20000 <= free_port() < 32000


def test_a_taken_port_is_not_given(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "RANGE", (port, port + 1))
        monkeypatch.setattr(ports, "_first_outgoing", lambda: 65536)
        assert free_port() != port
        with pytest.raises(PortBusy, match=rf"^port {port} for a test is in use; "):
            require_free(port, "a test")
