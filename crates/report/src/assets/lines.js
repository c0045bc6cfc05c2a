// Draws the means of a grid over its row axis: lines over numbers, bars over names; one line, or one bar of each
// group, per value of its column axis.

const SVG = "http://www.w3.org/2000/svg";
// Most lines that can be distinguished.
const MOST_LINES = 8;

function shape(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

class Lines {
  constructor() {
    this.element = element("div", { class: "lines" });
    this.legend = element("div", { class: "legend" });
    this.surface = element("div", { class: "surface" });
    this.tip = element("div", { class: "tip" });
    this.element.append(this.legend, this.surface);
    this.what = null;
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  // `what`: the axis, names of the lines, their cells (one per axis value), number format; null if
  // there is nothing to draw.
  show(what) {
    this.what = what;
    this.wide = 0;
    this.element.hidden = what === null;
    this.legend.replaceChildren();
    if (what && what.names.length > 1) {
      what.names.forEach((name, index) => {
        const entry = element("span");
        const sign = this.isOfNames ? `<path d="M5 1h12v12h-12z" fill="var(--n${index})"/>` : this.mark(index, 11, 7);
        entry.innerHTML = `<svg width="22" height="14" viewBox="0 0 22 14" aria-hidden="true">${sign}</svg>`;
        entry.append(name);
        this.legend.append(entry);
      });
    }
    this.draw();
  }

  mark(index, x, y) {
    const colour = `var(--n${index})`;
    const shapes = [
      `<circle cx="${x}" cy="${y}" r="4"/>`,
      `<path d="M${x - 4} ${y - 4}h8v8h-8z"/>`,
      `<path d="M${x} ${y - 5}l5 8.5h-10z"/>`,
      `<path d="M${x} ${y - 5.5}l5 5.5l-5 5.5l-5 -5.5z"/>`,
    ];
    return `<g fill="${index < 4 ? colour : "var(--card)"}" stroke="${colour}" stroke-width="2">${shapes[index % 4]}</g>`;
  }

  // Are the axis values names, between which there is nothing?
  get isOfNames() {
    const { axis } = this.what;
    return axis.numbers.length !== axis.values.length;
  }

  // Positions of the axis values from 0 to 1: linear, logarithmic, or by index; names are in the middle of
  // equal parts.
  places() {
    const { axis } = this.what;
    const count = axis.values.length;
    const numbers = axis.numbers;
    if (this.isOfNames) return { at: axis.values.map((_, index) => (index + 0.5) / count), how: "" };
    const inOrder = axis.values.map((_, index) => (count > 1 ? index / (count - 1) : 0.5));
    if (count < 2) return { at: inOrder, how: "" };
    const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
    if (least === most) return { at: inOrder, how: "" };
    // A geometric range over more than a decade would crowd at one end.
    const isLog = least > 0 && most / least > 12;
    const along = (number) => (isLog ? Math.log(number / least) / Math.log(most / least) : (number - least) / (most - least));
    return { at: numbers.map(along), how: isLog ? "logarithmic" : "" };
  }

  draw() {
    const { what } = this;
    if (!what) return;
    const width = this.element.clientWidth;
    if (!width || width === this.wide) return;
    this.wide = width;
    const narrow = width < 560;
    const height = narrow ? 240 : 320;
    const [left, right, top, bottom] = [narrow ? 46 : 58, 16, 12, 44];
    const [w, h] = [width - left - right, height - top - bottom];
    const known = what.lines.flat().filter((cell) => cell.n);
    const means = known.map((cell) => cell.mean);
    // Nonnegative values are not drawn below zero, and large uncertainties do not flatten
    // everything else.
    const floor = Math.min(...known.map((cell) => cell.least)) < 0 ? -Infinity : 0;
    this.ends = (cell) => [Math.max(floor, cell.mean - (cell.half ?? 0)), cell.mean + (cell.half ?? 0)];
    const ends = known.flatMap(this.ends);
    const isLog = what.isLog && Math.min(...means) > 0;
    const most = Math.min(Math.max(...ends), Math.max(...means) * (Math.max(...means) > 0 ? 1.5 : 0.5)) / what.size;
    const least = (isLog ? Math.min(...means) : Math.min(...ends)) / what.size;
    const low = isLog ? least / 1.1 : Math.min(0, least);
    const high = isLog ? most * 1.1 : most > low ? most + (most - low) * 0.05 : low + 1;
    const y = (value) => {
      const part = isLog ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
      return top + h - Math.max(0, Math.min(1, part)) * h;
    };
    const { at, how } = this.places();
    const x = (index) => left + 10 + at[index] * (w - 20);
    const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${what.figure} over ${what.axis.name}` });
    this.drawAxes(svg, { left, top, w, h, low, high, isLog, x, y, how });
    // A bar has no meaning without its zero.
    this.bars = this.isOfNames && !isLog ? this.barPlaces(w - 20) : null;
    what.lines.forEach((cells, line) => this.drawLine(svg, cells, line, x, y));
    this.surface.replaceChildren(svg, this.tip);
    this.tip.style.visibility = "hidden";
  }

  // Width of a bar, and the distance of the first of a group from its middle.
  barPlaces(width) {
    const { lines, axis } = this.what;
    const group = Math.min((width / axis.values.length) * 0.8, 72 * lines.length);
    return { wide: group / lines.length, first: -group / 2 };
  }

  drawAxes(svg, { left, top, w, h, low, high, isLog, x, y, how }) {
    const { what } = this;
    const small = { "font-size": 11, fill: "var(--pale)" };
    let marks = ticks(low, high, h / 42).at;
    if (isLog) {
      const decades = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) decades.push(...[1, 2, 5].map((n) => n * 10 ** power));
      marks = decades.filter((value) => value >= low && value <= high);
    }
    for (const value of marks) {
      svg.append(shape("path", { d: `M${left} ${Math.round(y(value)) + 0.5}h${w}`, stroke: "var(--faint)" }));
      if (y(value) > top + 16) svg.append(shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", ...small }, short(value, 4)));
    }
    svg.append(shape("text", { x: left - 6, y: top + 8, "text-anchor": "end", ...small }, what.unit));
    svg.append(shape("rect", { x: left + 0.5, y: top + 0.5, width: w, height: h, fill: "none", stroke: "var(--line)" }));
    const order = what.axis.values.map((_, index) => index).sort((a, b) => x(a) - x(b));
    let free = 0;
    for (const index of order) {
      const text = what.axis.values[index];
      const half = text.length * 3.2 + 4;
      const place = Math.min(Math.max(x(index), left + half - 10), left + w - half + 10);
      svg.append(shape("path", { d: `M${x(index)} ${top + h}v4`, stroke: "var(--pale)" }));
      if (place - half < free) continue;
      svg.append(shape("text", { x: place, y: top + h + 17, "text-anchor": "middle", ...small }, text));
      free = place + half;
    }
    svg.append(shape("text", { x: left + w, y: top + h + 36, "text-anchor": "end", ...small }, what.axis.name + (how ? `, ${how}` : "")));
  }

  drawLine(svg, cells, line, x, y) {
    const { what } = this;
    const stroke = `var(--n${line})`;
    const order = cells.map((_, index) => index).filter((index) => cells[index].n).sort((a, b) => x(a) - x(b));
    const value = (index) => cells[index].mean / what.size;
    const path = order.map((index, number) => `${number ? "L" : "M"}${x(index).toFixed(2)} ${y(value(index)).toFixed(2)}`);
    if (!this.isOfNames) svg.append(shape("path", { d: path.join(""), fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": line < 4 ? "none" : "6 4" }));
    const { bars } = this;
    for (const index of order) {
      const cell = cells[index];
      if (bars) {
        this.drawBar(svg, cell, index, line, x(index) + bars.first + line * bars.wide, y);
        continue;
      }
      if (cell.half) {
        const [down, up] = this.ends(cell).map((end) => y(end / what.size));
        svg.append(shape("path", { d: `M${x(index)} ${down}V${up}m-4 0h8M${x(index) - 4} ${down}h8`, fill: "none", stroke, "stroke-width": 1.5 }));
      }
      const words = `${what.names.length > 1 ? `${what.names[line]}, ` : ""}${what.axis.values[index]}: ${what.told(cell)}`;
      const point = shape("g", { class: "point", tabindex: 0, role: "img", "aria-label": words });
      point.innerHTML = `<circle cx="${x(index)}" cy="${y(value(index))}" r="12" fill="transparent"/>${this.mark(line, x(index), y(value(index)))}`;
      const tell = () => this.tell(words, x(index), y(value(index)));
      const hide = () => (this.tip.style.visibility = "hidden");
      for (const kind of ["pointerenter", "focus"]) point.addEventListener(kind, tell);
      for (const kind of ["pointerleave", "blur"]) point.addEventListener(kind, hide);
      svg.append(point);
    }
  }

  drawBar(svg, cell, index, line, left, y) {
    const { what, bars } = this;
    const [at, zero, wide] = [y(cell.mean / what.size), y(0), Math.max(1, bars.wide - 2)];
    const [top, tall] = [Math.min(at, zero), Math.max(1, Math.abs(zero - at))];
    const middle = left + bars.wide / 2;
    const words = `${what.names.length > 1 ? `${what.names[line]}, ` : ""}${what.axis.values[index]}: ${what.told(cell)}`;
    const point = shape("g", { class: "point", tabindex: 0, role: "img", "aria-label": words });
    point.append(shape("rect", { x: left + 1, y: top, width: wide, height: tall, rx: 2, fill: `var(--n${line})` }));
    if (cell.half) {
      const [down, up] = this.ends(cell).map((end) => y(end / what.size));
      point.append(shape("path", { d: `M${middle} ${down}V${up}m-4 0h8M${middle - 4} ${down}h8`, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 }));
    }
    for (const kind of ["pointerenter", "focus"]) point.addEventListener(kind, () => this.tell(words, middle, top));
    for (const kind of ["pointerleave", "blur"]) point.addEventListener(kind, () => (this.tip.style.visibility = "hidden"));
    svg.append(point);
  }

  tell(words, x, y) {
    this.tip.textContent = words;
    this.tip.style.visibility = "visible";
    const own = this.tip.offsetWidth;
    this.tip.style.left = `${x + 12 + own <= this.wide ? x + 12 : Math.max(0, x - 12 - own)}px`;
    this.tip.style.top = `${Math.max(0, y - this.tip.offsetHeight - 8)}px`;
  }
}
