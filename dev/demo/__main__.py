"""`make demo`: two Kafka clusters, live traffic, and the replicator between them.

Environment: DEMO_SECONDS (end by itself after so many seconds of traffic, compare both sides, exit 0 only if all is
there), DEMO_SOURCE_PORT, DEMO_TARGET_PORT, DEMO_WEB_PORT, DEMO_DELIVERY. Everything it makes is kept in `.demo`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from dev.demo.compare import Unreadable, differences
from dev.demo.settings import DemoFailed, DemoSettings
from dev.demo.traffic import TOPICS, Traffic, create_topics
from dev.kafka import Broker, BrokerFailed, JarsMissing, PortBusy, class_path, require_free, start_all
from dev.kafka.process import spawn

FOLDER = Path(".demo")
FLOW = "us-east__eu-west"
SETTLE_SECONDS = 60


def main() -> int:
    """Run it; return the exit code."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: signal.raise_signal(signal.SIGINT))
    seconds = 0.0
    try:
        settings = DemoSettings.read(os.environ)
        seconds = settings.seconds
        return run(settings)
    except (PortBusy, JarsMissing, BrokerFailed, DemoFailed, Unreadable) as error:
        say(f"stopped: {error}")
        return 1
    except KeyboardInterrupt:
        say("stopped")
        # With a time given, 0 is the word that every record was compared.
        return 1 if seconds else 0


def run(settings: DemoSettings) -> int:
    """Bring everything up, show it, and compare at the end when a time is given."""
    clear(settings)
    with ExitStack() as stack:
        source, target = start_clusters(stack, settings)
        create_topics(source.bootstrap)
        say("topics: " + ", ".join(f"{topic.name} ({topic.partitions} partitions)" for topic in TOPICS))
        traffic = Traffic(source.bootstrap)
        config = write_config(source, target, settings.delivery)
        worker = stack.enter_context(worker_running(config, settings.web_port))
        traffic.start()
        stack.callback(traffic.stop)
        say(f"worker: faust -A app worker, log {FOLDER / 'worker.log'}")
        say(f"status: http://127.0.0.1:{settings.web_port}/status and http://127.0.0.1:{settings.web_port}/health")
        watch(worker, traffic, settings.web_port, settings.seconds)
        return compare(worker, traffic, settings.web_port, source, target)


def clear(settings: DemoSettings) -> None:
    """Remove what an earlier run left, and only that. Raises `PortBusy`, which also tells that one still runs."""
    for port, purpose in (
        (settings.source_port, "us-east"),
        (settings.target_port, "eu-west"),
        (settings.web_port, "the status page"),
    ):
        require_free(port, purpose)
    # Brokers started by hand keep their data beside these.
    for name in ("us-east", "eu-west", "data"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    (FOLDER / "worker.log").unlink(missing_ok=True)
    FOLDER.mkdir(exist_ok=True)


def start_clusters(stack: ExitStack, settings: DemoSettings) -> tuple[Broker, Broker]:
    """Start both clusters, to be stopped by the stack."""
    say("Kafka: looking for jars")
    class_path()
    say("Kafka: starting two clusters, us-east and eu-west")
    source = Broker("us-east", FOLDER / "us-east", port=settings.source_port)
    target = Broker("eu-west", FOLDER / "eu-west", port=settings.target_port)
    for broker in (source, target):
        stack.callback(broker.stop)
    start_all([source, target])
    say(f"Kafka: us-east is {source.bootstrap}, eu-west is {target.bootstrap}")
    return source, target


def say(line: str) -> None:
    """Print a line at once."""
    print(f"demo: {line}", flush=True)


def write_config(source: Broker, target: Broker, delivery: str) -> Path:
    """Write the configuration that the worker runs with."""
    document = {
        "clusters": {
            "us-east": {"bootstrap": source.bootstrap, "region": "us-east-1", "zones": ["us"]},
            "eu-west": {"bootstrap": target.bootstrap, "zones": ["eu", "gdpr"]},
        },
        "flows": [{"from": "us-east", "to": "eu-west", "topics": {"include": ["*"]}, "delivery": delivery}],
    }
    path = FOLDER / "replicator.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


@contextmanager
def worker_running(config: Path, web_port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker; end it as an operator would. It does not outlive this process, however that ends."""
    faust = Path(sys.executable).parent / "faust"
    command = [
        "env",
        f"KRABKA_REPLICATOR_CONFIG={config}",
        str(faust),
        "-A",
        "app",
        "--datadir",
        str(FOLDER / "data"),
        "worker",
        "-l",
        "info",
    ]
    command += ["--web-port", str(web_port), "--web-bind", "127.0.0.1"]
    # In a session of its own: Ctrl-C reaches this process alone, which ends the worker in order.
    process = spawn(command, FOLDER / "worker.log")
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def watch(worker: subprocess.Popen[bytes], traffic: Traffic, web_port: int, seconds: float) -> None:
    """Tell how it goes until the time is over, or until Ctrl-C when no time was given."""
    end = time.monotonic() + seconds
    while not seconds or time.monotonic() < end:
        time.sleep(1)
        if not traffic.is_alive():
            raise DemoFailed(f"the traffic ended after {traffic.produced} records")
        if worker.poll() is not None:
            raise DemoFailed(f"the worker ended with {worker.returncode}, see {FOLDER / 'worker.log'}")
        flow = flow_status(web_port)
        if flow is None:
            say(f"produced {traffic.produced:>7}  (the worker is starting)")
        else:
            copied = copied_records(flow)
            say(f"produced {traffic.produced:>7}  replicated {copied:>7}  lag {flow['lag']:>5}  {flow['state']}")


def flow_status(web_port: int) -> dict[str, Any] | None:
    """Return the flow's part of the status, None while the worker does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web_port}/status", timeout=2) as answer:
            status: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return None
    flow: dict[str, Any] = status["flows"][FLOW]
    return flow


def copied_records(flow: dict[str, Any]) -> int:
    """Return how many records of the demonstration's topics are durable on the target."""
    names = {topic.name for topic in TOPICS}
    return sum(row["position"] for row in flow["partitions"] if row["topic"] in names)


def compare(worker: subprocess.Popen[bytes], traffic: Traffic, web_port: int, source: Broker, target: Broker) -> int:
    """Stop the traffic, wait for the rest, compare every record, and print the summary."""
    traffic.stop()
    say(f"traffic stopped at {traffic.produced} records; waiting for the rest")
    deadline = time.monotonic() + SETTLE_SECONDS
    while (flow := flow_status(web_port)) is None or flow["lag"] or copied_records(flow) < traffic.produced:
        if time.monotonic() > deadline or worker.poll() is not None:
            break
        time.sleep(0.2)
    equal, lines = 0, list(traffic.errors[:5])
    for topic in TOPICS:
        found = differences(source.bootstrap, target.bootstrap, topic.name, "us-east", f"us-east.{topic.name}")
        equal += found[0]
        lines += found[1]
    for line in lines:
        say(f"DIFFERENT: {line}")
    lag = flow["lag"] if flow else "unknown"
    verdict = not lines and equal == traffic.produced > 0
    say(f"records produced {traffic.produced}, replicated and verified equal {equal}, lag {lag}")
    say("all arrived, in order and unchanged" if verdict else f"NOT all arrived, see {FOLDER / 'worker.log'}")
    return 0 if verdict else 1


if __name__ == "__main__":
    sys.exit(main())
