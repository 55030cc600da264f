"""`faust -A app worker` as a process of its own, as an operator runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from dev.kafka import free_port

ROOT = Path(__file__).resolve().parents[2]

#: Timings that let a test see what otherwise takes minutes.
QUICK = {"topic_refresh_interval": "1s", "supervisor_interval": "1s"}


def write_config(folder: Path, clusters: Mapping[str, Any], flows: list[dict[str, Any]], **more: Any) -> Path:
    """Write a configuration; `clusters` maps alias to bootstrap or to a whole cluster entry."""
    entries = {alias: {"bootstrap": c} if isinstance(c, str) else c for alias, c in clusters.items()}
    document = {"clusters": entries, "flows": flows, **more}
    document["runtime"] = QUICK | more.get("runtime", {})
    path = folder / "replicator.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def run(config: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `faust -A app` with arguments to its end, as an operator does."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KRABKA_")}
    inherited |= {"KRABKA_REPLICATOR_CONFIG": str(config), **environment}
    command = [sys.executable, "-m", "faust", "-A", "app", *arguments]
    return subprocess.run(command, cwd=ROOT, env=inherited, capture_output=True, text=True, timeout=90, check=False)


class Worker:
    """A running worker. Used as a context manager it is killed at the end if it still runs."""

    def __init__(
        self,
        config: Path,
        folder: Path,
        name: str = "worker",
        *,
        python: Path | None = None,
        loglevel: str = "info",
        port: int | None = None,
        **environment: str,
    ) -> None:
        self.port = port or free_port()
        self.log_path = folder / f"{name}.log"
        self._environment = environment
        self._config = config
        self._python = python
        self._loglevel = loglevel
        self._data = folder / f"{name}-data"
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        faust = Path(self._python or sys.executable).parent / "faust"
        command = [str(faust), "-A", "app", "--datadir", str(self._data), "worker", "-l", self._loglevel]
        command += ["--web-port", str(self.port), "--web-bind", "127.0.0.1"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KRABKA_")}
        environment |= {"KRABKA_REPLICATOR_CONFIG": str(self._config), **self._environment}
        folder = ROOT if self._python is None else self._config.parent
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str) -> tuple[int, Any]:
        """Return the status and the JSON of a page; (0, None) when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except (OSError, ValueError):
            return 0, None

    def post(self, path: str, token: str) -> tuple[int, Any]:
        """Return the status and the JSON that a page answers to a POST with the token."""
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method="POST", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - http, written above
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def flow(self, name: str) -> dict[str, Any]:
        """Return a flow's part of the status; {} while the worker does not answer."""
        _, status = self.get("/status")
        return status["flows"][name] if status else {}

    def wait(self, condition: Callable[[], Any], seconds: float = 30, what: str = "") -> Any:
        """Return the first truthy answer of `condition`, or fail with the end of the log."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if answer := condition():
                return answer
            if self.process.poll() is not None:
                raise AssertionError(f"the worker ended with {self.process.returncode}:\n{self.log[-4000:]}")
            time.sleep(0.1)
        _, status = self.get("/status")
        raise AssertionError(f"{what or 'condition'} not met in {seconds} s\n{status}\n{self.log[-4000:]}")

    def wait_running(self, name: str, seconds: float = 30) -> dict[str, Any]:
        """Wait until the flow runs and owns tasks."""
        ready = lambda: (f := self.flow(name)) and f["state"] == "running" and f["tasks"]["owned"] and f  # noqa: E731
        return self.wait(ready, seconds, f"{name} running")

    def stop(self, seconds: float = 15) -> int:
        """End as `kill <pid>` does, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End as a crash does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)
