"""`python -m dev.kafka up|down|status`: brokers by hand, kept running until `down`."""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import time
from pathlib import Path

from dev.kafka import Broker, BrokerFailed, JarsMissing, PortBusy, class_path, start_all

#: Seconds that `down` waits for brokers to end in order.
PATIENCE = 60


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
    arguments.dir.mkdir(parents=True, exist_ok=True)
    with (arguments.dir / "pid").open("a", encoding="utf-8") as pid_file:
        try:
            fcntl.flock(pid_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"kafka: brokers already run in {arguments.dir}; end them with down", file=sys.stderr)
            return 1
        pid_file.truncate(0)
        pid_file.write(str(os.getpid()))
        pid_file.flush()
        return _hold([Broker(f"on {port}", arguments.dir / str(port), port=port) for port in arguments.ports])


def _hold(brokers: list[Broker]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        start_all(brokers)
        for broker in brokers:
            print(f"kafka: {broker.bootstrap} is up, log {broker.log_path}", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print("kafka: stopping")
    finally:
        for broker in brokers:
            broker.stop()
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Tell `up` to end; exit code 1 when it does not."""
    pid = _pid(arguments.dir)
    if pid is None:
        print("kafka: nothing runs")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while _pid(arguments.dir) == pid:
        if time.monotonic() > deadline:
            print(f"kafka: process {pid} did not end within {PATIENCE} s", file=sys.stderr)
            return 1
        time.sleep(0.1)
    print("kafka: stopped")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Say whether `up` runs; exit code 1 when not."""
    pid = _pid(arguments.dir)
    print("kafka: nothing runs" if pid is None else f"kafka: held by process {pid}")
    return 1 if pid is None else 0


def _pid(folder: Path) -> int | None:
    """Return who holds the brokers. The lock tells, not the number: a dead holder's may belong to a stranger by now."""
    try:
        with (folder / "pid").open(encoding="utf-8") as pid_file:
            try:
                fcntl.flock(pid_file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(pid_file.read())
    except (FileNotFoundError, ValueError):
        return None
    return None


if __name__ == "__main__":
    sys.exit(main())
