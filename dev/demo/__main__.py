"""`make demo`: two Kafka clusters, live traffic, and the replicator between them.

Environment: DEMO_SECONDS (end by itself after so many seconds of traffic, compare both sides, exit 0 only if all is
there), DEMO_SOURCE_PORT, DEMO_TARGET_PORT, DEMO_WEB_PORT, DEMO_DELIVERY.
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

from dev.demo.compare import differences
from dev.demo.traffic import TOPICS, Traffic, create_topics
from dev.kafka import Broker, BrokerFailed, JarsMissing, PortBusy, class_path, require_free, start_all

FOLDER = Path(".demo")
FLOW = "us-east__eu-west"
SETTLE_SECONDS = 60


class DemoFailed(Exception):
    """The demonstration cannot go on; one line for the person before the screen."""


def main() -> int:
    """Run it; return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return run(float(os.environ.get("DEMO_SECONDS", "0")))
    except (PortBusy, JarsMissing, BrokerFailed, DemoFailed) as error:
        say(f"stopped: {error}")
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 0


def run(seconds: float) -> int:
    """Bring everything up, show it, and compare at the end when `seconds` is given."""
    source_port, target_port, web_port = (
        int(os.environ.get(f"DEMO_{name}_PORT", default))
        for name, default in (("SOURCE", "19092"), ("TARGET", "29092"), ("WEB", "6066"))
    )
    for port, purpose in ((source_port, "us-east"), (target_port, "eu-west"), (web_port, "the status page")):
        require_free(port, purpose)
    shutil.rmtree(FOLDER, ignore_errors=True)
    with ExitStack() as stack:
        say("Kafka: looking for jars")
        class_path()
        say("Kafka: starting two clusters, us-east and eu-west")
        source = Broker("us-east", FOLDER / "us-east", port=source_port)
        target = Broker("eu-west", FOLDER / "eu-west", port=target_port)
        for broker in (source, target):
            stack.callback(broker.stop)
        start_all([source, target])
        say(f"Kafka: us-east is {source.bootstrap}, eu-west is {target.bootstrap}")
        create_topics(source.bootstrap)
        say("topics: " + ", ".join(f"{topic.name} ({topic.partitions} partitions)" for topic in TOPICS))
        traffic = Traffic(source.bootstrap)
        worker = stack.enter_context(worker_running(write_config(source, target), web_port))
        traffic.start()
        stack.callback(traffic.stop)
        say(f"worker: faust -A app worker, log {FOLDER / 'worker.log'}")
        say(f"status: http://127.0.0.1:{web_port}/status and http://127.0.0.1:{web_port}/health")
        watch(worker, traffic, web_port, seconds)
        return compare(worker, traffic, web_port, source, target)


def say(line: str) -> None:
    """Print a line at once."""
    print(f"demo: {line}", flush=True)


def write_config(source: Broker, target: Broker) -> Path:
    """Write the configuration that the worker runs with."""
    delivery = os.environ.get("DEMO_DELIVERY", "exactly-once")
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
    """Run a worker; end it as an operator would."""
    faust = Path(sys.executable).parent / "faust"
    command = [str(faust), "-A", "app", "--datadir", str(FOLDER / "data"), "worker", "-l", "info"]
    command += ["--web-port", str(web_port), "--web-bind", "127.0.0.1"]
    environment = os.environ | {"KRABKA_REPLICATOR_CONFIG": str(config)}
    with (FOLDER / "worker.log").open("wb") as log:
        # A session of its own: Ctrl-C reaches this process alone, which ends the worker in order.
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
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
    verdict = not lines and equal == traffic.produced
    say(f"records produced {traffic.produced}, replicated and verified equal {equal}, lag {lag}")
    say("all arrived, in order and unchanged" if verdict else f"NOT all arrived, see {FOLDER / 'worker.log'}")
    return 0 if verdict else 1


if __name__ == "__main__":
    sys.exit(main())
