// Elements and numbers. Every name from a cluster goes through textContent or setAttribute, never through HTML.

export const byId = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function mark(node, name, value) {
  if (value == null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Keeps children in step with items by key, so that focus, selection and scroll position survive an update.
export function keep(parent, items, key, make, update) {
  const before = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let node = before.get(name);
    before.delete(name);
    if (!node) {
      node = make(item);
      node.dataset.key = name;
    }
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    update(node, item);
  }
  for (const node of before.values()) node.remove();
}

const UNITS = ["", "k", "M", "G", "T", "P"];

export function short(number) {
  let unit = 0;
  while (Math.abs(number) >= 999.5 && unit < UNITS.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return (unit && Math.abs(number) < 99.5 ? number.toFixed(1) : Math.round(number).toString()) + UNITS[unit];
}

export function exact(number) {
  return number.toLocaleString("en").replaceAll(",", " ");
}

export function count(number, what) {
  return `${short(number)} ${what}${number === 1 ? "" : "s"}`;
}

export function size(bytes) {
  return short(bytes).replace(/([kMGTP]?)$/, " $1B");
}

export function seconds(value) {
  if (value == null) return "unknown";
  if (value === 0) return "0 s";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${(value / 3600).toFixed(1)} h`;
  return `${Math.round(value / 86400)} d`;
}

// Sorts as a text as it does as a number.
export function padded(number) {
  return String(number).padStart(7, "0");
}

// 0, 1, 2, 5 becomes "0-2, 5".
export function spans(numbers) {
  const found = [];
  for (const number of numbers) {
    if (found.length && found.at(-1)[1] === number - 1) found.at(-1)[1] = number;
    else found.push([number, number]);
  }
  return found.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(", ") || "none";
}

export function clock(time) {
  return new Date(time * 1000).toLocaleTimeString("en-GB");
}
