// Lists of sentences: what is blocked, checkpoints, topics, dead letters, events.

import { byId, clock, count, el, keep, mark, say, seconds } from "./parts.js";

const SHOWN = 200;
let lastEvents = [];

function drawLines(list, lines, nothing) {
  const shown = lines.length ? lines.slice(0, SHOWN) : [{ who: "", text: nothing }];
  const rest = lines.length - shown.length;
  if (rest > 0) shown.push({ who: "", text: `and ${rest} more, see /status` });
  const make = () => el("li", {}, el("time"), el("b"), " ", el("span"));
  keep(list, shown.map((line, i) => ({ key: `${i}`, ...line })), (line) => line.key, make, (node, { time, who, text, level }) => {
    mark(node, "data-level", level || null);
    say(node.children[0], time ?? "");
    say(node.children[1], who);
    say(node.children[2], text);
  });
}

function lostRecords(loss) {
  return `records lost (${loss.kind}): offsets ${loss.first} to ${loss.last ?? "unknown"}; goes on at ${loss.resume}`;
}

function blockedOf([name, flow]) {
  const lines = [];
  const add = (who, text, level) => lines.push({ who, text, level });
  if (flow.state === "paused") add(name, "paused on request", "warning");
  if (flow.error) add(name, flow.error, "error");
  for (const [what, why] of Object.entries(flow.held)) add(`${name} ${what}`, why, "error");
  for (const row of flow.partitions) if (row.held) add(`${name} ${row.topic}-${row.partition}`, row.held, "warning");
  for (const loss of flow.losses) add(`${name} ${loss.topic}-${loss.partition}`, lostRecords(loss), "error");
  return lines;
}

export function drawBlocked({ flows, clusters, targets }) {
  const down = Object.entries(clusters).filter(([, cluster]) => !cluster.reachable);
  const wrong = Object.entries(targets).filter(([, target]) => target.problem);
  drawLines(byId("blocked"), [
    ...down.map(([who]) => ({ who, text: "the cluster does not answer", level: "error" })),
    ...wrong.map(([who, target]) => ({ who, text: target.problem, level: "error" })),
    ...Object.entries(flows).flatMap(blockedOf),
  ], "Nothing is blocked.");
}

function elsewhere(flow, targets) {
  return `${flow.target} is led by ${targets[flow.target]?.led_by ?? "another worker"}, whose page tells`;
}

export function drawCheckpoints({ flows, targets }) {
  drawLines(byId("checkpoints"), Object.entries(flows).flatMap(([who, flow]) => {
    if (!flow.groups) return [{ who, text: elsewhere(flow, targets) }];
    const { groups, partitions, first, checkpoint_age_seconds: age, problems } = flow.groups;
    const shown = first.length < partitions ? `, the first ${first.length} below` : "";
    const text = `${count(groups, "group")} with ${count(partitions, "partition")}${shown}; last complete round ${age == null ? "to come" : `${seconds(Math.round(age))} ago`}`;
    return [{ who, text }, ...problems.map((problem) => ({ who, text: problem, level: "warning" }))];
  }), "There is no flow.");
}

export function drawTopics({ flows, targets }) {
  const all = Object.entries(flows);
  drawLines(byId("topics"), all.flatMap(([who, flow]) => {
    if (!flow.topic_problems) return [{ who, text: elsewhere(flow, targets) }];
    return flow.topic_problems.map((text) => ({ who, text, level: "warning" }));
  }), "Settings, rights and the replicator's own topics are as they should be.");
  const left = all.flatMap(([name, flow]) => Object.entries(flow.not_selected).map(([topic, text]) => ({ who: `${name} ${topic}`, text })));
  say(byId("left-count"), `${left.length}`);
  drawLines(byId("left"), left, "None.");
}

export function drawLetters({ flows }) {
  drawLines(byId("letters"), Object.entries(flows).flatMap(([name, { dead_letters: letters }]) => letters.last.map((row) => ({
    time: clock(row.time),
    who: `${name} ${row.topic}-${row.partition}`,
    text: `${row.records} in ${letters.topic ?? "the dead-letter topic"}, offsets ${row.first} to ${row.last}: ${row.reason}`,
    level: "warning",
  }))), "This worker set nothing aside since it started.");
}

export function drawEvents({ events }) {
  lastEvents = events;
  const kind = byId("kind").value;
  const wanted = events.filter((event) => !kind || event.kind === kind).reverse();
  drawLines(byId("events"), wanted.map((event) => ({
    key: `${event.time} ${event.text}`, time: clock(event.time), who: event.kind ?? event.level, text: event.text, level: event.level,
  })), kind ? "None of this kind since this worker started." : "None since this worker started.");
}

byId("kind").addEventListener("change", () => drawEvents({ events: lastEvents }));
