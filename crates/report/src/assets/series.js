// Series: values at ascending coordinates, with fast queries of ranges.

const BLOCK = 64;

class Series {
  constructor(spec, columns) {
    Object.assign(this, spec);
    this.x = columns.next(spec.n);
    this.y = columns.next(spec.n);
    this.top = spec.bars ? columns.next(spec.n) : this.y;
    this.word = spec.words.length ? columns.next(spec.n) : null;
    // The extremes of each block of values.
    const blocks = Math.ceil(spec.n / BLOCK);
    this.lows = new Float64Array(blocks).fill(Infinity);
    this.highs = new Float64Array(blocks).fill(-Infinity);
    for (let at = 0; at < spec.n; at++) {
      const block = at >> 6;
      if (this.y[at] < this.lows[block]) this.lows[block] = this.y[at];
      if (this.top[at] > this.highs[block]) this.highs[block] = this.top[at];
    }
  }

  get isStep() {
    return this.mark === "step" || this.mark === "dashedstep";
  }

  get isCurve() {
    return this.isStep || this.mark === "line" || this.mark === "dashes";
  }

  // The first index with a coordinate of at least x.
  from(x) {
    let low = 0;
    let high = this.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The index that applies at x: the last with a coordinate of at most x; -1 before the first.
  at(x) {
    let low = 0;
    let high = this.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] <= x) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // Smallest and largest value with an index in [from, to).
  extremes(from, to) {
    let low = Infinity;
    let high = -Infinity;
    let at = from;
    while (at < to) {
      if (at % BLOCK === 0 && at + BLOCK <= to) {
        const block = at >> 6;
        if (this.lows[block] < low) low = this.lows[block];
        if (this.highs[block] > high) high = this.highs[block];
        at += BLOCK;
      } else {
        if (this.y[at] < low) low = this.y[at];
        if (this.top[at] > high) high = this.top[at];
        at += 1;
      }
    }
    return [low, high];
  }

  // Smallest and largest value in view, including the value that extends into the view.
  range(x0, x1) {
    const first = this.from(x0);
    const from = this.isCurve ? Math.max(0, this.mark.includes("step") ? this.at(x0) : first - 1) : first;
    const end = this.from(x1);
    const to = Math.min(this.n, this.isCurve && !this.isStep ? end + 1 : Math.max(end, this.at(x1) + 1));
    return this.extremes(from, to);
  }

  // The index with the coordinate nearest to x; -1 if there is none.
  nearest(x) {
    if (!this.n) return -1;
    const next = Math.min(this.n - 1, this.from(x));
    const before = Math.max(0, next - 1);
    return Math.abs(this.x[before] - x) <= Math.abs(this.x[next] - x) ? before : next;
  }

  wordOf(index) {
    return this.word ? this.words[this.word[index]] : "";
  }
}
