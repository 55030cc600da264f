"""Who copies: each contestant as the command of one process, for one topic."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dev.kafka import class_path, free_port, java

#: What Kafka's `connect-mirror-maker.sh` gives Java when nothing else is said.
MM2_JVM = (
    "-Xms256M",
    "-Xmx2G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)

#: Single brokers allow no other replication factor; what takes part in no copying is off.
MM2_COMMON = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "sync.topic.acls.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "emit.heartbeats.enabled": "false",
    "refresh.topics.interval.seconds": "5",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one process is to copy; a new alias makes it a cold start with a target topic of its own."""

    folder: Path
    alias: str
    topic: str
    source: str
    target: str
    codec: str = "none"

    @property
    def remote_topic(self) -> str:
        """Where the copies go."""
        return f"{self.alias}.{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """`transactional` ones leave marks that offsets count; the floor does not make its target topic."""

    name: str
    command: Callable[[Job], list[str]] = field(compare=False)
    transactional: bool = False
    makes_topic: bool = True


def replicator(delivery: str) -> Contestant:
    """The worker of this repository with its defaults."""
    return Contestant(
        name=delivery, command=lambda job: _worker(job, delivery), transactional=delivery == "exactly-once"
    )


def _worker(job: Job, delivery: str) -> list[str]:
    flow = {"from": job.alias, "to": "target", "topics": {"include": [job.topic]}, "delivery": delivery}
    clusters = {job.alias: {"bootstrap": job.source}, "target": {"bootstrap": job.target}}
    config = job.folder / "replicator.yaml"
    config.write_text(yaml.safe_dump({"clusters": clusters, "flows": [flow | {"heartbeats": False}]}), encoding="utf-8")
    faust = [str(Path(sys.executable).parent / "faust"), "-A", "app", "--datadir", str(job.folder / job.alias)]
    web = ["--web-port", str(free_port()), "--web-bind", "127.0.0.1"]
    return ["env", f"KRABKA_REPLICATOR_CONFIG={config}", *faust, "worker", "-l", "warn", *web]


def mirror_maker(name: str, settings: Mapping[str, str], *, keeps_codec: bool = False) -> Contestant:
    """MirrorMaker 2; in `settings` the words SOURCE and TARGET stand for the aliases."""
    return Contestant(name=name, command=lambda job: _mirror_maker(job, settings, keeps_codec=keeps_codec))


def _mirror_maker(job: Job, settings: Mapping[str, str], *, keeps_codec: bool) -> list[str]:
    flow = f"{job.alias}->target"
    lines = {
        "clusters": f"{job.alias}, target",
        f"{job.alias}.bootstrap.servers": job.source,
        "target.bootstrap.servers": job.target,
        f"{flow}.enabled": "true",
        f"{flow}.topics": re.escape(job.topic).replace("\\", "\\\\"),
        **MM2_COMMON,
        **{key.replace("SOURCE", job.alias).replace("TARGET", "target"): value for key, value in settings.items()},
    }
    if keeps_codec and job.codec != "none":
        lines["target.producer.compression.type"] = job.codec
    path = job.folder / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
    return [java(), *MM2_JVM, "-cp", class_path(), "org.apache.kafka.connect.mirror.MirrorMaker", str(path)]


def tuned(linger_ms: int) -> dict[str, str]:
    """What vendors advise for high volume, and as many tasks as there are cores here."""
    return {
        "tasks.max": "2",
        "TARGET.producer.batch.size": "327680",
        "TARGET.producer.linger.ms": str(linger_ms),
        "TARGET.producer.max.in.flight.requests.per.connection": "5",
        "SOURCE.consumer.max.poll.records": "5000",
        "SOURCE.consumer.fetch.max.bytes": "52428800",
    }


def _floor(job: Job) -> list[str]:
    return [sys.executable, "-m", "dev.bench.floor", job.source, job.topic, job.target, job.remote_topic]


AT_LEAST_ONCE = replicator("at-least-once")
EXACTLY_ONCE = replicator("exactly-once")
MM2_DEFAULT = mirror_maker("MM2, defaults", {})
MM2_TUNED = mirror_maker("MM2, tuned", tuned(100), keeps_codec=True)
MM2_TUNED_10 = mirror_maker("MM2, tuned, linger 10 ms", tuned(10), keeps_codec=True)
FLOOR = Contestant(name="floor", command=_floor, makes_topic=False)

CONTESTANTS = (AT_LEAST_ONCE, EXACTLY_ONCE, MM2_DEFAULT, MM2_TUNED, FLOOR)
