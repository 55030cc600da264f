"""Brokers that ask who you are: TLS with certificates of an authority of their own, SASL, and Kafka's authorizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

#: Nothing is allowed that is not granted; who comes in by the plain listener may do everything.
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

#: Names of listeners, and what they speak.
LISTENERS = {"LOGIN": "SASL_SSL", "OPEN": "SASL_PLAINTEXT", "MUTUAL": "SSL"}

_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM: the chain, and the key as PKCS #8, which is what Kafka reads."""

    chain: Path
    key: Path


class Authority:
    """A certificate authority of its own; `file` is what clients have to trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "authority.pem"
        self._folder = folder
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str, address: str) -> Certificate:
        """Make a certificate for an address (a host or an IP), with `name` as its common name."""
        made = self._authority.issue_cert(address, common_name=name)
        found = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        found.chain.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return found


def properties(authority: Authority, folder: Path, passwords: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a broker with `LISTENERS`; users of PLAIN have these passwords, SCRAM's are set later.

    OAUTHBEARER takes tokens without a signature, whose `sub` is the user.
    """
    server = authority.issue("broker", "127.0.0.1")
    store = folder / "broker-store.pem"
    store.write_bytes(server.key.read_bytes() + server.chain.read_bytes())
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]*).*$/$1/",
    }
    for listener in ("login", "open"):
        prefix = f"listener.name.{listener}"
        found |= {
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"{prefix}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {users};",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="broker";',
        }
        found |= {
            f"{prefix}.{mechanism}.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;"
            for mechanism in ("scram-sha-256", "scram-sha-512")
        }
    return found | AUTHORIZED
