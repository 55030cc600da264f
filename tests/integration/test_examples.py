"""Each example on real brokers: what its page says arrives there, once, and nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import examples
from tests.support.examples import Renamed, Row
from tests.support.records import create_topic, produce, read_all, topics, wait_for_count
from tests.support.worker import Worker

pytestmark = pytest.mark.integration

#: A topic on a cluster.
Place = tuple[str, str]

FOR_TESTS = {
    "KRABKA_REPLICATOR_TOPIC_REFRESH_INTERVAL": "500ms",
    "KRABKA_REPLICATOR_DATA_TOPIC_REPLICATION_FACTOR": "1",
    "KRABKA_REPLICATOR_INTERNAL_TOPIC_REPLICATION_FACTOR": "1",
}


@pytest.mark.parametrize("folder", examples.FOLDERS, ids=lambda folder: folder.name)
def test_records_arrive_where_the_page_says(
    folder: Path, clusters: Any, unique: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    renamed = Renamed(folder, unique)
    names = examples.variables(folder)
    brokers = [clusters.source, clusters.target, *([request.getfixturevalue("third")] if len(names) > 2 else [])]
    environment = {name: broker.bootstrap for name, broker in zip(names, brokers, strict=True)}
    aliases = examples.settings(folder).clusters
    addresses = dict(zip(map(renamed.alias, aliases), environment.values(), strict=True))
    table = [renamed.row(row) for row in examples.rows(folder)]
    copies = {(row.target, row.remote_topic) for row in table if row.topic != row.remote_topic}
    written = write({(row.source, row.topic) for row in table} - copies, addresses)
    config = tmp_path / "replicator.yaml"
    config.write_text(renamed.text(), encoding="utf-8")

    with Worker(config, tmp_path, **environment, **FOR_TESTS) as worker:
        for (alias, topic), values in carried(written, table).items():
            wait_for_count(addresses[alias], topic, len(values), 60)
        left = [row for row in table if row.remote_topic is None]
        for row in left:
            worker.wait(lambda r=row: r.topic in worker.flow(r.flow)["not_selected"], 30, f"{row} is left")
        for flow in {row.flow for row in table}:
            worker.wait(lambda f=flow: worker.flow(f)["lag"] == 0, 30, f"{flow} without lag")
        assert worker.stop() == 0

    for (alias, topic), values in carried(written, table).items():
        assert Counter(record.value for record in read_all(addresses[alias], topic)) == Counter(values), (alias, topic)
    there = {alias: {name for name in topics(address) if unique in name} for alias, address in addresses.items()}
    for row in left:
        original = row.topic.rpartition(f"{unique}-")[2]
        named = {name for name in there[row.target] if name.endswith(f"{unique}-{original}")}
        assert named <= {t for a, t in written.keys() | copies if a == row.target}, row


def write(places: Iterable[Place], addresses: Mapping[str, str]) -> dict[Place, list[bytes]]:
    """Write records that tell where they were written."""
    written = {}
    for alias, topic in sorted(places):
        values = [f"{alias} {topic} {number}".encode() for number in range(20)]
        create_topic(addresses[alias], topic, 2)
        records = [{"value": value, "partition": number % 2} for number, value in enumerate(values)]
        produce(addresses[alias], topic, records)
        written[alias, topic] = values
    return written


def carried(written: Mapping[Place, list[bytes]], table: Iterable[Row]) -> dict[Place, set[bytes]]:
    """Return what each topic of the table holds when everything has gone everywhere."""
    found = {place: set(values) for place, values in written.items()}
    rows = [row for row in table if row.remote_topic is not None]
    for _ in rows:
        for row in rows:
            found.setdefault((row.target, row.remote_topic), set()).update(found.get((row.source, row.topic), ()))
    return found
