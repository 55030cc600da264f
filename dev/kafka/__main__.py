"""`python -m dev.kafka up|down|status`: brokers by hand, kept running until `down`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from dev.kafka import Broker, BrokerFailed, JarsMissing, PortBusy, class_path, start_all


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dev.kafka", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status", "jars"])
    parser.add_argument("--ports", type=int, nargs="+", default=[19092, 29092], help="one broker (and cluster) each")
    parser.add_argument("--dir", type=Path, default=Path(".demo/kafka"), help="where data and logs are kept")
    arguments = parser.parse_args()
    try:
        return {"up": up, "down": down, "status": status, "jars": jars}[arguments.command](arguments)
    except (PortBusy, JarsMissing, BrokerFailed) as error:
        print(f"kafka: {error}", file=sys.stderr)
        return 1


def jars(_: argparse.Namespace) -> int:
    """Download what brokers need."""
    class_path()
    return 0


def up(arguments: argparse.Namespace) -> int:
    """Hold the brokers until a signal comes; they end with this process."""
    brokers = [Broker(f"on {port}", arguments.dir / str(port), port=port) for port in arguments.ports]
    start_all(brokers)
    pid_file = arguments.dir / "pid"
    pid_file.write_text(str(os.getpid()), encoding="utf-8")
    for broker in brokers:
        print(f"kafka: {broker.bootstrap} is up, log {broker.log_path}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("kafka: stopping")
    finally:
        for broker in brokers:
            broker.stop()
        pid_file.unlink(missing_ok=True)
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Tell `up` to end."""
    pid = _pid(arguments.dir)
    if pid is None:
        print("kafka: nothing runs")
        return 0
    os.kill(pid, signal.SIGTERM)
    while _pid(arguments.dir) is not None:
        time.sleep(0.1)
    print("kafka: stopped")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Say whether `up` runs; exit code 1 when not."""
    pid = _pid(arguments.dir)
    print("kafka: nothing runs" if pid is None else f"kafka: held by process {pid}")
    return 1 if pid is None else 0


def _pid(folder: Path) -> int | None:
    try:
        pid = int((folder / "pid").read_text(encoding="utf-8"))
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid


if __name__ == "__main__":
    sys.exit(main())
