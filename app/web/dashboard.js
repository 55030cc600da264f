// Polls /status and /history and keeps the page in step with them.

import { clock, el, keep, mark, say, seconds, short, size } from "./parts.js";
import { Plot } from "./plot.js";
import { Partitions } from "./table.js";

const POLL = 2000;
const SPAN = 600;
const byId = (id) => document.getElementById(id);
const partitions = new Partitions();
const plots = new Map();

async function get(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(8000) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

function drawWorker({ worker, clusters, flows, targets }) {
  const down = Object.values(clusters).some((cluster) => !cluster.reachable);
  const states = Object.values(flows);
  const failed = states.some((flow) => !["running", "paused"].includes(flow.state));
  const held = states.some((flow) => Object.keys(flow.held).length) || Object.values(targets).some((t) => t.problem);
  const paused = states.some((flow) => flow.state === "paused");
  const state = down || failed ? "failed" : held ? "held" : paused ? "paused" : "running";
  const words = { failed: down ? "A cluster is down" : "A flow is not running", held: "Something is blocked", paused: "Paused", running: "All flows run" };
  mark(byId("verdict"), "data-state", state);
  say(byId("verdict"), words[state]);
  const leads = worker.leader.length ? `, leads ${worker.leader.join(", ")}` : "";
  say(byId("worker"), `${worker.host}, process ${worker.pid}, version ${worker.version}, up ${seconds(worker.now - worker.started)}${leads}`);
  byId("token").hidden = !worker.control;
}

function drawClusters({ clusters, targets }) {
  const make = () => el("li", {}, el("div", { class: "row" }, el("h3", { class: "grow" }), el("span", { class: "pill" })), el("p", { class: "quiet" }), el("p", { class: "quiet" }));
  keep(byId("clusters"), Object.entries(clusters), ([alias]) => alias, make, (node, [alias, cluster]) => {
    const [name, pill] = node.firstChild.children;
    say(name, alias);
    mark(pill, "data-state", cluster.reachable ? "running" : "failed");
    say(pill, cluster.reachable ? "reachable" : "down");
    const place = [cluster.region, ...cluster.zones].filter(Boolean).join(", ");
    say(node.children[1], [place, cluster.cluster_id && `id ${cluster.cluster_id}`].filter(Boolean).join(" · ") || " ");
    say(node.children[2], targets[alias]?.problem ? "leader work has a problem, see below" : targets[alias]?.leader ? "led by this worker" : "");
  });
}

const NUMBERS = [["Lag", "lag"], ["Lag (time)", "seconds"], ["Records/s", "rate"], ["Bytes/s", "bytes"], ["Latency p95", "latency"], ["Tasks here", "tasks"], ["Copied", "records"]];

function makeFlow([name]) {
  const numbers = NUMBERS.map(([title, key]) => el("div", {}, el("dt", {}, title), el("dd", { "data-number": key }, "–")));
  const drawn = {
    rate: new Plot("Records/s", short),
    lag: new Plot("Lag, records", short),
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
    el("div", { class: "plots" }, ...Object.values(drawn).map((plot) => plot.node)));
}

function drawFlows({ flows, worker }) {
  keep(byId("flows"), Object.entries(flows), ([name]) => name, makeFlow, (node, [name, flow]) => {
    const [title, pill, about] = node.firstChild.children;
    say(title, `${flow.source} → ${flow.target}`);
    mark(pill, "data-state", flow.state);
    say(pill, flow.state);
    const counts = flow.counts;
    say(about, `${flow.delivery}, ${short(counts.commits)} commits, ${counts.rebalances} rebalances`);
    say(node.querySelector(".why"), flow.error ?? (flow.tasks.idle ? `This worker is idle: ${flow.tasks.idle}` : ""));
    const numbers = { lag: short(flow.lag), seconds: seconds(flow.lag_seconds), tasks: `${flow.tasks.owned.length} of ${flow.tasks.total}`, records: `${short(flow.records)} · ${size(flow.bytes)}` };
    for (const [key, text] of Object.entries(numbers)) say(node.querySelector(`[data-number="${key}"]`), text);
    mark(node.querySelector('[data-number="tasks"]'), "title", `tasks ${flow.tasks.owned.join(", ") || "none"}`);
    for (const control of node.querySelectorAll("[data-action]")) {
      const action = control.dataset.action;
      control.disabled = !worker.control || (action === "pause" && flow.state === "paused") || (action === "resume" && flow.state !== "paused");
      mark(control, "title", worker.control ? null : "Set web.token in the configuration to control flows here");
    }
  });
}

function drawBlocked({ flows, clusters, targets }) {
  const lines = [];
  for (const [alias, cluster] of Object.entries(clusters)) if (!cluster.reachable) lines.push([alias, "the cluster does not answer", "error"]);
  for (const [alias, target] of Object.entries(targets)) if (target.problem) lines.push([alias, target.problem, "error"]);
  for (const [name, flow] of Object.entries(flows)) {
    if (flow.state === "paused") lines.push([name, "paused on request", "warning"]);
    if (flow.error) lines.push([name, flow.error, "error"]);
    for (const [what, why] of Object.entries(flow.held)) lines.push([`${name} ${what}`, why, "error"]);
    for (const row of flow.partitions) if (row.held) lines.push([`${name} ${row.topic}-${row.partition}`, row.held, "warning"]);
    for (const loss of flow.losses) lines.push([`${name} ${loss.topic}-${loss.partition}`, `records lost (${loss.kind}): offsets ${loss.first} to ${loss.last ?? "unknown"}; goes on at ${loss.resume}`, "error"]);
  }
  const shown = lines.length ? lines.slice(0, 200) : [["", "Nothing is blocked.", ""]];
  drawLines(byId("blocked"), shown.map(([who, text, level], i) => ({ key: `${i}`, who, text, level })));
}

function drawLines(list, lines) {
  const make = () => el("li", {}, el("time"), el("b"), " ", el("span"));
  keep(list, lines, (line) => line.key, make, (node, { time, who, text, level }) => {
    mark(node, "data-level", level || null);
    say(node.children[0], time ?? "");
    say(node.children[1], who);
    say(node.children[2], text);
  });
}

function drawEvents({ events }) {
  const lines = events.toReversed().map((event) => ({ key: `${event.time} ${event.text}`, time: clock(event.time), who: event.level, text: event.text, level: event.level }));
  drawLines(byId("events"), lines.length ? lines : [{ key: "none", who: "", text: "None since this worker started.", level: "" }]);
}

function drawHistory({ flows }) {
  for (const [name, columns] of Object.entries(flows)) {
    const drawn = plots.get(name);
    if (!drawn) continue;
    drawn.rate.draw(columns.time, columns.records_per_second, SPAN);
    drawn.lag.draw(columns.time, columns.lag, SPAN);
    drawn.latency.draw(columns.time, columns.latency, SPAN);
    const last = (values, show) => (values.at(-1) == null ? "–" : show(values.at(-1)));
    const card = [...byId("flows").children].find((node) => node.dataset.key === name);
    const set = (key, text) => say(card.querySelector(`[data-number="${key}"]`), text);
    set("rate", last(columns.records_per_second, short));
    set("bytes", last(columns.bytes_per_second, size));
    set("latency", last(columns.latency.filter((value) => value != null), seconds));
  }
}

function lost(error) {
  document.body.classList.add("lost");
  mark(byId("verdict"), "data-state", "failed");
  say(byId("verdict"), "The worker does not answer");
  console.warn(error);
}

async function poll() {
  let pause = POLL;
  if (!document.hidden) {
    try {
      const [status, history] = await Promise.all([get("/status"), get("/history")]);
      document.body.classList.remove("lost");
      for (const draw of [drawWorker, drawClusters, drawFlows, drawBlocked, drawEvents]) draw(status);
      partitions.take(status.flows);
      drawHistory(history);
      if (partitions.rows.length > 1000) pause *= 3;
    } catch (error) {
      lost(error);
    }
  }
  setTimeout(poll, pause);
}

function toast(text) {
  say(byId("toast"), text);
  byId("toast").hidden = false;
  setTimeout(() => (byId("toast").hidden = true), 6000);
}

function askToken() {
  const dialog = byId("ask");
  byId("ask-value").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const value = dialog.returnValue === "ok" ? byId("ask-value").value.trim() : "";
      if (value) sessionStorage.setItem("token", value);
      byId("ask-value").value = "";
      resolve(value);
    }, { once: true });
  });
}

async function order(flow, action) {
  const token = sessionStorage.getItem("token") || (await askToken());
  if (!token) return;
  try {
    const path = `/flows/${encodeURIComponent(flow)}/${action}`;
    const answer = await fetch(path, { method: "POST", headers: { Authorization: `Bearer ${token}` } });
    const said = await answer.json();
    if (answer.status === 403) sessionStorage.removeItem("token");
    toast(answer.ok ? `${flow}: ${action} is written; the workers follow within seconds.` : said.error);
  } catch (error) {
    toast(`${flow}: ${action} failed: ${error.message}`);
  }
}

byId("token").addEventListener("click", askToken);
document.addEventListener("visibilitychange", () => document.hidden || get("/status").then(drawWorker, lost));
poll();
