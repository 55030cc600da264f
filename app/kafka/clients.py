"""The one place where a cluster's settings become client settings, for both client libraries."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

from app.config import ClusterConfig, RuntimeConfig

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
        options["sasl_mechanism"] = security.mechanism
        options["sasl_plain_username"] = security.username
        options["sasl_plain_password"] = _secret(security.password)
    return options


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
        options |= {
            "sasl.mechanism": security.mechanism,
            "sasl.username": security.username,
            "sasl.password": _secret(security.password),
        }
    return options


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
