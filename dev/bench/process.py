"""A contestant's process, looked at from outside."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dev.bench.failures import BenchFailed
from dev.kafka.process import spawn

TICKS = os.sysconf("SC_CLK_TCK")


class Running:
    """A process and what it has used so far."""

    def __init__(self, process: subprocess.Popen[bytes], log_path: Path) -> None:
        self.started = time.monotonic()
        self._process = process
        self._log_path = log_path

    def check(self) -> None:
        """Raise `BenchFailed` when the process ended."""
        if (code := self._process.poll()) is not None:
            lines = self._log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
            raise BenchFailed("\n".join([f"a process ended with {code}:", *lines]))

    def cpu(self) -> float:
        """Return the seconds of CPU, user and system, of all threads."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident(self) -> float:
        """Return the peak of resident memory, in MB."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


@contextmanager
def running(command: Sequence[str], log_path: Path) -> Iterator[Running]:
    """Run a command; what it still has to do when the block ends concerns nobody."""
    log_path.unlink(missing_ok=True)
    process = spawn(command, log_path)
    try:
        yield Running(process, log_path)
    finally:
        process.kill()
        process.wait(10)
