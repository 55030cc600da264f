"""`faust -A app ...` as an operator runs it, without a broker."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.config.reference import EXAMPLE

ROOT = Path(__file__).parents[2]


def faust(*arguments: str, config: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KRABKA_REPLICATOR_")}
    return subprocess.run(
        [sys.executable, "-m", "faust", "-A", "app", *arguments],
        cwd=ROOT,
        env=inherited | {"KRABKA_REPLICATOR_CONFIG": str(config)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "replicator.yaml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return path


@pytest.mark.parametrize("arguments", [("--help",), ("worker", "--help")])
def test_help_needs_no_configuration(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = faust(*arguments, config=tmp_path / "none.yaml")
    assert ran.returncode == 0, ran.stderr
    assert "Usage:" in ran.stdout
    assert "Traceback" not in ran.stderr


def test_a_worker_without_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    ran = faust("worker", config=path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == (
        f"the configuration {path} cannot be used:\n"
        "  there is no such file; write one, or name another by KRABKA_REPLICATOR_CONFIG\n"
    )


def test_a_worker_with_a_wrong_configuration_names_every_problem(config: Path) -> None:
    config.write_text(EXAMPLE.replace("to: eu-west", "to: eu-wets"), encoding="utf-8")
    ran = faust("worker", config=config, KRABKA_REPLICATOR_HEARTBEAT_INTERVAL="3")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[1:] == [
        "  flows[0].to: unknown cluster 'eu-wets', did you mean 'eu-west'?",
        "  KRABKA_REPLICATOR_HEARTBEAT_INTERVAL: '3' is not a duration such as 500ms, 5s or 2m",
    ]


def test_there_is_an_agent_for_each_flow(config: Path) -> None:
    """Agents whose channel is no topic, as all of ours, are listed by `--local`."""
    both = EXAMPLE.replace("policies:", "  - {from: eu-west, to: us-east}\npolicies:")
    config.write_text(both, encoding="utf-8")
    ran = faust("--json", "agents", "--local", config=config)
    assert ran.returncode == 0, ran.stderr
    agents = json.loads(ran.stdout)
    assert [agent["name"] for agent in agents] == ["@replicate eu-west__us-east", "@replicate us-east__eu-west"]
    assert all(agent["help"] not in ("", "<N/A>") for agent in agents)


def test_a_worker_says_once_what_is_set_without_effect(config: Path, tmp_path: Path) -> None:
    """Its clusters are down, which holds up neither its start nor its end."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        config.write_text(EXAMPLE.replace("127.0.0.1:19092", address).replace("127.0.0.1:29092", address))
        environment = os.environ | {
            "KRABKA_REPLICATOR_CONFIG": str(config),
            "KRABKA_REPLICATOR_CLIENT_DNS_TIMEOUT": "3s",
        }
        command = [sys.executable, "-m", "faust", "-A", "app", "--datadir", str(tmp_path / "data"), "worker"]
        log = tmp_path / "log"
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [*command, "--without-web", "-l", "info"], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            said = "runtime.client_dns_timeout: the operating system resolves names"
            wait_until(lambda: said in log.read_text())
            worker.terminate()
            worker.wait(30)
        finally:
            worker.kill()
            worker.wait()
    assert log.read_text().count(said) == 1


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
