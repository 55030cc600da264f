"""The dashboard in a real Chromium, against a live flow."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.records import create_topic, numbered, produce, wait_for_count
from tests.support.worker import Worker, write_config

playwright = pytest.importorskip("playwright.sync_api", reason="the dev extra with playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
QUIET = (*QUIET, "--disable-component-update", "--disable-sync", "--no-sandbox")
TOKEN = "not-to-be-guessed-0123"  # noqa: S105 - of the test's own worker

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium; `make browser` as root installs Debian's"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a worker's page; the test fails on any error in it and any foreign request."""
    wrong: list[str] = []
    contexts = []

    def open_it(worker: Worker, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Security Policy" in said.text else None)
        ours = f"http://127.0.0.1:{worker.port}/"
        page.on("request", lambda request: None if request.url.startswith(ours) else wrong.append(request.url))
        page.goto(ours)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture
def live(make_broker: Callable[..., Any], unique: str, tmp_path: Path) -> Iterator[Any]:
    """Yield a worker between two brokers of its own, with a topic of eight partitions."""
    source, target = make_broker(), make_broker()
    for broker in (source, target):
        broker.start()
    for broker in (source, target):
        broker.wait_ready()
    topic = f"orders-{unique}"
    create_topic(source.bootstrap, topic, 8)
    produce(source.bootstrap, topic, numbered(800, 8))
    flow = {"from": "us-east", "to": "eu-west", "delivery": "exactly-once"}
    clusters = {"us-east": source.bootstrap, "eu-west": target.bootstrap}
    with Worker(write_config(tmp_path, clusters, [flow], web={"token": TOKEN}), tmp_path) as worker:
        worker.wait_running("us-east__eu-west")
        yield worker, source, target, topic


def test_the_page_follows_a_flow_from_lag_to_none_through_a_pause_and_a_broker_s_end(live: Any, open_page: Any) -> None:
    worker, source, target, topic = live
    expect = playwright.expect
    page = open_page(worker)
    verdict, lag = page.locator("#verdict"), page.locator('[data-number="lag"]')
    wait_for_count(target.bootstrap, f"us-east.{topic}", 800)
    expect(lag).to_have_text("0", timeout=20_000)
    expect(verdict).to_have_attribute("data-state", "running", timeout=60_000)
    expect(page.locator("figure svg path.line").first).to_have_attribute("d", re.compile("L"), timeout=10_000)

    page.get_by_role("button", name="Pause us-east__eu-west").click()
    page.get_by_role("textbox", name="Token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    expect(page.locator(".flow .pill")).to_have_text("paused", timeout=20_000)
    produce(source.bootstrap, topic, numbered(80, 8, 800))
    expect(lag).to_have_text("80", timeout=20_000)
    expect(page.locator("#blocked")).to_contain_text("paused on request")
    page.get_by_role("button", name="Resume us-east__eu-west").click()
    expect(lag).to_have_text("0", timeout=20_000)

    source.kill()
    expect(verdict).to_have_attribute("data-state", "failed", timeout=30_000)
    expect(page.locator("#clusters li", has_text="us-east").locator(".pill")).to_have_text("down")
    expect(page.locator("#blocked")).to_contain_text("does not answer")
    source.restart()
    expect(verdict).to_have_attribute("data-state", "running", timeout=60_000)


def test_partitions_are_sorted_and_filtered_by_keyboard_on_a_phone(live: Any, open_page: Any) -> None:
    worker, _, target, topic = live
    expect = playwright.expect
    wait_for_count(target.bootstrap, f"us-east.{topic}", 800)
    page = open_page(worker, viewport={"width": 375, "height": 800}, color_scheme="dark")
    rows = page.locator("#partitions tbody tr")
    page.locator("#filter").fill(topic)
    expect(rows).to_have_count(8, timeout=20_000)
    page.get_by_role("button", name="Partition", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator('th[data-column="partition"]')).to_have_attribute("aria-sort", "descending")
    expect(rows.first.locator("td").nth(2)).to_have_text("7")
    page.keyboard.press("Enter")
    expect(rows.first.locator("td").nth(2)).to_have_text("0")
    page.locator("#filter").fill("nothing-has-this-name")
    expect(rows).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background)[:3])) < 150, "dark mode is dark"


HOSTILE = '<img src=x onerror="document.title=1">'


def test_names_are_text(live: Any, open_page: Any) -> None:
    worker = live[0]
    page = open_page(worker)

    def hostile(route: Any) -> None:
        answer = route.fetch().json()
        flow = answer["flows"]["us-east__eu-west"]
        answer["flows"] = {HOSTILE: flow | {"source": HOSTILE, "error": HOSTILE, "held": {HOSTILE: HOSTILE}}}
        answer["clusters"] = {HOSTILE: {"reachable": True, "cluster_id": HOSTILE, "region": HOSTILE, "zones": []}}
        answer["events"] = [{"time": 1.0, "level": "error", "text": HOSTILE}]
        for row in flow["partitions"]:
            row |= {"topic": HOSTILE, "remote_topic": HOSTILE, "held": HOSTILE}
        route.fulfill(json=answer)

    page.route("**/status", hostile)
    page.reload()
    playwright.expect(page.locator("#events")).to_contain_text(HOSTILE, timeout=10_000)
    playwright.expect(page.locator("#blocked")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title() == "krabka-replicator"
