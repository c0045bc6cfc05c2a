// Shows the runs of a sweep over any two of its axes.

// The viridis colour map by Stéfan van der Walt and Nathaniel Smith: perceptually uniform, also in
// print and for colour-blind readers.
const HEAT = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];

function heat(part) {
  const place = Math.max(0, Math.min(1, part)) * (HEAT.length - 1);
  const below = Math.min(HEAT.length - 2, Math.floor(place));
  const rest = place - below;
  return HEAT[below].map((from, index) => Math.round(from + (HEAT[below + 1][index] - from) * rest));
}

class Grid {
  constructor(host, spec, places, values) {
    Object.assign(this, spec);
    this.host = host;
    const columns = new Columns(places);
    this.at = spec.axes.map(() => columns.next(spec.n));
    this.flow = columns.next(spec.n);
    const floats = new Float64Array(values.buffer, 0, spec.n * spec.figures.length);
    this.values = spec.figures.map((_, index) => floats.subarray(index * spec.n, (index + 1) * spec.n));
    const long = (index) => spec.axes[index].values.length > 1 && spec.axes[index].name !== "seed";
    const varied = spec.axes.map((_, index) => index).filter(long);
    const order = varied.length ? varied : spec.axes.map((_, index) => index);
    this.across = order.length > 1 ? order[order.length - 1] : -1;
    this.down = order.length ? order[0] : -1;
    this.kept = spec.axes.map(() => -1);
    this.figure = 0;
    this.chosenFlow = 0;
    this.isSum = true;
    this.isLog = false;
    this.build();
  }

  build() {
    this.choices = element("div", { class: "choices" });
    this.tools = element("div", { class: "tools" });
    this.title = element("strong", {}, "");
    const label = "Save CSV: the cells that are shown";
    const saved = element("button", { type: "button", title: label, "aria-label": label }, "Save CSV");
    saved.addEventListener("click", () => save(csv(valuesOfCells(this)), "csv", this));
    this.tools.append(this.title, saved);
    this.map = element("div", { class: "heat" });
    this.legend = element("div", { class: "scale" });
    this.lines = new Lines();
    this.host.replaceChildren(this.tools, this.choices, this.lines.element, this.map, this.legend);
    this.choose();
    this.draw();
  }

  choose() {
    this.choices.replaceChildren();
    const pick = (label, options, value, act) => {
      const select = element("select");
      for (const [number, text] of options) {
        const option = element("option", { value: String(number) }, text);
        option.selected = number === value;
        select.append(option);
      }
      select.addEventListener("change", () => {
        act(Number(select.value));
        this.choose();
        this.draw();
      });
      const box = element("label", {}, label);
      box.append(select);
      this.choices.append(box);
    };
    const axes = this.axes.map((axis, index) => [index, axis.name]);
    pick("Figure", this.figures.map(([name], index) => [index, name]), this.figure, (to) => (this.figure = to));
    pick("Down", axes, this.down, (to) => {
      if (to === this.across) this.across = this.down;
      this.down = to;
    });
    if (this.axes.length > 1) {
      pick("Across", [[-1, "nothing"], ...axes], this.across, (to) => {
        if (to === this.down) this.down = this.across;
        this.across = to;
        if (this.down < 0) this.down = this.axes.findIndex((_, index) => index !== to);
      });
    }
    this.axes.forEach((axis, index) => {
      if (index === this.down || index === this.across || axis.values.length < 2) return;
      pick(axis.name, [[-1, "mean of all"], ...axis.values.map((value, number) => [number, value])], this.kept[index], (to) => (this.kept[index] = to));
    });
    if (this.flows.length > 1 && this.scope !== "run") {
      const sum = this.scope === "sum" ? [[-1, "sum of all"]] : [];
      const chosen = this.sums ? -1 : this.chosenFlow;
      pick("Flow", [...sum, ...this.flows.map((name, number) => [number, name])], chosen, (to) => {
        this.isSum = to < 0;
        if (to >= 0) this.chosenFlow = to;
      });
    }
    pick("Scale", [[0, "even steps"], [1, "equal ratios"]], Number(this.isLog), (to) => (this.isLog = Boolean(to)));
  }

  // The scope of the figure: a flow, a flow with a sum over the run, or a run.
  get scope() {
    return this.figures[this.figure][2];
  }

  // Are the flows of a run summed?
  get sums() {
    return this.scope === "sum" && this.isSum;
  }

  // One value per selected run: of the chosen flow, of the run, or the sum over its flows.
  samples() {
    const values = this.values[this.figure];
    const samples = [];
    let end = 0;
    for (let point = 0; point < this.n; point = end) {
      // The points of a run are consecutive, and no other run has all of its values.
      end = point + 1;
      while (end < this.n && this.at.every((column) => column[end] === column[point])) end += 1;
      const left = this.kept.some((kept, axis) => kept >= 0 && axis !== this.down && axis !== this.across && this.at[axis][point] !== kept);
      if (left) continue;
      const flows = Array.from({ length: end - point }, (_, flow) => point + flow);
      const wanted = this.scope === "run" ? [point] : this.sums ? flows : flows.filter((one) => this.flow[one] === this.chosenFlow);
      const known = wanted.map((one) => values[one]).filter((value) => !Number.isNaN(value));
      if (known.length) samples.push({ point, value: known.reduce((sum, value) => sum + value, 0) });
    }
    return samples;
  }

  // Count, mean and spread of each cell, over runs.
  cells() {
    const wide = this.across < 0 ? 1 : this.axes[this.across].values.length;
    const tall = this.down < 0 ? 1 : this.axes[this.down].values.length;
    const cells = Array.from({ length: wide * tall }, () => ({ n: 0, mean: 0, squares: 0, least: Infinity, most: -Infinity }));
    for (const { point, value } of this.samples()) {
      const row = this.down < 0 ? 0 : this.at[this.down][point];
      const column = this.across < 0 ? 0 : this.at[this.across][point];
      const cell = cells[row * wide + column];
      cell.n += 1;
      const off = value - cell.mean;
      cell.mean += off / cell.n;
      cell.squares += off * (value - cell.mean);
      cell.least = Math.min(cell.least, value);
      cell.most = Math.max(cell.most, value);
    }
    return { cells, wide, tall };
  }

  draw() {
    const { cells, wide, tall } = this.cells();
    const known = cells.filter((cell) => cell.n);
    const least = Math.min(...known.map((cell) => cell.mean));
    const most = Math.max(...known.map((cell) => cell.mean));
    const [name, unit] = this.figures[this.figure];
    const [size, shown] = prefix(unit, Math.max(Math.abs(least), Math.abs(most)));
    const isLog = this.isLog && least > 0;
    const part = (value) => {
      if (most === least) return 0.5;
      return isLog ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
    };
    const small = wide > 14 || tall > 60;
    this.map.classList.toggle("small", small);
    const whose = this.flows.length < 2 || this.scope === "run" ? "" : this.sums ? " of all flows" : ` of ${this.flows[this.chosenFlow]}`;
    this.title.textContent = `${name}${whose}: mean of each cell`;
    const table = element("table");
    const side = this.down < 0 ? "" : this.axes[this.down].name;
    const top = this.across < 0 ? "" : this.axes[this.across].name;
    const head = element("tr");
    head.append(element("th", { scope: "col" }, top ? `${side} ↓  ${top} →` : side));
    for (let column = 0; column < wide; column++) {
      head.append(element("th", { scope: "col" }, this.across < 0 ? name : this.axes[this.across].values[column]));
    }
    const thead = element("thead");
    thead.append(head);
    const body = element("tbody");
    for (let row = 0; row < tall; row++) {
      const line = element("tr");
      line.append(element("th", { scope: "row" }, this.down < 0 ? "" : this.axes[this.down].values[row]));
      for (let column = 0; column < wide; column++) line.append(this.cell(cells[row * wide + column], part, size, shown));
      body.append(line);
    }
    table.append(thead, body);
    this.map.replaceChildren(table);
    this.drawScale(least, most, size, shown, isLog);
    this.drawLines(cells, wide, tall, size, shown);
  }

  // Over one axis, lines are clearer than colours; over two axes, a few lines are shown next to the
  // heat map.
  drawLines(cells, wide, tall, size, shown) {
    const known = cells.some((cell) => cell.n);
    if (tall < 2 || wide > MOST_LINES || !known) return this.lines.show(null);
    const lines = Array.from({ length: wide }, (_, column) =>
      Array.from({ length: tall }, (__, row) => {
        const cell = cells[row * wide + column];
        return { ...cell, half: this.half(cell) };
      }));
    this.lines.show({
      axis: this.axes[this.down], figure: this.figures[this.figure][0],
      names: this.across < 0 ? [""] : this.axes[this.across].values.map((value) => `${this.axes[this.across].name} ${value}`),
      lines, size, unit: shown, isLog: this.isLog, told: (cell) => this.told(cell, size, shown),
    });
  }

  // Description of a cell.
  told(cell, size, shown) {
    const half = this.half(cell);
    const many = cell.n > 1 ? `, ${cell.n} runs from ${short(cell.least / size, 4)} to ${short(cell.most / size, 4)}` : "";
    return `${short(cell.mean / size, 6)} ${shown}${half === null ? "" : ` ± ${short(half / size, 2)}`}${many}`;
  }

  cell(cell, part, size, shown) {
    if (!cell.n) return element("td", { class: "none" }, "–");
    const colours = heat(part(cell.mean));
    // Relative luminance (WCAG 2.1), for readable text colour.
    const [r, g, b] = colours.map((value) => (value / 255) ** 2.2);
    const light = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19;
    const text = short(cell.mean / size, 4);
    const made = element("td", { style: `background: rgb(${colours}); color: ${light ? "#10151a" : "#ffffff"}` }, text);
    const half = this.half(cell);
    if (half !== null) made.append(element("small", {}, `± ${short(half / size, 2)}`));
    made.title = this.told(cell, size, shown);
    return made;
  }

  // Are all values of a cell repetitions of one point, which differ only in the seed?
  get isRepeated() {
    return this.axes.every((axis, index) => axis.name === "seed" || axis.values.length < 2 ||
      index === this.down || index === this.across || this.kept[index] >= 0);
  }

  // Half the width of the 95 % confidence interval of the mean, by Student's t.
  half(cell) {
    if (cell.n < 2 || !this.isRepeated) return null;
    const table = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042];
    const free = cell.n - 1;
    const t = table[free - 1] ?? (free < 40 ? 2.042 : free < 60 ? 2.021 : free < 120 ? 2 : free < 1000 ? 1.98 : 1.962);
    return (t * Math.sqrt(cell.squares / free)) / Math.sqrt(cell.n);
  }

  drawScale(least, most, size, shown, isLog) {
    this.legend.replaceChildren();
    if (!Number.isFinite(least)) return;
    const canvas = element("canvas", { width: "256", height: "1", "aria-hidden": "true" });
    const cx = canvas.getContext("2d");
    for (let at = 0; at < 256; at++) {
      cx.fillStyle = `rgb(${heat(at / 255)})`;
      cx.fillRect(at, 0, 1, 1);
    }
    const end = (value) => `${short(value / size, 4)} ${shown}`;
    this.legend.append(end(least), canvas, end(most), isLog ? "(equal ratios)" : "");
  }
}
