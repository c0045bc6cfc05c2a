// Number formatting: exact for values, rounded along the axes.

const PREFIXES = {
  "s": [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
  "B": [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  "bit/s": [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
};

// Divisor and unit for numbers up to `most`.
function prefix(unit, most) {
  const known = PREFIXES[unit];
  if (!known) return [1, unit];
  return known.find(([size]) => most >= size * 0.9999) ?? known[known.length - 1];
}

function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

// An integer with its decimal point, exact, without trailing zeros.
function exact(value, decimals) {
  const sign = value < 0 ? "−" : "";
  const digits = Math.abs(value).toFixed(0).padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const rest = decimals ? digits.slice(-decimals).replace(/0+$/, "") : "";
  return sign + grouped(whole) + (rest ? "." + rest : "");
}

// A value of an axis with its unit, and in the second unit if there is one.
function told(value, axis) {
  let text = exact(value, axis.decimals);
  if (axis.unit === "s" && Math.abs(value) < 10 ** axis.decimals && axis.decimals >= 3 && value !== 0) {
    text = exact(value, axis.decimals - 3) + " ms";
  } else if (axis.unit === "bit/s" && Math.abs(value) >= 10 ** (axis.decimals + 3)) {
    const [size, unit] = prefix("bit/s", Math.abs(value) / 10 ** axis.decimals);
    text = short(value / 10 ** axis.decimals / size, 6) + " " + unit;
  } else if (axis.unit) {
    text += " " + axis.unit;
  }
  if (axis.also) {
    const times = value / axis.also[1];
    text += " (" + short(times, 3 + String(Math.trunc(Math.abs(times))).length) + " " + axis.also[0] + ")";
  }
  return text;
}

// Formats with `digits` significant digits, without trailing zeros.
function short(value, digits) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  const text = Math.abs(value).toFixed(Math.min(places, 12));
  const [whole, rest = ""] = text.split(".");
  const kept = rest.replace(/0+$/, "");
  return (value < 0 ? "−" : "") + grouped(whole) + (kept ? "." + kept : "");
}

// Round numbers in [from, to], about `count` of them, and the step between.
function ticks(from, to, count) {
  const rough = (to - from) / Math.max(1, count);
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = base * ([1, 2, 5].find((times) => base * times >= rough * 0.999) ?? 10);
  const found = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) found.push(n * step);
  return { at: found, step };
}

// Decimals that distinguish neighbours.
function places(step) {
  return Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
}

// Positions and labels of ticks on an axis of integers with decimals.
function labels(axis, from, to, count) {
  const one = 10 ** axis.decimals;
  const most = Math.max(Math.abs(from), Math.abs(to)) / one;
  const [size, unit] = prefix(axis.unit, most);
  const { at, step } = ticks(from / one / size, to / one / size, count);
  const digits = places(step);
  const text = (value) => {
    const [whole, rest] = Math.abs(value).toFixed(digits).split(".");
    const sign = value < 0 && Number(value.toFixed(digits)) !== 0 ? "−" : "";
    return sign + grouped(whole) + (rest ? "." + rest : "");
  };
  return { unit, marks: at.map((value) => ({ at: value * size * one, text: text(value) })) };
}
