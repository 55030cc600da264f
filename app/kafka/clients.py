"""The one place where a cluster's settings become client settings, for both client libraries."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from app.config import ClusterConfig, RuntimeConfig, SecurityConfig
from app.errors import Problem
from app.kafka.oauth import Grant, tokens

CLIENT_ID = "krabka-replicator"

#: What this worker is called where workers are told apart: in the groups of flows, in the status.
WORKER = f"{socket.gethostname()}-{os.getpid()}"
WORKER_PREFIX = f"{CLIENT_ID}-"


def aiokafka_options(cluster: ClusterConfig, runtime: RuntimeConfig) -> dict[str, Any]:
    """Return what every aiokafka client of this cluster is constructed with."""
    security = cluster.security
    options: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap,
        "client_id": CLIENT_ID,
        "request_timeout_ms": int(runtime.client_request_timeout * 1000),
        # Topics are created and deleted under us: stale metadata is refreshed well before aiokafka's five minutes.
        "metadata_max_age_ms": 60_000,
        "security_protocol": security.protocol,
    }
    if "SSL" in security.protocol:
        options["ssl_context"] = _ssl_context(cluster)
    if "SASL" in security.protocol:
        options |= _aiokafka_login(security)
    return options


def _aiokafka_login(security: SecurityConfig) -> dict[str, Any]:
    if security.mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": tokens(_grant(security))}
    return {
        "sasl_mechanism": security.mechanism,
        "sasl_plain_username": security.username,
        "sasl_plain_password": _secret(security.password),
    }


def _grant(security: SecurityConfig) -> Grant:
    return Grant(
        url=str(security.token_url),
        client_id=str(security.client_id),
        client_secret=str(_secret(security.client_secret)),
        scope=security.scope,
        ca_location=security.ca_location,
    )


def confluent_options(cluster: ClusterConfig, runtime: RuntimeConfig) -> dict[str, Any]:
    """Return what a confluent-kafka client of this cluster is constructed with."""
    security = cluster.security
    options: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": CLIENT_ID,
        "socket.timeout.ms": int(runtime.client_request_timeout * 1000),
        "socket.connection.setup.timeout.ms": int(runtime.client_connect_timeout * 1000),
        "reconnect.backoff.max.ms": 3000,
        "security.protocol": security.protocol,
        # Unreachable brokers are reported once by us, not in librdkafka's own words on stderr for every try.
        "log_level": 0,
        "log.connection.close": False,
    }
    if "SSL" in security.protocol:
        options |= _given(
            {
                "ssl.ca.location": security.ca_location,
                "ssl.certificate.location": security.certificate_location,
                "ssl.key.location": security.key_location,
                "ssl.key.password": _secret(security.key_password),
            }
        )
    if "SASL" in security.protocol:
        options |= _confluent_login(security)
    return options


def _confluent_login(security: SecurityConfig) -> dict[str, Any]:
    if security.mechanism != "OAUTHBEARER":
        return {
            "sasl.mechanism": security.mechanism,
            "sasl.username": security.username,
            "sasl.password": _secret(security.password),
        }
    return _given(
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": security.token_url,
            "sasl.oauthbearer.client.id": security.client_id,
            "sasl.oauthbearer.client.secret": _secret(security.client_secret),
            "sasl.oauthbearer.scope": security.scope,
            "https.ca.location": security.ca_location,
        }
    )


def certificate_problems(clusters: Mapping[str, ClusterConfig]) -> tuple[Problem, ...]:
    """Return what is wrong with the files of certificates and keys that the clusters name."""
    problems = []
    for alias, cluster in clusters.items():
        if "SSL" not in cluster.security.protocol:
            continue
        try:
            _ssl_context(cluster)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError, too
            what = f"certificates cannot be loaded: {getattr(error, 'strerror', None) or error}"
            named = [
                f"{name} {path}"
                for name in ("ca_location", "certificate_location", "key_location")
                if (path := getattr(cluster.security, name)) is not None
            ]
            problems.append(Problem(f"clusters.{alias}.security", f"{what} ({', '.join(named)})"))
    return tuple(problems)


def _ssl_context(cluster: ClusterConfig) -> ssl.SSLContext:
    security = cluster.security
    context = ssl.create_default_context(cafile=security.ca_location)
    if security.certificate_location is not None:
        context.load_cert_chain(security.certificate_location, security.key_location, _secret(security.key_password))
    return context


def _secret(value: Any) -> str | None:
    return None if value is None else str(value.get_secret_value())


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
