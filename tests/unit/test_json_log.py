"""`runtime.logging: json`, on the output of a worker whose clusters are down."""

import json
import logging
import logging.config
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import json_log
from tests.support.worker import Worker, write_config

TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        yield write_config(tmp_path, {"a": address, "b": address}, [{"from": "a", "to": "b"}])


def test_every_line_of_a_worker_is_an_object(config: Path, tmp_path: Path) -> None:
    with Worker(config, tmp_path, KRABKA_REPLICATOR_LOGGING="json") as worker:
        worker.wait(lambda: "flow a__b: failed" in worker.log, what="the flow's failure")
        assert worker.stop() == 0
    objects = [json.loads(line) for line in worker.log.splitlines()]
    assert all(list(one)[:4] == ["time", "level", "logger", "message"] for one in objects)
    assert all(TIME.fullmatch(one["time"]) for one in objects)
    found = next(one for one in objects if one["message"].startswith("flow a__b: failed"))
    assert (found["level"], found["logger"]) == ("ERROR", "app.runtime.flow")
    assert {"INFO", "ERROR"} <= {one["level"] for one in objects}


def test_otherwise_it_is_text_behind_a_banner(config: Path, tmp_path: Path) -> None:
    with Worker(config, tmp_path) as worker:
        worker.wait(lambda: "flow a__b: failed" in worker.log, what="the flow's failure")
    assert "krabka-replicator" in worker.log.split("[^", 1)[0]
    assert not worker.log.startswith("{")


def formatted(name: str, record: logging.LogRecord) -> dict[str, Any]:
    configurator = logging.config.DictConfigurator({})
    formatter = configurator.configure_formatter(dict(json_log.CONFIG["formatters"][name]))
    found: dict[str, Any] = json.loads(formatter.format(record))
    return found


@pytest.mark.parametrize("name", ["default", "colored"], ids=["file", "stderr"])
def test_a_traceback_stays_on_its_line(name: str) -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        told = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("app.x", logging.ERROR, __file__, 1, "%s\n%s", ("ü", 7), told)
    found = formatted(name, record)
    assert list(found) == ["time", "level", "logger", "message", "exception"]
    assert found["message"] == "ü\n7"
    assert found["exception"].endswith("ValueError: two\nlines")
