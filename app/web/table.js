// A table that is sorted and filtered here, and drawn a hundred rows at a time.

import { byId, el, exact, keep, mark, say } from "./parts.js";

const STEP = 100;

// `columns`: [name, title, class, how to show it]; `only`: what the check box keeps; `text`: what words are looked for in.
export class Table {
  constructor(id, { columns, sort, key, text, only, word = () => null, dress = () => {}, scope }) {
    Object.assign(this, { id, columns, sort, key, text, only, word, dress, scope });
    this.rows = [];
    this.limit = STEP;
    this.body = document.querySelector(`#${id} tbody`);
    const head = document.querySelector(`#${id} thead tr`);
    for (const [column, title, kind] of columns) {
      const button = el("button", { type: "button" }, title);
      button.addEventListener("click", () => this.sortBy(column));
      head.append(el("th", { scope: "col", class: kind, "data-column": column }, button));
    }
    byId(`${id}-filter`).addEventListener("input", () => this.narrow());
    byId(`${id}-only`).addEventListener("change", () => this.narrow());
    byId(`${id}-more`).addEventListener("click", () => {
      this.limit += STEP;
      this.draw();
    });
    this.draw();
  }

  narrow() {
    this.limit = STEP;
    this.draw();
  }

  sortBy(column) {
    const numeric = this.columns.find(([name]) => name === column)[2] != null;
    this.sort = { column, down: this.sort.column === column ? !this.sort.down : numeric };
    this.draw();
  }

  // New numbers. While the pointer is over the rows they keep their places, so that none runs away.
  take(rows) {
    this.rows = rows;
    this.draw(this.body.matches(":hover"));
  }

  wanted() {
    const words = byId(`${this.id}-filter`).value.toLowerCase().split(/\s+/).filter(Boolean);
    const tests = words.map((word) => this.word(word) ?? ((row) => this.text(row).toLowerCase().includes(word)));
    if (byId(`${this.id}-only`).checked) tests.push(this.only);
    return this.rows.filter((row) => tests.every((test) => test(row)));
  }

  sorted(rows) {
    const { column, down } = this.sort;
    const way = down ? -1 : 1;
    return rows.sort((a, b) => way * compare(a[column], b[column]) || compare(this.key(a), this.key(b)));
  }

  draw(still = false) {
    let rows = this.sorted(this.wanted());
    if (still) {
      const places = new Map([...this.body.children].map((node, i) => [node.dataset.key, i]));
      const place = (row) => places.get(this.key(row)) ?? Infinity;
      rows = rows.map((row) => [place(row), row]).sort(([a], [b]) => compare(a, b)).map(([, row]) => row);
    }
    for (const cell of document.querySelectorAll(`#${this.id} th`)) {
      mark(cell, "aria-sort", cell.dataset.column === this.sort.column ? (this.sort.down ? "descending" : "ascending") : null);
    }
    say(byId(`${this.id}-found`), `${exact(rows.length)} of ${exact(this.rows.length)} ${this.scope}`);
    byId(`${this.id}-more`).hidden = rows.length <= this.limit;
    keep(this.body, rows.slice(0, this.limit), this.key, () => this.make(), (node, row) => this.update(node, row));
  }

  make() {
    return el("tr", {}, ...this.columns.map(([column, , kind]) => el("td", { class: kind, "data-column": column })));
  }

  update(node, row) {
    this.dress(node, row);
    this.columns.forEach(([column, , kind, show = String], i) => {
      const text = show(row[column]);
      say(node.children[i], text);
      if (kind == null) mark(node.children[i], "title", text);
    });
  }
}

function compare(a, b) {
  const [x, y] = [a ?? Infinity, b ?? Infinity];
  return x < y ? -1 : x > y ? 1 : 0;
}
