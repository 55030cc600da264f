"""Tokens from a server of tokens, over a real connection."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from app.kafka.oauth import Grant, NoToken, Tokens, fetch, tokens
from dev.kafka import free_port

SECRET = "hunter/2 2+2"  # noqa: S105 - it is what must not be found


class Server(ThreadingHTTPServer):
    """Answers every request with `answer`, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: tuple[int, Any] = (200, {"access_token": "t", "expires_in": 3600})
        self.asked: list[tuple[str | None, str]] = []

    @property
    def grant(self) -> Grant:
        url = f"http://127.0.0.1:{self.server_address[1]}/token"
        return Grant(url=url, client_id="me:us", client_secret=SECRET, scope="a b", ca_location=None)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        server.asked.append((self.headers["Authorization"], body))
        code, answer = server.answer
        self.send_response(code)
        self.end_headers()
        self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def log_message(self, *_: Any) -> None:
        """Tests read no log of it."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_a_token_is_asked_for_as_the_standard_says(server: Server) -> None:
    assert fetch(server.grant) == ("t", 3600.0)
    # RFC 6749, 2.3.1: both parts form-encoded, then as basic authentication.
    assert server.asked == [("Basic bWUlM0F1czpodW50ZXIlMkYyKzIlMkIy", "grant_type=client_credentials&scope=a+b")]


def test_a_token_is_used_for_most_of_its_life_by_clients_of_every_thread(server: Server) -> None:
    shared = Tokens(server.grant)

    async def many() -> list[str]:
        return await asyncio.gather(*(shared.token() for _ in range(20)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asyncio.run(many()) == ["t"] * 20
    assert len(server.asked) == 1


def test_a_token_at_the_end_of_its_life_is_fetched_again(server: Server) -> None:
    server.answer = (200, {"access_token": "t", "expires_in": 0.01})

    async def two() -> None:
        shared = Tokens(server.grant)
        await shared.token()
        await asyncio.sleep(0.02)
        await shared.token()

    asyncio.run(two())
    assert len(server.asked) == 2


def test_one_grant_has_one_provider(server: Server) -> None:
    assert tokens(server.grant) is tokens(server.grant)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {"error": "invalid_client", "error_description": SECRET}), "401 invalid_client"),
        ((400, {"error": SECRET}), "400 Bad Request"),
        ((500, SECRET.encode()), "500 Internal Server Error"),
        ((200, {"token": SECRET}), "without an access_token"),
        ((200, SECRET.encode()), "no token"),
        ((200, []), "without an access_token"),
    ],
)
def test_a_refusal_is_told_without_the_secret(server: Server, answer: Any, said: str) -> None:
    server.answer = answer
    with pytest.raises(NoToken, match=said) as caught:
        fetch(server.grant)
    assert SECRET not in str(caught.value)
    assert server.grant.url in str(caught.value)
    assert SECRET not in repr(server.grant)


def test_a_server_that_is_not_there() -> None:
    grant = Grant(
        url=f"http://127.0.0.1:{free_port()}/", client_id="me", client_secret=SECRET, scope=None, ca_location=None
    )
    with pytest.raises(NoToken, match="refused"):
        fetch(grant)
