"""Two clusters that want to know who comes, and to have granted what he does."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from app.core.needed_rights import Right
from dev.kafka import Broker, start_all
from dev.kafka.security import LISTENERS, Authority, Certificate, properties

USER = "copier"
#: With what a shell, YAML, JAAS or a URL might stumble over.
SECRET = "pa$s w=o;r%64d/#+9"  # noqa: S105 - of brokers that live for a test

RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """Two brokers with every kind of listener, a client's certificate, and a server of tokens."""

    source: Broker
    target: Broker
    authority: Authority
    certificate: Certificate
    token_url: str

    def cluster(self, broker: Broker, login: str) -> dict[str, Any]:
        """Return a cluster's entry in the configuration, with one of the ways to log in."""
        ca = {"ca_location": str(self.authority.file)}
        password = {"username": USER, "password": SECRET}
        token = {"token_url": self.token_url, "client_id": USER, "client_secret": SECRET}
        listener, security = {
            "PLAIN": ("LOGIN", {"protocol": "SASL_SSL", "mechanism": "PLAIN", **password, **ca}),
            "SCRAM-SHA-256": ("LOGIN", {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-256", **password, **ca}),
            "SCRAM-SHA-512": ("OPEN", {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", **password}),
            "OAUTHBEARER": ("LOGIN", {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", **token, **ca}),
            "certificate": (
                "MUTUAL",
                {
                    "protocol": "SSL",
                    "certificate_location": str(self.certificate.chain),
                    "key_location": str(self.certificate.key),
                    **ca,
                },
            ),
        }[login]
        return {"bootstrap": broker.address(listener), "security": security}


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    """Start all of it, with nothing granted."""
    authority = Authority(folder / "certificates")
    settings = properties(authority, folder, {USER: SECRET})
    brokers = [Broker(name, folder / name, properties=settings, listeners=LISTENERS) for name in ("source", "target")]
    with _token_server() as url:
        try:
            start_all(brokers)
            for broker in brokers:
                _add_scram(broker)
            yield Secured(
                source=brokers[0],
                target=brokers[1],
                authority=authority,
                certificate=authority.issue(USER, "copier.example"),
                token_url=url,
            )
        finally:
            for broker in brokers:
                broker.stop()


def _add_scram(broker: Broker) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # Kafka takes one of a user at once
        wanted = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), SECRET.encode())
        client.alter_user_scram_credentials([wanted])[USER].result(20)


class _Tokens(BaseHTTPRequestHandler):
    """Gives everybody who knows the secret a token without a signature, good for a minute."""

    def do_POST(self) -> None:
        sent = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        secret = sent.partition(":")[2]
        known = SECRET in (secret, unquote_plus(secret))  # librdkafka does not encode it, RFC 6749 does
        now = int(time.time())
        claims = {"sub": USER, "iat": now, "exp": now + 60, "scope": "kafka"}
        token = ".".join([_encoded({"alg": "none"}), _encoded(claims), ""])
        answer = {"access_token": token, "expires_in": 60} if known else {"error": "invalid_client"}
        body = json.dumps(answer).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Tests read no log of it."""


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


@contextmanager
def _token_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Tokens) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/token"
        finally:
            server.shutdown()
            thread.join()


def bindings(rights: Iterable[Right]) -> list[AclBinding]:
    """Return the rules that grant rights to `USER`."""
    return [
        AclBinding(
            RESOURCES[right.resource],
            right.name,
            ResourcePatternType[right.pattern],
            f"User:{USER}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for right in rights
        for operation in right.operations
    ]


def grant(broker: Broker, rights: Iterable[Right]) -> None:
    """Grant rights to `USER`."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.create_acls(bindings(rights)).values():
        future.result(20)


def take(broker: Broker, rights: Iterable[Right]) -> None:
    """Take rights from `USER` again."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = [AclBindingFilter(*binding._to_tuple()) for binding in bindings(rights)]
    for future in client.delete_acls(wanted).values():
        future.result(20)
