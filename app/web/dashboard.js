// Polls /status and /history and keeps the page in step with them.

import { drawFlows, drawHistory } from "./flows.js";
import { drawBlocked, drawCheckpoints, drawEvents, drawLetters, drawTopics } from "./lists.js";
import { byId, el, keep, mark, say, seconds } from "./parts.js";
import { drawTables, partitions } from "./tables.js";

const POLL = 2000;

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
  say(byId("worker"), `worker ${worker.name}, version ${worker.version}, up ${seconds(Math.round(worker.now - worker.started))}${leads}`);
  byId("token").hidden = !worker.control;
}

function drawClusters({ clusters, targets }) {
  const make = () => el("li", {}, el("div", { class: "row" }, el("h3", { class: "grow" }), el("span", { class: "pill" })), el("p", { class: "quiet" }), el("p", { class: "quiet" }), el("p", { class: "quiet" }));
  keep(byId("clusters"), Object.entries(clusters), ([alias]) => alias, make, (node, [alias, cluster]) => {
    const [name, pill] = node.firstChild.children;
    say(name, alias);
    mark(pill, "data-state", cluster.reachable ? "running" : "failed");
    say(pill, cluster.reachable ? "reachable" : "down");
    say(node.children[1], [cluster.region, ...cluster.zones].filter(Boolean).join(", "));
    say(node.children[2], cluster.cluster_id ? `id ${cluster.cluster_id}` : "");
    const target = targets[alias];
    say(node.children[3], target?.problem ? "leader work has a problem, see Blocked" : target?.leader ? "led by this worker" : target ? `led by ${target.led_by ?? "another worker"}` : "");
  });
}

function lost(error) {
  document.body.classList.add("lost");
  mark(byId("verdict"), "data-state", "failed");
  say(byId("verdict"), "The worker does not answer");
  console.warn(error);
}

const DRAWN = [
  drawWorker, drawClusters, (status) => drawFlows(status, order), drawBlocked, drawCheckpoints, drawTables, drawTopics, drawLetters, drawEvents,
];

async function poll() {
  let pause = POLL;
  if (!document.hidden) {
    try {
      const [status, history] = await Promise.all([get("/status"), get("/history")]);
      document.body.classList.remove("lost");
      for (const draw of DRAWN) draw(status);
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
