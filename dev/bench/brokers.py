"""Brokers for measuring: Kafka's own compiler settings and a heap that does not collect all the time."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.kafka import Broker, class_path, java, start_all
from dev.kafka.process import spawn

JVM = ("-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Xshare:auto")

#: Copies are deleted after each run; their segments must go soon too.
PROPERTIES = {"log.segment.delete.delay.ms": "500", "log.initial.task.delay.ms": "1000"}


class BenchBroker(Broker):
    """A broker as the tests' one, with another Java machine."""

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        return spawn([java(), *JVM, "-cp", class_path(), *command], self.log_path)


@contextmanager
def two_brokers(folder: Path) -> Iterator[tuple[Broker, Broker]]:
    """Run a source and a target cluster."""
    source, target = (BenchBroker(name, folder / name, properties=PROPERTIES) for name in ("source", "target"))
    try:
        start_all([source, target])
        yield source, target
    finally:
        source.stop()
        target.stop()
