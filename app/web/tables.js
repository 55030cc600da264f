// What the tables of partitions and of consumer groups hold.

import { exact, mark, padded, seconds, size } from "./parts.js";
import { Table } from "./table.js";

export const partitions = new Table("partitions", {
  columns: [
    ["topic", "Topic"], ["partition", "Partition", "number"], ["lag", "Lag", "number lag", exact],
    ["lag_seconds", "Lag (time)", "number lag", seconds], ["task", "Task", "number"],
    ["position", "Position", "number", exact], ["end_offset", "End", "number", exact],
    ["bytes", "Copied", "number", size], ["remote_topic", "Remote topic"], ["flow", "Flow"],
  ],
  sort: { column: "lag", down: true },
  key: (row) => `${row.flow} ${row.topic} ${padded(row.partition)}`,
  text: (row) => `${row.flow} ${row.topic}-${row.partition} ${row.remote_topic}`,
  word: (word) => (/^task:\d+$/.test(word) ? (row) => row.task === Number(word.slice(5)) : null),
  only: (row) => row.lag > 0,
  scope: "on this worker",
  dress(node, row) {
    mark(node, "data-lag", row.lag > 0 ? "" : null);
    mark(node, "data-held", row.held ? "" : null);
    mark(node, "title", row.held);
  },
});

export const groups = new Table("groups", {
  columns: [
    ["group", "Group"], ["topic", "Topic"], ["partition", "Partition", "number"],
    ["source_offset", "Source offset", "number", exact], ["target_offset", "Target offset", "number", exact],
    ["exact", "Translation", undefined, (sure) => (sure ? "exact" : "some records again")],
    ["target_topic", "Target topic"], ["flow", "Flow"],
  ],
  sort: { column: "group", down: false },
  key: (row) => `${row.flow} ${row.group} ${row.topic} ${padded(row.partition)}`,
  text: (row) => `${row.flow} ${row.group} ${row.topic}-${row.partition} ${row.target_topic}`,
  only: (row) => !row.exact,
  scope: "shown",
});

export function drawTables({ flows }) {
  const rows = (found) => Object.entries(flows).flatMap(([flow, state]) => found(state).map((row) => ({ ...row, flow })));
  partitions.take(rows((flow) => flow.partitions));
  groups.take(rows((flow) => flow.groups?.first ?? []));
  document.body.classList.toggle("one-flow", Object.keys(flows).length < 2);
}
