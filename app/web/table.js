// The partitions of all flows: sorted and filtered here, drawn a few hundred at a time.

import { el, exact, keep, mark, say, seconds, size } from "./parts.js";

const STEP = 200;
const COLUMNS = [
  ["flow", "Flow"], ["topic", "Topic"], ["partition", "Partition", "number"], ["remote_topic", "Remote topic"],
  ["task", "Task", "number"], ["position", "Position", "number"], ["end_offset", "End", "number"],
  ["lag", "Lag", "number lag"], ["lag_seconds", "Lag (time)", "number lag"], ["bytes", "Copied", "number"],
];
const SHOWN = { position: exact, end_offset: exact, lag: exact, lag_seconds: seconds, bytes: size };

const byId = (id) => document.getElementById(id);

export class Partitions {
  constructor() {
    this.rows = [];
    this.sort = { column: "lag", down: true };
    this.limit = STEP;
    const head = document.querySelector("#partitions thead tr");
    for (const [column, title, kind] of COLUMNS) {
      const button = el("button", { type: "button" }, title);
      button.addEventListener("click", () => this.sortBy(column));
      head.append(el("th", { scope: "col", class: kind, "data-column": column }, button));
    }
    byId("filter").addEventListener("input", () => this.draw());
    byId("lagging").addEventListener("change", () => this.draw());
    byId("more").addEventListener("click", () => {
      this.limit += STEP;
      this.draw();
    });
  }

  sortBy(column) {
    const numeric = COLUMNS.find(([name]) => name === column)[2] != null;
    this.sort = { column, down: this.sort.column === column ? !this.sort.down : numeric };
    this.draw();
  }

  take(flows) {
    this.rows = Object.entries(flows).flatMap(([flow, state]) => state.partitions.map((row) => ({ ...row, flow })));
    this.draw();
  }

  wanted() {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const lagging = byId("lagging").checked;
    const fits = (row) => words.every((word) => {
      if (/^task:\d+$/.test(word)) return row.task === Number(word.slice(5));
      return `${row.flow} ${row.topic}-${row.partition} ${row.remote_topic}`.toLowerCase().includes(word);
    });
    return this.rows.filter((row) => (!lagging || row.lag > 0) && fits(row));
  }

  draw() {
    const { column, down } = this.sort;
    const by = (a, b) => {
      const [x, y] = [a[column] ?? Infinity, b[column] ?? Infinity];
      return x < y ? -1 : x > y ? 1 : 0;
    };
    const tie = (a, b) => a.flow.localeCompare(b.flow) || a.topic.localeCompare(b.topic) || a.partition - b.partition;
    const rows = this.wanted().sort((a, b) => (down ? -by(a, b) : by(a, b)) || tie(a, b));
    for (const cell of document.querySelectorAll("#partitions th")) {
      mark(cell, "aria-sort", cell.dataset.column === column ? (down ? "descending" : "ascending") : null);
    }
    say(byId("found"), `${exact(rows.length)} of ${exact(this.rows.length)} on this worker`);
    byId("more").hidden = rows.length <= this.limit;
    const body = document.querySelector("#partitions tbody");
    keep(body, rows.slice(0, this.limit), (row) => `${row.flow} ${row.topic} ${row.partition}`, make, update);
  }
}

function make() {
  return el("tr", {}, ...COLUMNS.map(([, , kind]) => el("td", { class: kind })));
}

function update(node, row) {
  mark(node, "data-lag", row.lag > 0 ? "" : null);
  mark(node, "data-held", row.held ? "" : null);
  mark(node, "title", row.held);
  COLUMNS.forEach(([column], i) => say(node.children[i], (SHOWN[column] ?? String)(row[column])));
}
