"""`on_rejected: dead-letter`: every record is in its topic or, complete and explained, in the dead-letter topic."""

from __future__ import annotations

import time

import pytest

from app.core.dead_letters import PREFIX
from tests.support.records import create_topic, numbered, produce, read_all, wait_for_count

pytestmark = pytest.mark.integration

OLD = 1000

#: The settings of the copies are made by hand here.
HANDMADE = {"topic_configs": False}


def said(record) -> dict[str, str]:
    return {name.removeprefix(PREFIX): v.decode() for name, v in record.headers if name.startswith(PREFIX)}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_what_the_target_refuses_is_set_aside_complete_and_explained(scene, unique, delivery):
    """failures.md B42, B53, B54."""
    large, old, keyless, fine = (f"dead-{unique}-{name}" for name in ("large", "old", "keyless", "fine"))
    flow = scene([f"dead-{unique}*"], delivery=delivery, tasks=2, on_rejected="dead-letter", sync=HANDMADE)
    settings = {
        large: {"max_message_bytes": "2000"},
        old: {"message_timestamp_before_max_ms": "3600000"},
        keyless: {"cleanup_policy": "compact"},
        fine: {},
    }
    now = int(time.time() * 1000)
    bad = {
        large: {"value": b"x" * 100_000, "key": b"a", "timestamp": now},
        old: {"value": b"old", "key": None, "timestamp": OLD, "headers": [("mine", b"1"), ("mine", None)]},
        keyless: {"value": b"no key", "key": None, "timestamp": now},
    }
    for topic, config in settings.items():
        create_topic(flow.source, topic)
        create_topic(flow.target, flow.remote(topic), **config)
        good = [{"value": b"%d" % n, "key": b"k%d" % n, "timestamp": now} for n in range(40)]
        records = [*good[:10], bad[topic], *good[10:30], bad[topic], *good[30:]] if topic in bad else good
        produce(flow.source, topic, records)
    worker = flow.start(name="worker")
    dead_letter = f"krabka-replicator-dead-letter.{flow.flow}"
    wait_for_count(flow.target, dead_letter, 6, 60)
    status = worker.wait(lambda: (f := worker.flow(flow.flow)) and f["lag"] == 0 and not f["held"] and f)
    assert status["counts"]["dead_letters"] >= 6
    for topic in settings:
        copied = [int(record.value) for record in read_all(flow.target, flow.remote(topic))]
        assert (copied if delivery == "exactly-once" else list(dict.fromkeys(copied))) == list(range(40)), topic
    aside = {}
    found = read_all(flow.target, dead_letter)
    for record in found:
        about = said(record)
        aside[about["topic"], int(about["offset"])] = (record, about)
    assert sorted(aside) == sorted((topic, offset) for topic in bad for offset in (10, 31))
    assert len(found) == 6 or delivery == "at-least-once"
    words = {large: "too large", old: "timestamp", keyless: "invalid record"}
    for (topic, _), (record, about) in aside.items():
        wanted = bad[topic]
        assert (record.key, record.value, record.timestamp) == (wanted["key"], wanted["value"], wanted["timestamp"])
        assert record.headers[: len(wanted.get("headers", ()))] == tuple(wanted.get("headers", ()))
        assert ("__krabka_origin", flow.source_alias.encode()) in record.headers
        assert (about["cluster"], about["partition"]) == (flow.source_alias, "0")
        assert about["remote_topic"] == flow.remote(topic)
        assert words[topic] in about["reason"]
    assert f"set aside in {dead_letter}, the target refuses: a record is too large" in worker.log
    produce(flow.source, fine, numbered(5, start=40))
    assert len(wait_for_count(flow.target, flow.remote(fine), 45)) >= 45


def test_nothing_is_lost_or_doubled_when_a_worker_dies_among_many_refusals(scene, unique):
    topic, count = f"many-{unique}", 2400
    flow = scene([topic], delivery="exactly-once", tasks=2, on_rejected="dead-letter", sync=HANDMADE)
    create_topic(flow.source, topic, 2)
    create_topic(flow.target, flow.remote(topic), 2, message_timestamp_before_max_ms="3600000")
    now = int(time.time() * 1000)
    refused = {n for n in range(count) if n % 3 == 0 or 1000 <= n < 1300}
    produce(
        flow.source,
        topic,
        ({"value": b"%d" % n, "partition": n % 2, "timestamp": OLD if n in refused else now} for n in range(count)),
    )
    dead_letter = f"krabka-replicator-dead-letter.{flow.flow}"
    worker = flow.start("killed")
    worker.wait(lambda: worker.flow(flow.flow).get("counts", {}).get("dead_letters", 0) >= 50, 60, "refusals")
    worker.kill()
    worker = flow.start("last")
    worker.wait(lambda: (f := worker.flow(flow.flow)) and f["tasks"]["owned"] == [0, 1] and f["lag"] == 0, 90, "lag 0")
    wait_for_count(flow.target, dead_letter, len(refused))
    assert sorted(int(record.value) for record in read_all(flow.target, dead_letter)) == sorted(refused)
    for partition in range(2):
        copied = [int(r.value) for r in read_all(flow.target, flow.remote(topic)) if r.partition == partition]
        assert copied == [n for n in range(count) if n % 2 == partition and n not in refused]


def test_what_the_dead_letter_topic_refuses_too_holds_the_partition(scene, unique):
    topic = f"both-{unique}"
    flow = scene([topic], delivery="exactly-once", tasks=1, on_rejected="dead-letter", sync=HANDMADE)
    dead_letter = f"krabka-replicator-dead-letter.{flow.flow}"
    create_topic(flow.source, topic)
    create_topic(flow.target, flow.remote(topic), max_message_bytes="2000")
    create_topic(flow.target, dead_letter, max_message_bytes="2000")
    produce(flow.source, topic, [{"value": b"1"}, {"value": b"x" * 50_000}, {"value": b"2"}])
    worker = flow.start()
    held = worker.wait(lambda: (f := worker.flow(flow.flow)) and f["held"], 40, "held")
    reason = held[f"{topic}-0"]
    assert reason.startswith("held at offset 0: the target refuses records for ")
    assert f"so does {dead_letter}" in reason
    assert not read_all(flow.target, dead_letter)
    # What was written beside the refused record is no part of a transaction that commits. On a slow machine a try can
    # come to its end (SLICE) behind the first record: that is committed then, with its position.
    copied = [record.value for record in read_all(flow.target, flow.remote(topic))]
    assert copied in ([], [b"1"])
    if copied:
        place = f"held at offset {len(copied)}: "
        worker.wait(lambda: worker.flow(flow.flow)["held"].get(f"{topic}-0", "").startswith(place), 60, place)
        assert [record.value for record in read_all(flow.target, flow.remote(topic))] == copied
