"""One contestant against a backlog, from a cold start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from dev.bench.cases import Case
from dev.bench.contestants import Contestant, Job
from dev.bench.failures import BenchFailed
from dev.bench.process import Running, running
from dev.bench.topics import Ends, count, delete_topic, make_topic
from dev.kafka import Broker

#: Seconds between two looks at the target, and without any change after which a copy is complete.
LOOK = 0.02
SETTLED = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What copying a backlog took, between the first and the last record that a reader of the target could see.

    CPU in seconds of the process; `resident` is its peak in MB, `first` the seconds from its start to the first record,
    with `start_cpu` spent until then. `whole` is false when the time limit ended the run.
    """

    records: int
    payload: int
    seconds: float
    cpu: float
    resident: float
    first: float
    start_cpu: float
    whole: bool

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """CPU-seconds per million records."""
        return self.cpu / self.records * 1e6

    @property
    def cpu_per_gigabyte(self) -> float:
        """CPU-seconds per 10^9 bytes of values."""
        return self.cpu / (self.records * self.payload) * 1e9


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    end: int
    cpu: float


def throughput(
    folder: Path, source: Broker, target: Broker, case: Case, contestant: Contestant, limit: float
) -> Throughput:
    """Measure one copy. Raises `BenchFailed` when it holds too few records."""
    alias = f"s{time.monotonic_ns()}"
    job = Job(
        folder=folder,
        alias=alias,
        topic=case.topic,
        source=source.bootstrap,
        target=target.bootstrap,
        codec=case.codec,
    )
    if not contestant.makes_topic:
        make_topic(job.target, job.remote_topic, case.partitions)
    ends = Ends(job.target, job.remote_topic)
    with running(contestant.command(job), folder / "contestant.log") as process:
        first, last = _watch(process, ends, case.records, limit)
        result = Throughput(
            records=last.end - first.end,
            payload=case.size,
            seconds=last.at - first.at,
            cpu=last.cpu - first.cpu,
            resident=process.resident(),
            first=first.at - process.started,
            start_cpu=first.cpu,
            whole=last.end >= case.records,
        )
    if result.whole and contestant.transactional:
        found = count(job.target, job.remote_topic, ends.offsets())
        if found < case.records:
            raise BenchFailed(f"{contestant.name}, {case.title}: {found} of {case.records} records")
    delete_topic(job.target, job.remote_topic)
    return result


def _watch(process: Running, ends: Ends, records: int, limit: float) -> tuple[_Look, _Look]:
    """Return the first look that saw records and the last that saw a change."""
    first: _Look | None = None
    last = _Look(process.started, 0, 0)
    while True:
        process.check()
        look = _Look(time.monotonic(), ends.total(), process.cpu())
        if look.end != last.end:
            first, last = first or look, look
        elif last.end >= records and look.at - last.at > SETTLED:
            break
        if look.at - process.started > limit:
            break
        time.sleep(LOOK)
    if first is None or last.at == first.at:
        raise BenchFailed(f"{last.end} of {records} records within {limit:g} s")
    return first, last
