"""The dashboard in a real Chromium, against a live flow."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.groups import commit
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Two workers on one flow, in which everything occurs that the page has a place for."""

    leader: Worker
    other: Worker
    flow: str
    source_alias: str
    source: str
    target: str
    orders: str
    large: str
    group: str


@pytest.fixture(scope="module")
def shown(clusters: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """Yield workers that carried eight partitions, translated a group, set a record aside and found a wrong topic."""
    unique, folder = uuid.uuid4().hex[:6], tmp_path_factory.mktemp("shown")
    a, b, orders, large = f"a-{unique}", f"b-{unique}", f"orders-{unique}", f"large-{unique}"
    source, target = clusters.source.bootstrap, clusters.target.bootstrap
    flow = {"from": a, "to": b, "topics": {"include": [f"*-{unique}"]}, "tasks": 4, "on_rejected": "dead-letter"}
    flow |= {"sync": {"topic_configs": False}}
    create_topic(source, orders, 8)
    produce(source, orders, numbered(800, 8))
    commit(source, f"g-{unique}", orders, {p: 50 + p for p in range(8)})
    create_topic(source, large)
    create_topic(target, f"{a}.{large}", max_message_bytes="2000")
    create_topic(target, f"{a}.checkpoints.internal", cleanup_policy="delete")
    config = write_config(folder, {a: source, b: target}, [flow], web={"token": TOKEN})
    with Worker(config, folder, "one") as one, Worker(config, folder, "two") as two:
        for worker in (one, two):
            worker.wait_running(f"{a}__{b}", 60)
        leads = lambda worker: worker.get("/status")[1]["worker"]["leader"]  # noqa: E731
        one.wait(lambda: bool(leads(one)) != bool(leads(two)), what="a leader")
        leader, other = (one, two) if leads(one) else (two, one)
        leader.wait(lambda: (leader.flow(f"{a}__{b}")["groups"] or {}).get("partitions") == 8, 60, "a group translated")
        wait_for_count(target, f"{a}.{orders}", 800)
        produce(source, large, [{"value": b"x" * 100_000}, {"value": b"fine"}])
        wait_for_count(target, f"{a}.{large}", 1, 60)
        yield Shown(
            leader=leader,
            other=other,
            flow=f"{a}__{b}",
            source_alias=a,
            source=source,
            target=target,
            orders=orders,
            large=large,
            group=f"g-{unique}",
        )


def cell(row: Any, column: str) -> Any:
    return row.locator(f'td[data-column="{column}"]')


def test_who_works_is_shown_by_every_worker_and_the_leader_s_work_by_the_leader(shown: Shown, open_page: Any) -> None:
    expect = playwright.expect
    names = [worker.get("/status")[1]["worker"]["name"] for worker in (shown.leader, shown.other)]
    pages = [open_page(worker) for worker in (shown.leader, shown.other)]
    for page, here in zip(pages, names, strict=True):
        crews = page.locator(".workers li")
        expect(crews).to_have_count(2, timeout=20_000)
        for name in names:
            expect(crews.filter(has_text=name)).to_have_text(re.compile(r"tasks \d(-\d|, \d)"))
        expect(page.locator(".workers li[data-here] b")).to_have_text(here)
    leader, other = pages
    expect(leader.locator('[data-number="heartbeat"]')).to_have_text(re.compile(r"^\d\.\d s ago$"), timeout=20_000)
    expect(leader.locator('[data-number="checkpoints"]')).to_have_text(re.compile(r"^\d+(\.\d)? s ago$"))
    expect(other.locator('[data-number="heartbeat"]')).to_have_text(re.compile(r"^\W$"))
    for place in ("#checkpoints", "#topics", "#clusters"):
        expect(other.locator(place)).to_contain_text(f"led by {names[0]}", timeout=20_000)


def test_groups_topics_dead_letters_and_events_are_shown(shown: Shown, open_page: Any) -> None:
    expect = playwright.expect
    page = open_page(shown.leader)
    rows = page.locator("#groups tbody tr")
    expect(rows).to_have_count(8, timeout=20_000)
    row = rows.filter(has=page.locator('td[data-column="partition"]', has_text=re.compile("^3$")))
    expect(cell(row, "group")).to_have_text(shown.group)
    expect(cell(row, "source_offset")).to_have_text("53")
    expect(cell(row, "target_offset")).to_have_text("53")
    expect(cell(row, "target_topic")).to_have_text(f"{shown.source_alias}.{shown.orders}")
    expect(cell(row, "exact")).to_have_text("exact")
    expect(page.locator("#checkpoints")).to_contain_text("1 group with 8 partitions; last complete round")
    wrong = f"topic {shown.source_alias}.checkpoints.internal has cleanup.policy=delete, compact is expected"
    expect(page.locator("#topics")).to_contain_text(wrong, timeout=20_000)
    page.get_by_text("Topics that are not taken").click()
    expect(page.locator("#left")).to_contain_text("__consumer_offsets")

    carrier = next(w for w in (shown.leader, shown.other) if w.flow(shown.flow)["dead_letters"]["records"])
    page = open_page(carrier)
    expect(page.locator("#letters")).to_contain_text(f"{shown.large}-0", timeout=20_000)
    expect(page.locator("#letters")).to_contain_text("too large")
    expect(page.locator('[data-number="letters"]')).to_have_text("1")
    events = page.locator("#events li")
    page.get_by_label("Show").select_option("dead-letter")
    expect(events).to_have_count(1)
    expect(events).to_contain_text("set aside in krabka-replicator-dead-letter")
    page.get_by_label("Show").select_option("rebalance")
    expect(events.first).to_contain_text("tasks of this worker")


@pytest.mark.parametrize("width", [320, 375])
def test_partitions_are_sorted_and_filtered_by_keyboard_on_a_phone(shown: Shown, open_page: Any, width: int) -> None:
    expect = playwright.expect
    ours = [row for row in shown.leader.flow(shown.flow)["partitions"] if row["topic"] == shown.orders]
    numbers = sorted(row["partition"] for row in ours)
    page = open_page(shown.leader, viewport={"width": width, "height": 800}, color_scheme="dark", has_touch=True)
    rows = page.locator("#partitions tbody tr")
    page.locator("#partitions-filter").fill(shown.orders)
    expect(rows).to_have_count(len(ours), timeout=20_000)
    page.locator("#partitions").get_by_role("button", name="Partition", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator('#partitions th[data-column="partition"]')).to_have_attribute("aria-sort", "descending")
    expect(cell(rows.first, "partition")).to_have_text(str(numbers[-1]))
    page.keyboard.press("Enter")
    expect(cell(rows.first, "partition")).to_have_text(str(numbers[0]))
    page.locator("#partitions-filter").fill("nothing-has-this-name")
    expect(rows).to_have_count(0)
    page.locator("#partitions-filter").fill("")
    expect(page.locator("#groups tbody tr")).to_have_count(8)
    page.get_by_text("Topics that are not taken").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert page.evaluate(READABLE) == [], "text that is hard to read on its background"


#: Texts whose contrast with what lies behind them is below what WCAG asks for (AA, 4.5).
READABLE = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parts(getComputedStyle(node).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
  };
  const own = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const seen = (node) => own(node) && node.checkVisibility() && !node.disabled;
  return [...document.body.querySelectorAll("*")].filter(seen)
    .map((node) => [light(parts(getComputedStyle(node).color)), light(behind(node)), node])
    .filter(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5)
    .map(([, , node]) => `${node.tagName} ${node.className} ${node.textContent.slice(0, 40)}`);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_colour_scheme_is_readable(shown: Shown, open_page: Any, scheme: str) -> None:
    page = open_page(shown.leader, color_scheme=scheme)
    playwright.expect(page.locator("#partitions tbody tr").first).to_be_visible(timeout=20_000)
    assert page.evaluate(READABLE) == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3]))
    assert brightness < 150 if scheme == "dark" else brightness > 600


def test_three_thousand_partitions_are_filtered_in_a_few_steps(shown: Shown, open_page: Any) -> None:
    expect = playwright.expect
    page = open_page(shown.leader)

    def many(route: Any) -> None:
        answer = route.fetch().json()
        flow = answer["flows"][shown.flow]
        row = flow["partitions"][0]
        flow["partitions"] = [row | {"topic": f"t-{n:04}", "partition": n % 7, "lag": n} for n in range(3000)]
        route.fulfill(json=answer)

    page.route("**/status", many)
    found, rows = page.locator("#partitions-found"), page.locator("#partitions tbody tr")
    expect(found).to_have_text("3 000 of 3 000 on this worker", timeout=20_000)
    expect(rows).to_have_count(100)
    expect(cell(rows.first, "topic")).to_have_text("t-2999")
    page.evaluate("""() => {
      window.changed = 0;
      const count = (found) => {
        for (const one of found) window.changed += one.addedNodes.length + one.removedNodes.length;
      };
      new MutationObserver(count).observe(document.querySelector("#partitions tbody"), { childList: true });
    }""")
    page.locator("#partitions-filter").fill("t-0042")
    expect(rows).to_have_count(1)
    expect(cell(rows, "lag")).to_have_text("42")
    page.locator("#partitions-filter").fill("")
    expect(rows).to_have_count(100)
    assert page.evaluate("window.changed") <= 400, "rows that nobody sees are drawn"
    page.get_by_role("button", name="Show more").last.click()
    expect(rows).to_have_count(200)


def test_nothing_jumps_while_records_flow(shown: Shown, open_page: Any) -> None:
    page = open_page(shown.leader)
    playwright.expect(page.locator("#partitions tbody tr").first).to_be_visible(timeout=20_000)
    where = "[...document.querySelectorAll('h2, .flow button, dt')].map((node) => [node.offsetTop, node.offsetLeft])"
    before = page.evaluate(where)
    assert len(before) > 15
    copied = page.locator('[data-number="records"]').inner_text()
    produce(shown.source, shown.orders, numbered(8000, 8, 800))
    playwright.expect(page.locator('[data-number="records"]')).not_to_have_text(copied, timeout=20_000)
    for _ in range(2):
        page.wait_for_event("response", lambda answer: answer.url.endswith("/history"), timeout=20_000)
        assert page.evaluate(where) == before


HOSTILE = '<img src=x onerror="document.title=1">'


def test_names_are_text(shown: Shown, open_page: Any) -> None:
    page = open_page(shown.leader)

    def hostile(route: Any) -> None:
        answer = route.fetch().json()
        flow = answer["flows"][shown.flow]
        flow |= {"source": HOSTILE, "error": HOSTILE, "held": {HOSTILE: HOSTILE}, "topic_problems": [HOSTILE]}
        flow |= {"workers": [{"worker": HOSTILE, "address": HOSTILE, "tasks": [1]}], "not_selected": {HOSTILE: HOSTILE}}
        flow["dead_letters"]["last"] = [{"topic": HOSTILE, "partition": 1, "reason": HOSTILE, "time": 1.0}]
        flow["groups"]["problems"] = [HOSTILE]
        for row in flow["groups"]["first"]:
            row |= {"group": HOSTILE, "topic": HOSTILE, "target_topic": HOSTILE}
        for row in flow["partitions"]:
            row |= {"topic": HOSTILE, "remote_topic": HOSTILE, "held": HOSTILE}
        answer["flows"] = {HOSTILE: flow}
        answer["clusters"] = {HOSTILE: {"reachable": True, "cluster_id": HOSTILE, "region": HOSTILE, "zones": []}}
        answer["events"] = [{"time": 1.0, "level": "error", "kind": HOSTILE, "text": HOSTILE}]
        route.fulfill(json=answer)

    page.route("**/status", hostile)
    page.reload()
    lists = ("events", "blocked", "topics", "left", "letters", "checkpoints", "groups", "partitions", "flows")
    for name in lists:
        playwright.expect(page.locator(f"#{name}")).to_contain_text(HOSTILE, timeout=10_000)
    assert page.locator("img").count() == 0
    assert page.title() == "krabka-replicator"
