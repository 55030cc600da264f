// A line over the last minutes, as inline SVG: time on a fixed scale, so that it moves and never jumps.

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 60;

function svg(tag, attributes) {
  const node = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export class Plot {
  constructor(title, show) {
    this.title = title;
    this.show = show;
    this.points = [];
    this.at = null;
    this.node = document.createElement("figure");
    this.caption = document.createElement("figcaption");
    this.name = document.createElement("span");
    this.value = document.createElement("span");
    this.name.textContent = title;
    this.caption.append(this.name, this.value);
    this.svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    for (const y of [1, HEIGHT / 2, HEIGHT - 1]) this.svg.append(svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y }));
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.svg.append(this.area, this.line, this.cursor);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.node.append(this.caption, this.svg);
  }

  draw(times, values, span) {
    const end = times.at(-1) ?? 0;
    const x = (time) => WIDTH * (1 - (end - time) / span);
    const known = values.filter((value) => value != null);
    this.known = known.length > 0;
    this.top = Math.max(...known, 0) || 1;
    const y = (value) => HEIGHT - 1 - (HEIGHT - 3) * (value / this.top);
    this.points = times.map((time, i) => ({ time, value: values[i], x: x(time) })).filter((p) => p.x >= 0);
    let line = "";
    let area = "";
    let from = null;
    let last = null;
    const close = () => {
      if (from && from === last) line += "h.1"; // a lonely value is a dot
      if (from) area += `L${last} ${HEIGHT}L${from} ${HEIGHT}Z`;
      from = last = null;
    };
    for (const { value, x: left } of this.points) {
      if (value == null) {
        close();
        continue;
      }
      const place = `${left.toFixed(1)} ${y(value).toFixed(1)}`;
      line += (from ? "L" : "M") + place;
      area += (from ? "L" : "M") + place;
      from ??= left.toFixed(1);
      last = left.toFixed(1);
    }
    close();
    this.line.setAttribute("d", line);
    this.area.setAttribute("d", area);
    this.tell();
  }

  point(event) {
    if (event) {
      const box = this.svg.getBoundingClientRect();
      this.at = ((event.clientX - box.left) / box.width) * WIDTH;
    } else {
      this.at = null;
    }
    this.tell();
  }

  tell() {
    const pointed = this.at != null && this.points.length > 0;
    const near = (a, b) => (Math.abs(a.x - this.at) <= Math.abs(b.x - this.at) ? a : b);
    const found = pointed ? this.points.reduce(near) : this.points.at(-1);
    this.cursor.setAttribute("visibility", pointed ? "visible" : "hidden");
    if (pointed) {
      this.cursor.setAttribute("x1", found.x);
      this.cursor.setAttribute("x2", found.x);
    }
    const value = found?.value == null ? "–" : this.show(found.value);
    const when = pointed ? `${new Date(found.time * 1000).toLocaleTimeString("en-GB")}  ` : "";
    this.value.textContent = `${when}${value}`;
    this.name.textContent = `${this.title} (top ${this.known ? this.show(this.top) : "–"})`;
    this.svg.setAttribute("aria-label", `${this.title}: ${value} now, at most ${this.known ? this.show(this.top) : "–"}`);
  }
}
