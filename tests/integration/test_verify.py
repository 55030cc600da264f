"""`faust -A app verify`: a flow that is right is proved right, also under traffic; what is wrong is named."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from app.core.formats import Position, position_key
from app.core.runs import RUNS_TOPIC, Run, StoredRun, run_key
from app.core.tasks import slot_of
from app.runtime.task import POSITIONS_TOPIC
from tests.support.records import create_topic, numbered, produce, wait_for_count
from tests.support.steady import Steady
from tests.support.worker import run

pytestmark = pytest.mark.integration


def verify(flow: Any, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the command with --json; return what ran and the partitions' rows by (topic, partition)."""
    ran = run(flow.config, "verify", flow.flow, "--json", *arguments)
    assert ran.returncode in (0, 1, 2), ran.stderr
    document = json.loads(ran.stdout)
    document["rows"] = {(row["topic"], row["partition"]): row for row in document["partitions"]}
    return ran, document


def total(document: dict[str, Any], name: str) -> int:
    return sum(row[name] for row in document["partitions"])


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    for done in client.delete_records([TopicPartition(topic, 0, before)]).values():
        done.result(20)


def test_a_flow_under_traffic_is_proved_and_what_is_done_to_its_copies_is_found(scene, unique):
    topic = f"proof-{unique}"
    flow = scene([topic], delivery="exactly-once")
    create_topic(flow.source, topic, 2)
    ran, document = verify(flow)
    assert (ran.returncode, document["verdict"]) == (2, "not verified")
    assert "nothing of these topics was replicated yet" in document["error"]

    worker = flow.start()
    with Steady(flow.source, topic, 2, 400):
        wait_for_count(flow.target, flow.remote(topic), 1000)
        ran, document = verify(flow)
        assert (ran.returncode, document["verdict"]) == (0, "equal"), ran.stdout
        assert total(document, "equal") >= 1000
        ran, document = verify(flow, "--last", "100")
        assert ran.returncode == 0, ran.stdout
        # what came after the position was read is compared too where it is there
        assert 200 <= total(document, "equal") < 1000

    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 20, "no lag")
    produce(flow.target, flow.remote(topic), [{"value": b"by hand", "partition": 0}])
    produce(flow.source, topic, numbered(20, 2))
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 20, "no lag")
    assert worker.stop() == 0
    shown = run(flow.config, "verify", flow.flow, "--topics", topic)  # not the heartbeats of other tests' flows
    assert shown.returncode == 1, shown.stdout + shown.stderr
    (line,) = [line for line in shown.stdout.splitlines() if "foreign" in line]
    assert line.startswith(f"{topic}-0 -> {flow.remote(topic)}-0 at offset ")
    assert "see who else writes" in line
    assert "2 of 2 partitions" in shown.stderr

    delete_records(flow.target, flow.remote(topic), 3)
    ran, document = verify(flow)
    row = document["rows"][topic, 0]
    assert (ran.returncode, row["found"]) == (1, {"foreign": 1, "missing": row["found"]["missing"]})
    assert 1 <= row["found"]["missing"] <= 3
    assert "retention would have kept it" in row["findings"][0]["what"]


def test_repetitions_after_a_crash_are_told_and_allowed_at_least_once(scene, unique):
    topic = f"again-{unique}"
    flow = scene([topic], tasks=1)
    create_topic(flow.source, topic)
    produce(flow.source, topic, numbered(3000))
    worker = flow.start()
    worker.wait(lambda: (f := worker.flow(flow.flow)) and f["records"] >= 3000 and f["lag"] == 0, what="all copied")
    assert worker.stop() == 0
    place_position(flow, topic, 2000)  # as a crash before the last commit leaves it
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(topic), 4000)
    worker.wait(lambda: (f := worker.flow(flow.flow)) and f["lag"] == 0, what="all copied")
    ran, document = verify(flow)
    row = document["rows"][topic, 0]
    assert (ran.returncode, row["equal"], row["found"]) == (0, 3000, {"repeated": 1000})
    assert "1000 records repeated, as at-least-once allows" in run(flow.config, "verify", flow.flow).stdout


def place_position(flow: Any, topic: str, offset: int) -> None:
    record = {
        "key": position_key(flow.flow, topic, 0),
        "value": Position(offset=offset, tasks=1).value(),
        "partition": slot_of(flow.flow, topic, 0),
    }
    produce(flow.target, POSITIONS_TOPIC, [record])


def place_run(flow: Any, topic: str, run_: Run) -> None:
    record = {
        "key": run_key(flow.flow, topic, 0, 0),
        "value": StoredRun(number=0, run=run_).value(),
        "partition": slot_of(flow.flow, topic, 0),
    }
    produce(flow.target, RUNS_TOPIC, [record])


def copies(flow: Any, numbers: Sequence[int], **changed: Any) -> list[dict[str, Any]]:
    """Copies of records that `originals` made, of the last one with something changed."""
    origin = ("__krabka_origin", flow.source_alias.encode())
    made = [original | {"headers": [*original["headers"], origin]} for original in map(original, numbers)]
    made[-1] |= changed
    return made


def original(number: int) -> dict[str, Any]:
    return {"key": b"k", "value": b"%d" % number, "timestamp": BEGUN + number, "headers": [("h", b"1")]}


BEGUN = int(time.time() * 1000) - 60_000


def test_every_kind_of_difference_is_named_in_logs_made_by_hand(scene, unique):
    flow = scene([f"hand-{unique}*"], delivery="exactly-once", tasks=1)
    real = f"hand-{unique}-real"
    create_topic(flow.source, real)
    produce(flow.source, real, numbered(10))
    worker = flow.start()
    wait_for_count(flow.target, flow.remote(real), 10)
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 20, "no lag")
    assert worker.stop() == 0

    first = range(10)
    logs = {
        "right": copies(flow, first),
        "value": copies(flow, range(5), value=b"other") + copies(flow, range(5, 10)),
        "key": copies(flow, range(5), key=None) + copies(flow, range(5, 10)),
        "timestamp": copies(flow, range(5), timestamp=BEGUN) + copies(flow, range(5, 10)),
        "headers": copies(flow, range(5), headers=[("h", b"1")]) + copies(flow, range(5, 10)),
        "missing": copies(flow, (0, 1, 2, 4, 5, 6, 7, 8, 9)),
        "swapped": copies(flow, (0, 1, 2, 4, 3, 5, 6, 7, 8, 9)),
        "doubled": copies(flow, (0, 1, 2, 3, 2, 4, 5, 6, 7, 8, 9)),
        "foreign": copies(flow, (0, 1, 2, 77, 3, 4, 5, 6, 7, 8, 9)),
        "index": copies(flow, first),
        "pending": copies(flow, range(4)),
    }
    for name, log in logs.items():
        topic = f"hand-{unique}-{name}"
        create_topic(flow.source, topic)
        create_topic(flow.target, flow.remote(topic))
        produce(flow.source, topic, map(original, first))
        produce(flow.target, flow.remote(topic), log)
        place_position(flow, topic, 4 if name == "pending" else 10)
    place_run(flow, f"hand-{unique}-index", Run(upstream=5, downstream=0, count=10))

    ran, document = verify(flow, "--topics", f"hand-{unique}*")
    assert (ran.returncode, document["verdict"]) == (1, "different")

    def found(name: str) -> list[tuple[str, int | None, int | None]]:
        row = document["rows"][f"hand-{unique}-{name}", 0]
        return [(one["kind"], one["source_offset"], one["target_offset"]) for one in row["findings"]]

    assert found("right") == found("real") == found("pending") == []
    for name in ("value", "key", "timestamp", "headers"):
        assert found(name) == [("different", 4, 4)]
        (finding,) = document["rows"][f"hand-{unique}-{name}", 0]["findings"]
        assert finding["what"] == f"{name} of the copy"
    assert found("missing") == [("missing", 3, None)]
    assert found("swapped") == [("out of order", 3, 4)]
    assert found("doubled") == [("doubled", 2, 4)]
    assert found("foreign") == [("foreign", None, 3)]
    assert {kind for kind, *_ in found("index")} == {"index"}
    assert document["rows"][f"hand-{unique}-pending", 0]["pending"] == 6

    ran, document = verify(flow, "--topics", f"hand-{unique}-right,hand-{unique}-real")
    assert (ran.returncode, len(document["rows"])) == (0, 2)


def test_what_the_flow_leaves_out_on_purpose_is_no_difference(scene, unique):
    large, home = f"aside-{unique}-large", f"aside-{unique}-home"
    flow = scene(
        [f"aside-{unique}*"],
        delivery="exactly-once",
        tasks=2,
        naming={"template": "{topic}.copy"},
        on_rejected="dead-letter",
        sync={"topic_configs": False},
    )
    for name in (large, home):
        create_topic(flow.source, name)
    create_topic(flow.target, f"{large}.copy", max_message_bytes="2000", retention_ms="1000000000000")
    produce(flow.source, large, [*numbered(5), {"value": b"x" * 50_000, "headers": [("h", None)]}, *numbered(5)])
    came = [("__krabka_origin", flow.target_alias.encode())]
    produce(flow.source, home, [{"value": b"1"}, {"value": b"2", "headers": came}, {"value": b"3"}])
    worker = flow.start()
    wait_for_count(flow.target, f"{large}.copy", 10, 40)
    wait_for_count(flow.target, f"{home}.copy", 2, 40)
    worker.wait(lambda: worker.flow(flow.flow)["lag"] == 0, 20, "no lag")
    ran, document = verify(flow)
    assert ran.returncode == 0, ran.stdout
    row = document["rows"][large, 0]
    assert (row["equal"], row["dead_letters"]) == (10, 1)
    row = document["rows"][home, 0]
    assert (row["equal"], row["dropped"]) == (2, 1)

    dead_letter = f"krabka-replicator-dead-letter.{flow.flow}"
    delete_records(flow.target, dead_letter, 1)
    ran, document = verify(flow, "--topics", large)
    assert (ran.returncode, document["rows"][large, 0]["found"]) == (1, {"missing": 1})


def test_what_cannot_be_verified_is_no_proof(scene, unique):
    topic = f"unproved-{unique}"
    down = scene([topic], target="127.0.0.1:1")
    ran, document = verify(down)
    assert (ran.returncode, document["verdict"]) == (2, "not verified")
    assert "not available" in document["error"]
    assert run(down.config, "verify", "nobody__knows").returncode == 2
