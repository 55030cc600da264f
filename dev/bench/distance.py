"""`python -m dev.bench.distance [MILLISECONDS]`: what is left of the local rate when one cluster is far away.

Every run goes through the same two proxies, so that only the delay differs between them. Prints records/s, the ratio to
the local rate, and peak memory.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.bench.brokers import PROPERTIES, BenchBroker
from dev.bench.cases import Case
from dev.bench.contestants import AT_LEAST_ONCE, EXACTLY_ONCE, Contestant
from dev.bench.process import running
from dev.bench.throughput import throughput
from dev.bench.topics import fill
from dev.kafka import free_port, start_all

ROUND_TRIP = 50.0
CASE = Case(size=1000, records=400_000)
LIMIT = 60.0


class FarBroker(BenchBroker):
    """A broker that clients of its listener FAR reach over a proxy at `far_port`."""

    def __init__(self, name: str, directory: Path) -> None:
        super().__init__(name, directory, properties=PROPERTIES, listeners={"FAR": "PLAINTEXT"})
        self.far_port = free_port()

    def _settings(self) -> dict[str, str]:
        advertised = f"PLAINTEXT://{self.bootstrap},FAR://127.0.0.1:{self.far_port}"
        return super()._settings() | {"advertised.listeners": advertised}


@dataclass(frozen=True, slots=True)
class Far:
    """What a run sees of a broker."""

    bootstrap: str


def main() -> int:
    """Run it; the exit code is 0 whatever the ratios are."""
    milliseconds = float(sys.argv[1]) if len(sys.argv) > 1 else ROUND_TRIP
    with tempfile.TemporaryDirectory(prefix="krabka-distance-") as name:
        folder = Path(name)
        brokers = [FarBroker(side, folder / side) for side in ("source", "target")]
        try:
            start_all(brokers)
            fill(brokers[0].bootstrap, CASE)
            for contestant in (AT_LEAST_ONCE, EXACTLY_ONCE):
                _compare(folder, brokers, contestant, milliseconds)
        finally:
            for broker in brokers:
                broker.stop()
    return 0


def _compare(folder: Path, brokers: list[FarBroker], contestant: Contestant, milliseconds: float) -> None:
    runs = [
        ("local", (0.0, 0.0)),
        ("source far", (milliseconds, 0.0)),
        ("target far", (0.0, milliseconds)),
    ]
    local = 0.0
    for title, delays in runs:
        with _proxies(folder, brokers, delays) as (source, target):
            found = throughput(folder, source, target, CASE, contestant, LIMIT)
        local = local or found.rate
        print(
            f"{contestant.name}, {title}: {found.rate:,.0f} records/s, {found.rate / local:.0%} of local, "
            f"{found.resident:.0f} MB, first after {found.first:.1f} s",
            flush=True,
        )


@contextmanager
def _proxies(folder: Path, brokers: list[FarBroker], delays: tuple[float, float]) -> Iterator[Any]:
    with ExitStack() as stack:
        for broker, delay in zip(brokers, delays, strict=True):
            to_port = broker.address("FAR").rpartition(":")[2]
            command = [sys.executable, "-m", "dev.bench.far", str(broker.far_port), to_port, str(delay)]
            stack.enter_context(running(command, folder / f"proxy-{broker.name}.log"))
        yield [Far(f"127.0.0.1:{broker.far_port}") for broker in brokers]


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[2])
    sys.exit(main())
