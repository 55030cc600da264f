"""docker-compose.yml, the image and what Prometheus asks, compared with each other and with the loader."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from app.config import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_compose_agrees_with_the_code() -> None:
    root = DEPLOY.parent
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    replicator = services["replicator"]
    assert (root / replicator["build"]["dockerfile"]).is_file()
    for service in services.values():
        for volume in service.get("volumes", ()):
            assert (root / volume.split(":")[0]).exists(), volume
    settings = load_settings(DEPLOY / "replicator.yaml", {"REPLICATOR_TOKEN": "0123456789abcdef"})
    hosts = {cluster.bootstrap.split(":")[0] for cluster in settings.clusters.values()}
    assert hosts <= set(services)
    for host in hosts:
        assert f"INSIDE://{host}:9092" in services[host]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert set(replicator["environment"]) == {"KRABKA_REPLICATOR_CONFIG", "REPLICATOR_TOKEN"}
    mounted = {volume.split(":")[1] for volume in replicator["volumes"]}
    assert replicator["environment"]["KRABKA_REPLICATOR_CONFIG"] in mounted
    port = re.search(r'"--web-port", "(\d+)"', dockerfile)
    assert port is not None
    assert f"EXPOSE {port[1]}" in dockerfile
    assert all(entry.endswith(f":{port[1]}") for entry in replicator["ports"])
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]["dns_sd_configs"][0]
    assert (scraped["names"], scraped["port"]) == (["replicator"], int(port[1]))
    assert re.search(r"^USER (?!root|0)\w+", dockerfile, re.MULTILINE)
