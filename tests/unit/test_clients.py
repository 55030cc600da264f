"""One security setting, the same for each of the three clients."""

from __future__ import annotations

import pytest
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from app.config import ClusterConfig, RuntimeConfig
from app.kafka.clients import aiokafka_options, confluent_options
from app.runtime.target import broker_credentials

USER = {"username": "alice", "password": "not-a-secret"}


@pytest.mark.parametrize(
    "security",
    [
        {},
        {"protocol": "SSL"},
        {"protocol": "SASL_PLAINTEXT", **USER},
        {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-256", **USER},
        {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", **USER},
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
