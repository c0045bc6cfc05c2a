// Panels over a common axis: the range in view and the cursor.

const MARKS = ["dots", "diamonds", "crosses"];

class Plots {
  constructor(host, spec, bytes) {
    Object.assign(this, spec);
    this.host = host;
    const columns = new Columns(bytes);
    this.hasSecond = spec.panels.some((panel) => panel.y.also);
    this.panels = spec.panels.map((panel) => new Panel(this, panel, columns));
    this.full = this.whole();
    this.view = [...this.full];
    this.cursor = null;
    this.pointer = null;
    this.box = null;
    this.isPanning = false;
    this.frames = [];
    this.build();
    addGestures(this);
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
  }

  // From the first value to the last, or to the end of the longest.
  whole() {
    let [low, high] = [Infinity, -Infinity];
    for (const { series } of this.panels) {
      for (const one of series) {
        if (!one.n) continue;
        low = Math.min(low, one.x[0]);
        high = Math.max(high, one.x[one.n - 1]);
      }
    }
    if (low > high) [low, high] = [0, 1];
    if (low === high) return [low, low + 1];
    // Markers at the ends are fully visible; a curve starts and ends with the axis.
    const isMarks = this.panels.every(({ series }) => series.every((one) => MARKS.includes(one.mark)));
    const room = isMarks ? (high - low) * 0.02 : 0;
    return [low - room, high + room];
  }

  build() {
    const tools = element("div", { class: "tools" });
    tools.append(element("strong", {}, this.title));
    const button = (text, label, action) => {
      const made = element("button", { type: "button", title: label, "aria-label": label }, text);
      made.addEventListener("click", action);
      tools.append(made);
      return made;
    };
    button("←", "Earlier", () => this.pan(-0.25));
    button("→", "Later", () => this.pan(0.25));
    button("+", "Zoom in", () => this.zoom(0.5));
    button("−", "Zoom out", () => this.zoom(2));
    this.mode = button("Drag: zoom", "What dragging does: zoom or move; shift does the other", () => {
      this.isPanning = !this.isPanning;
      this.mode.textContent = this.isPanning ? "Drag: move" : "Drag: zoom";
      this.mode.setAttribute("aria-pressed", String(this.isPanning));
      for (const { over } of this.panels) over.classList.toggle("pan", this.isPanning);
    });
    this.mode.setAttribute("aria-pressed", "false");
    button("All", "Show all", () => this.reset());
    button("Save picture", "Save picture: the plots as they are shown, a PNG file", () => savePicture(this));
    button("Save CSV", "Save CSV: the values in view of the series that are shown", () => saveValues(this));
    this.live = element("p", { class: "unseen", "aria-live": "polite" });
    const hint = element("p", { class: "hint" });
    hint.innerHTML = "Drag to zoom, double-click for all, <kbd>Ctrl</kbd> and wheel to zoom; on a touch screen drag and pinch. " +
      "Keys in a plot: <kbd>←</kbd> <kbd>→</kbd> read values, with <kbd>Shift</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>0</kbd> all.";
    this.host.replaceChildren(tools, ...this.panels.map((panel) => panel.element), hint, this.live);
  }

  resize() {
    for (const panel of this.panels) panel.resize();
    this.redraw();
  }

  // Schedules drawing for the next frame; repeated requests draw once.
  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      const began = performance.now();
      for (const panel of this.panels) panel.draw();
      this.point();
      this.frames.push(performance.now() - began);
      if (this.frames.length > 1000) this.frames.shift();
    });
  }

  point() {
    for (const panel of this.panels) {
      const mine = this.pointer && this.pointer.panel === panel ? this.pointer.y : null;
      panel.drawCursor(this.cursor, mine, this.box);
    }
  }

  // Shows [from, to], limited to the data.
  show(from, to) {
    const [low, high] = this.full;
    const least = Math.max((high - low) * 1e-9, 4);
    let width = Math.min(Math.max(to - from, least), high - low);
    let begin = (from + to) / 2 - width / 2;
    begin = Math.max(low, Math.min(begin, high - width));
    this.view = [begin, begin + width];
    keepInAddress(this);
    this.redraw();
  }

  // Zooms by `times`, keeping `around` in place.
  zoom(times, around = this.cursor) {
    const [from, to] = this.view;
    const fixed = around === null || around < from || around > to ? (from + to) / 2 : around;
    this.show(fixed - (fixed - from) * times, fixed + (to - fixed) * times);
  }

  pan(part) {
    const [from, to] = this.view;
    const [low, high] = this.full;
    const by = Math.max(low - from, Math.min((to - from) * part, high - to));
    this.show(from + by, to + by);
  }

  reset() {
    for (const panel of this.panels) panel.held = null;
    this.show(...this.full);
  }

  hover(panel, x, y) {
    this.cursor = panel.drawn.toX(x);
    this.pointer = { panel, y };
    this.point();
  }

  leave() {
    this.cursor = null;
    this.pointer = null;
    this.point();
  }
}
