"""The manifests in deploy/kubernetes agree with the code, the image and each other."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from app import pages
from app.config import Settings, load_settings
from app.errors import ConfigurationError
from app.runtime.supervisor import STOP_SECONDS
from app.version import VERSION

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
MANIFESTS: dict[str, Any] = {
    document["kind"]: document
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
}
SPEC = MANIFESTS["Deployment"]["spec"]
POD = SPEC["template"]["spec"]
(WORKER,) = POD["containers"]
ENVIRONMENT = {entry["name"]: entry for entry in WORKER["env"]}
SECRETS = {name: entry["valueFrom"]["secretKeyRef"] for name, entry in ENVIRONMENT.items() if "valueFrom" in entry}
CONFIGURATION = MANIFESTS["ConfigMap"]["data"]["replicator.yaml"]


def load(tmp_path: Path, **more: str) -> Settings:
    path = tmp_path / "replicator.yaml"
    path.write_text(CONFIGURATION, encoding="utf-8")
    environment = {name: entry.get("value", "a secret of some length") for name, entry in ENVIRONMENT.items()}
    return load_settings(path, environment | more)


def in_dockerfile(pattern: str) -> str:
    found = re.search(pattern, DOCKERFILE)
    assert found is not None, pattern
    return found[1]


def test_the_configuration_is_accepted_with_the_environment_of_the_pod(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.runtime.logging == "json"
    assert settings.runtime.data_topic_replication_factor == 3
    assert all(cluster.security.password is not None for cluster in settings.clusters.values())
    assert set(re.findall(r"\$\{(\w+)\}", CONFIGURATION)) == set(SECRETS)
    assert SPEC["replicas"] <= max(flow.tasks for flow in settings.flows)


def test_variables_of_service_links_would_be_refused(tmp_path: Path) -> None:
    """Kubernetes names them after the service, which is why the pod goes without."""
    link = MANIFESTS["Service"]["metadata"]["name"].upper().replace("-", "_") + "_SERVICE_HOST"
    with pytest.raises(ConfigurationError, match=link):
        load(tmp_path, **{link: "10.0.0.1"})
    assert POD["enableServiceLinks"] is False


def test_the_configuration_is_where_the_worker_looks() -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in WORKER["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    assert set(mounts) == set(volumes)
    assert volumes["configuration"]["configMap"]["name"] == MANIFESTS["ConfigMap"]["metadata"]["name"]
    assert ENVIRONMENT["KRABKA_REPLICATOR_CONFIG"]["value"] == f"{mounts['configuration']}/replicator.yaml"
    assert mounts["state"] == in_dockerfile(r'"--datadir", "([^"]+)"')


def test_the_port_is_the_one_that_the_image_serves() -> None:
    port = int(in_dockerfile(r'"--web-port", "(\d+)"'))
    assert WORKER["ports"] == [{"name": "web", "containerPort": port}]
    assert MANIFESTS["Service"]["spec"]["ports"] == [{"name": "web", "port": port, "targetPort": "web"}]
    assert "command" not in WORKER, "the image's command holds the port"
    assert "args" not in WORKER


def test_probes_ask_for_pages_that_are_served() -> None:
    served: set[str] = set()

    def page(path: str, **_: Any) -> Any:
        served.add(path)
        return lambda view: view

    app = SimpleNamespace(page=page, web=SimpleNamespace(add_static=lambda *_: None))
    pages.register(app, SimpleNamespace(settings=None), None, None)  # type: ignore[arg-type]
    probes = {name: WORKER[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {"web"}
    assert {probe["path"] for probe in probes.values()} <= served
    assert probes["livenessProbe"]["path"] == "/status", "a restart mends no cluster that is down"
    assert probes["readinessProbe"]["path"] == "/health"


def test_the_pod_runs_with_few_rights() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["runAsUser"] == int(in_dockerfile(r"--uid (\d+)"))
    assert WORKER["securityContext"]["readOnlyRootFilesystem"] is True
    assert WORKER["securityContext"]["allowPrivilegeEscalation"] is False
    assert POD["automountServiceAccountToken"] is False


def test_a_worker_has_the_time_to_drain_and_one_is_always_left() -> None:
    assert POD["terminationGracePeriodSeconds"] > STOP_SECONDS
    budget = MANIFESTS["PodDisruptionBudget"]["spec"]
    assert budget["maxUnavailable"] < SPEC["replicas"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_everything_selects_the_same_pods() -> None:
    labels = SPEC["template"]["metadata"]["labels"]
    selectors = [MANIFESTS[kind]["spec"]["selector"] for kind in ("Deployment", "PodDisruptionBudget", "Service")]
    assert [selector.get("matchLabels", selector) for selector in selectors] == [labels] * 3


def test_the_image_has_our_version() -> None:
    assert WORKER["image"] == f"krabka-replicator:{VERSION}"


def test_the_runbook_makes_the_secret_that_is_asked_for() -> None:
    text = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    name = re.search(r"kubectl create secret generic ([\w-]+)", text)
    assert name is not None
    assert {secret["name"] for secret in SECRETS.values()} == {name[1]}
    assert sorted(re.findall(r"--from-literal=([\w-]+)=", text)) == sorted(secret["key"] for secret in SECRETS.values())
