// A card for each flow: its state, its numbers, the last minutes, and who works on it.

import { byId, count, el, keep, mark, say, seconds, short, size, spans } from "./parts.js";
import { Plot } from "./plot.js";

const SPAN = 600;
const plots = new Map();

const NUMBERS = [
  ["Lag", "lag"], ["Lag (time)", "seconds"], ["Records/s", "rate"], ["Bytes/s", "bytes"], ["Latency p95", "latency"],
  ["Copied", "records"], ["Tasks here", "tasks"], ["Heartbeat", "heartbeat"], ["Checkpoints", "checkpoints"],
  ["Groups", "groups"], ["Lost, refused", "losses"], ["Dead letters", "letters"],
];

function makeFlow([name], order) {
  const numbers = NUMBERS.map(([title, key]) => el("div", {}, el("dt", {}, title), el("dd", { "data-number": key }, "–")));
  const drawn = {
    rate: new Plot("Records/s", short),
    lag: new Plot("Lag, records", short),
    seconds: new Plot("Lag, time", seconds),
    latency: new Plot("Latency p95", seconds),
  };
  plots.set(name, drawn);
  const button = (action, title) => {
    const node = el("button", { type: "button", "data-action": action, "aria-label": `${title} ${name}` }, title);
    node.addEventListener("click", () => order(name, action));
    return node;
  };
  return el("article", { class: "flow" },
    el("div", { class: "row" }, el("h3", {}), el("span", { class: "pill" }), el("span", { class: "quiet grow" }), button("pause", "Pause"), button("resume", "Resume"), button("restart", "Restart")),
    el("p", { class: "why" }),
    el("dl", { class: "numbers" }, ...numbers),
    el("div", { class: "plots" }, ...Object.values(drawn).map((plot) => plot.node)),
    el("h4", {}, "Tasks and workers"),
    el("ul", { class: "workers", "aria-label": `Workers of ${name}` }));
}

function ago(age) {
  return age == null ? "–" : `${age < 10 ? age.toFixed(1) : Math.round(age)} s ago`;
}

function numbersOf(flow) {
  const { counts, groups, heartbeat } = flow;
  const lost = Object.values(counts.losses).reduce((sum, times) => sum + times, 0);
  return {
    lag: short(flow.lag),
    seconds: seconds(flow.lag_seconds),
    tasks: `${flow.tasks.owned.length} of ${flow.tasks.total}`,
    records: `${short(flow.records)} · ${size(flow.bytes)}`,
    heartbeat: heartbeat.wanted ? ago(heartbeat.age_seconds) : "off",
    checkpoints: ago(groups?.checkpoint_age_seconds),
    groups: groups ? short(groups.groups) : "–",
    losses: `${lost}, ${counts.refusals}`,
    letters: `${short(flow.dead_letters.records)}`,
  };
}

function hintsOf(flow, targets) {
  const leader = `${flow.target} is led by ${targets[flow.target]?.led_by ?? "another worker"}, whose page tells`;
  return {
    tasks: `tasks ${spans(flow.tasks.owned)}`,
    heartbeat: flow.heartbeat.wanted && flow.heartbeat.age_seconds == null ? leader : `when ${flow.target} took the last one of ${flow.source}`,
    checkpoints: flow.groups ? "when the last complete round ended" : leader,
    groups: flow.groups ? `${flow.groups.partitions} partitions` : leader,
    losses: Object.entries(flow.counts.losses).map(([kind, times]) => `${kind}: ${times}`).join(", ") || "no losses since this worker started",
    letters: flow.dead_letters.topic ?? "on_rejected is hold: refused records hold their partition",
  };
}

function about(flow) {
  const { commits, rebalances, fenced, task_failures: failures } = flow.counts;
  const limit = flow.limits ? `, at most ${size(flow.limits.bytes_per_second)}/s${flow.limits.held_back ? " (held back)" : ""}` : "";
  return `${flow.delivery}${limit}, ${count(commits, "commit")}, ${count(rebalances, "rebalance")}, ${fenced} fenced, ${count(failures, "task failure")}`;
}

function drawWorkers(list, flow, here) {
  const crews = flow.workers ?? [{ worker: here, address: "", tasks: flow.tasks.owned }];
  const make = () => el("li", {}, el("b"), " ", el("span", { class: "quiet" }), " ", el("span"));
  keep(list, crews, (crew) => crew.worker + crew.address, make, (node, crew) => {
    mark(node, "data-here", crew.worker === here ? "" : null);
    say(node.children[0], crew.worker);
    say(node.children[1], [crew.worker === here ? "this worker" : "", crew.address].filter(Boolean).join(", "));
    say(node.children[2], crew.tasks.length ? `tasks ${spans(crew.tasks)}` : "no task");
  });
}

export function drawFlows({ flows, targets, worker }, order) {
  keep(byId("flows"), Object.entries(flows), ([name]) => name, (entry) => makeFlow(entry, order), (node, [, flow]) => {
    const [title, pill, text] = node.firstChild.children;
    say(title, `${flow.source} → ${flow.target}`);
    mark(pill, "data-state", flow.state);
    say(pill, flow.state);
    say(text, about(flow));
    say(node.querySelector(".why"), flow.error ?? (flow.tasks.idle ? `This worker is idle: ${flow.tasks.idle}` : ""));
    const number = (key) => node.querySelector(`[data-number="${key}"]`);
    for (const [key, value] of Object.entries(numbersOf(flow))) say(number(key), value);
    for (const [key, value] of Object.entries(hintsOf(flow, targets))) mark(number(key), "title", value);
    drawWorkers(node.querySelector(".workers"), flow, worker.name);
    for (const control of node.querySelectorAll("[data-action]")) {
      const action = control.dataset.action;
      control.disabled = !worker.control || (action === "pause" && flow.state === "paused") || (action === "resume" && flow.state !== "paused");
      mark(control, "title", worker.control ? null : "Set web.token in the configuration to control flows here");
    }
  });
}

export function drawHistory({ flows }) {
  for (const [name, columns] of Object.entries(flows)) {
    const card = [...byId("flows").children].find((node) => node.dataset.key === name);
    if (!card) continue;
    const drawn = plots.get(name);
    drawn.rate.draw(columns.time, columns.records_per_second, SPAN);
    drawn.lag.draw(columns.time, columns.lag, SPAN);
    drawn.seconds.draw(columns.time, columns.lag_seconds, SPAN);
    drawn.latency.draw(columns.time, columns.latency, SPAN);
    const last = (values, show) => (values.at(-1) == null ? "–" : show(values.at(-1)));
    const set = (key, text) => say(card.querySelector(`[data-number="${key}"]`), text);
    set("rate", last(columns.records_per_second, short));
    set("bytes", last(columns.bytes_per_second, size));
    set("latency", last(columns.latency.filter((value) => value != null), seconds));
  }
}
