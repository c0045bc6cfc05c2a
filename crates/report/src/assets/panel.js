// One panel: its canvas, its legend, and its tooltip.

const GAP = { top: 8, bottom: 22, right: 12 };

class Panel {
  constructor(group, spec, columns) {
    this.group = group;
    Object.assign(this, spec);
    this.series = spec.series.map((one) => new Series(one, columns));
    this.held = null;
    this.build();
  }

  build() {
    const unit = this.y.also ? `${this.y.also[0]} on the right` : "";
    this.element = element("div", { class: "panel" });
    const heading = element("h4", {}, this.y.title);
    if (unit) heading.append(" ", element("span", {}, unit));
    this.legend = element("div", { class: "legend", role: "group", "aria-label": `Series of ${this.y.title}` });
    for (const series of this.series) this.legend.append(this.entry(series));
    this.surface = element("div", { class: "surface" });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.over = element("canvas", {
      class: "over", tabindex: "0", role: "img",
      "aria-label": `${this.y.title} over ${this.group.x.title}. Arrow keys move a cursor whose values are read out; plus and minus zoom, shift and arrows move, 0 shows all.`,
    });
    this.tip = element("div", { class: "tip" });
    this.surface.append(this.canvas, this.over, this.tip);
    this.element.append(heading, this.legend, this.surface);
    if (this.note) this.element.append(element("p", { class: "note" }, this.note));
  }

  entry(series) {
    const entry = element("button", { type: "button", "aria-pressed": String(series.shown) });
    entry.innerHTML = sample(series);
    entry.append(series.name);
    if (series.thinned) {
      entry.title = series.thinned;
      entry.append(element("small", {}, "thinned"));
    }
    entry.addEventListener("click", () => {
      series.shown = !series.shown;
      entry.setAttribute("aria-pressed", String(series.shown));
      this.group.redraw();
    });
    return entry;
  }

  resize() {
    const width = this.surface.parentElement.clientWidth;
    const narrow = width < 560;
    const height = narrow ? Math.max(150, Math.round(this.height * 0.85)) : this.height;
    const ratio = window.devicePixelRatio || 1;
    this.surface.style.height = `${height}px`;
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    const left = narrow ? 46 : 58;
    const right = this.group.hasSecond ? (narrow ? 34 : 46) : GAP.right;
    this.frame = { left, top: GAP.top, width: Math.max(40, width - left - right), height: height - GAP.top - GAP.bottom, full: [width, height] };
  }

  // From values to pixels and back.
  scale() {
    const [x0, x1] = this.group.view;
    const [y0, y1] = this.held ?? this.fitted(x0, x1);
    const { left, top, width, height } = this.frame;
    return {
      ...this.frame, x0, x1, y0, y1, end: this.group.full[1],
      x: (value) => left + ((value - x0) / (x1 - x0)) * width,
      y: (value) => top + height - ((value - y0) / (y1 - y0)) * height,
      toX: (pixel) => x0 + ((pixel - left) / width) * (x1 - x0),
      toY: (pixel) => y0 + ((top + height - pixel) / height) * (y1 - y0),
    };
  }

  fitted(x0, x1) {
    let low = Infinity;
    let high = -Infinity;
    for (const series of this.series) {
      if (!series.shown || series.mark === "moments") continue;
      const [least, most] = series.range(x0, x1);
      low = Math.min(low, least);
      high = Math.max(high, most);
    }
    if (low > high) [low, high] = [0, 1];
    if (this.from_zero) low = Math.min(low, 0);
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return [this.from_zero && low === 0 ? 0 : low - room, high + room];
  }

  draw() {
    const scale = this.scale();
    this.drawn = scale;
    const cx = this.canvas.getContext("2d");
    cx.clearRect(0, 0, ...this.frame.full);
    this.drawAxes(cx, scale);
    cx.save();
    cx.beginPath();
    cx.rect(scale.left, scale.top - 4, scale.width, scale.height + 8);
    cx.clip();
    for (const series of this.series) {
      if (series.shown && series.n) drawSeries(cx, series, scale, colour(series.role));
    }
    cx.restore();
  }

  drawAxes(cx, scale) {
    const { left, top, width, height } = scale;
    cx.font = "11px -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif";
    cx.lineWidth = 1;
    const along = labels(this.group.x, scale.x0, scale.x1, width / 95);
    const up = labels(this.y, scale.y0, scale.y1, height / 42);
    cx.strokeStyle = colour("faint");
    cx.beginPath();
    for (const { at } of along.marks) {
      const x = Math.round(scale.x(at)) + 0.5;
      cx.moveTo(x, top);
      cx.lineTo(x, top + height);
    }
    for (const { at } of up.marks) {
      const y = Math.round(scale.y(at)) + 0.5;
      cx.moveTo(left, y);
      cx.lineTo(left + width, y);
    }
    cx.stroke();
    cx.strokeStyle = colour("line");
    cx.strokeRect(left + 0.5, top + 0.5, width, height);
    cx.fillStyle = colour("pale");
    cx.textAlign = "center";
    cx.textBaseline = "top";
    let free = left;
    for (const { at, text } of along.marks) {
      const x = scale.x(at);
      const half = cx.measureText(text).width / 2;
      if (x - half < free || x + half > left + width - 24) continue;
      cx.fillText(text, x, top + height + 6);
      free = x + half + 8;
    }
    cx.textAlign = "right";
    cx.fillText(along.unit, left + width, top + height + 6);
    cx.textBaseline = "middle";
    for (const { at, text } of up.marks) {
      const y = scale.y(at);
      if (y > top + 18 || this.frame.height < 60) cx.fillText(text, left - 6, y);
    }
    cx.fillText(up.unit, left - 6, top + 5);
    if (this.y.also) this.drawSecond(cx, scale);
  }

  // Ticks of the second unit, on the right.
  drawSecond(cx, scale) {
    const [unit, size] = this.y.also;
    const one = 10 ** this.y.decimals * size;
    const { marks } = labels({ unit: "", decimals: 0 }, scale.y0 / one, scale.y1 / one, scale.height / 42);
    cx.textAlign = "left";
    for (const { at, text } of marks) {
      const y = scale.y(at * one);
      if (y > scale.top + 18) cx.fillText(text, scale.left + scale.width + 5, y);
    }
    cx.fillText(unit, scale.left + scale.width + 5, scale.top + 5);
  }

  // Draws the cursor; `mine` is the height of the pointer if it is in this panel.
  drawCursor(x, mine, box) {
    const cx = this.over.getContext("2d");
    cx.clearRect(0, 0, ...this.frame.full);
    const scale = this.drawn;
    if (!scale) return;
    if (box && (box.panel === this || !box.tall)) {
      const low = box.tall ? Math.min(box.y0, box.y1) : scale.top;
      const tall = box.tall ? Math.abs(box.y1 - box.y0) : scale.height;
      cx.fillStyle = colour("accent");
      cx.globalAlpha = 0.15;
      cx.fillRect(Math.min(box.x0, box.x1), low, Math.abs(box.x1 - box.x0), tall);
      cx.globalAlpha = 1;
    }
    if (x === null) {
      this.tip.style.visibility = "hidden";
      return;
    }
    const place = scale.x(x);
    cx.strokeStyle = colour("pale");
    cx.lineWidth = 1;
    cx.beginPath();
    cx.moveTo(Math.round(place) + 0.5, scale.top);
    cx.lineTo(Math.round(place) + 0.5, scale.top + scale.height);
    cx.stroke();
    const found = this.told(x, mine);
    for (const { series, index, at } of found) {
      const y = scale.y(series.isCurve ? series.y[index] : Math.max(series.y[index], Math.min(series.top[index], at)));
      const dot = series.isStep ? place : scale.x(series.x[index]);
      if (y < scale.top - 2 || y > scale.top + scale.height + 2) continue;
      cx.beginPath();
      cx.arc(dot, y, 3.5, 0, 2 * Math.PI);
      cx.fillStyle = colour(series.role);
      cx.fill();
      cx.strokeStyle = colour("card");
      cx.stroke();
    }
    if (mine === null) this.tip.style.visibility = "hidden";
    else this.showTip(x, place, mine, found);
  }

  // The readings at x: for curves the current value, for others the values nearby.
  told(x, pixel) {
    const scale = this.drawn;
    const found = [];
    for (const series of this.series) {
      if (!series.shown || !series.n) continue;
      if (series.isCurve) {
        const index = series.isStep ? series.at(x) : series.nearest(x);
        if (index >= 0 && x <= this.group.full[1]) found.push({ series, index, at: series.y[index] });
        continue;
      }
      const close = this.closest(series, x, pixel, scale);
      if (close) found.push(close);
    }
    return found;
  }

  closest(series, x, pixel, scale) {
    const reach = 9;
    const place = scale.x(x);
    const from = series.from(scale.toX(place - reach));
    const to = Math.min(series.from(scale.toX(place + reach)), from + 5000);
    let best = null;
    let least = reach * reach;
    const upright = series.mark === "moments" || pixel === null;
    for (let index = from; index < to; index++) {
      const dx = scale.x(series.x[index]) - place;
      const low = scale.y(series.y[index]);
      const high = scale.y(series.top[index]);
      const dy = upright ? 0 : pixel > low ? pixel - low : pixel < high ? high - pixel : 0;
      const far = dx * dx + dy * dy;
      if (far < least) {
        least = far;
        best = { series, index, at: scale.toY(pixel ?? low) };
      }
    }
    return best;
  }

  showTip(x, place, pixel, found) {
    const axis = this.group.x;
    const rows = found.map(({ series, index }) => {
      const row = element("tr");
      const swatch = element("i");
      swatch.style.background = `var(--${series.role})`;
      const cell = element("td");
      cell.append(swatch);
      row.append(cell, element("td", {}, series.name), element("td", { class: "wide" }, this.valueOf(series, index)));
      return row;
    });
    const table = element("table");
    table.append(...rows);
    this.tip.replaceChildren(element("b", {}, exact(Math.round(x), axis.decimals) + (axis.unit ? " " + axis.unit : "")), table);
    const { width, left } = this.frame;
    this.tip.style.visibility = "visible";
    const own = this.tip.offsetWidth;
    const right = place + 14 + own <= left + width + 8;
    this.tip.style.left = `${right ? place + 14 : Math.max(0, place - 14 - own)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(pixel - 10, this.frame.full[1] - this.tip.offsetHeight))}px`;
  }

  valueOf(series, index) {
    const word = series.wordOf(index);
    if (series.mark === "moments") return word;
    const at = series.isCurve ? "" : ` at ${exact(series.x[index], this.group.x.decimals)} ${this.group.x.unit}`;
    const y = series.y[index];
    const top = series.top[index];
    const value = series.bars
      ? `${exact(y, this.y.decimals)} to ${exact(top, this.y.decimals)} ${this.y.unit} (${told(top - y, { ...this.y, also: null })})`
      : told(y, this.y);
    return (word ? `${word}: ` : "") + value + at;
  }

  // The same as text, for screen readers.
  spoken(x, pixel) {
    const values = this.told(x, pixel).map(({ series, index }) => `${series.name} ${this.valueOf(series, index)}`);
    return `${exact(Math.round(x), this.group.x.decimals)} ${this.group.x.unit}: ${values.join("; ") || "nothing"}`;
  }
}
