"""One security setting, the same for each of the three clients."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from app.config import ClusterConfig, RuntimeConfig
from app.kafka.clients import aiokafka_options, certificate_problems, confluent_options
from app.runtime.target import broker_credentials

USER = {"username": "alice", "password": "not-a-secret"}
TOKENS = {
    "mechanism": "OAUTHBEARER",
    "token_url": "https://login.example/token",
    "client_id": "alice",
    "client_secret": "not-a-secret",
}


@pytest.mark.parametrize(
    "security",
    [
        {},
        {"protocol": "SSL"},
        {"protocol": "SASL_PLAINTEXT", **USER},
        {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-256", **USER},
        {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", **USER},
        {"protocol": "SASL_PLAINTEXT", **TOKENS},
        {"protocol": "SASL_SSL", "scope": "kafka", **TOKENS},
    ],
)
def test_faust_authenticates_as_the_other_clients_do(security) -> None:
    cluster = ClusterConfig.model_validate({"bootstrap": "127.0.0.1:1", "security": security})
    runtime = RuntimeConfig()
    ours = aiokafka_options(cluster, runtime)
    theirs = credentials_to_aiokafka_auth(broker_credentials(cluster, runtime))
    assert (ours.pop("ssl_context", None) is None) == (theirs.pop("ssl_context", None) is None)
    assert theirs == {name: value for name, value in ours.items() if name in theirs}
    assert {name for name in ours if name.startswith(("sasl", "security"))} == set(theirs)
    confluent = confluent_options(cluster, runtime)
    assert confluent["security.protocol"] == theirs["security_protocol"]
    assert confluent.get("sasl.mechanism") == theirs.get("sasl_mechanism")
    assert confluent.get("sasl.password") == theirs.get("sasl_plain_password")
    assert confluent.get("sasl.oauthbearer.client.secret") == security.get("client_secret")
    AdminClient(confluent)  # librdkafka refuses settings that it does not know or that do not fit


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"ca_location": "missing.pem"}, "No such file"),
        ({"ca_location": "empty.pem"}, "no certificate or crl found"),
        ({"certificate_location": "empty.pem"}, "PEM lib"),
    ],
)
def test_certificates_are_looked_at_before_anything_runs(tmp_path, named, said) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    security = {"protocol": "SSL", **{name: str(tmp_path / file) for name, file in named.items()}}
    cluster = ClusterConfig.model_validate({"bootstrap": "127.0.0.1:1", "security": security})
    plain = ClusterConfig(bootstrap="127.0.0.1:1")
    (problem,) = certificate_problems({"a": plain, "b": cluster})
    assert problem.where == "clusters.b.security"
    assert said in problem.what
    assert all(f"{name} {path}" in problem.what for name, path in security.items() if name != "protocol")
