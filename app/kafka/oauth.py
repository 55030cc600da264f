"""Tokens for SASL/OAUTHBEARER: the client credentials grant of OAuth 2.0 (RFC 6749, 4.4).

librdkafka has this grant built in; aiokafka asks for a provider, which is this one.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

#: A token is fetched again after this part of its life.
FRESH = 0.8

#: Seconds that the server has to answer.
TIMEOUT = 10.0

#: Seconds that a token is taken to live whose server does not say.
UNSAID = 60.0

#: What is read of an answer, bytes.
_LONGEST = 1 << 20


class NoToken(KafkaError):  # type: ignore[misc]
    """The server gives no token. The message never holds what was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Who asks where for a token; `ca_location` is a file of authorities, None for the system's."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    ca_location: str | None


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens of one grant, each used for most of its life; for clients of any thread, as Faust's are."""

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        self._token = ""
        self._until = 0.0
        self._fetching = threading.Lock()

    async def token(self) -> str:
        """Return a token that is good for a while. Raises `NoToken`."""
        if time.monotonic() < self._until:
            return self._token
        return await asyncio.get_running_loop().run_in_executor(None, self._fetched)

    def _fetched(self) -> str:
        with self._fetching:
            if time.monotonic() >= self._until:
                asked = time.monotonic()
                self._token, life = fetch(self._grant)
                self._until = asked + FRESH * life
            return self._token


@functools.lru_cache(maxsize=64)
def tokens(grant: Grant) -> Tokens:
    """Return the one provider of a grant, so that many clients share a token."""
    return Tokens(grant)


def fetch(grant: Grant) -> tuple[str, float]:
    """Return a token and its life in seconds. Raises `NoToken`."""
    login = ":".join(map(urllib.parse.quote_plus, (grant.client_id, grant.client_secret)))
    form = {"grant_type": "client_credentials"} | ({"scope": grant.scope} if grant.scope else {})
    request = urllib.request.Request(  # noqa: S310 - the configuration takes https, or http to this machine
        grant.url,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Authorization": "Basic " + base64.b64encode(login.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        },
    )
    context = ssl.create_default_context(cafile=grant.ca_location) if grant.url.startswith("https:") else None
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:  # noqa: S310
            return _read(grant, json.loads(answer.read(_LONGEST)))
    except urllib.error.HTTPError as error:
        with error:
            raise NoToken(f"{grant.url} gives no token: {error.code} {_said(error)}") from None
    except (OSError, ValueError) as error:
        raise NoToken(f"{grant.url} gives no token: {error}") from None


def _read(grant: Grant, answer: Any) -> tuple[str, float]:
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token:
        raise NoToken(f"{grant.url} answers without an access_token")
    life = answer.get("expires_in")
    return token, float(life) if isinstance(life, int | float) and life > 0 else UNSAID


def _said(error: urllib.error.HTTPError) -> str:
    """Return the server's own code of error, such as invalid_client: never its text, which may repeat the request."""
    try:
        answer = json.loads(error.read(_LONGEST))
    except (OSError, ValueError):
        return str(error.reason)
    code = answer.get("error") if isinstance(answer, dict) else None
    return code if isinstance(code, str) and code.isascii() and code.replace("_", "").isalpha() else str(error.reason)
