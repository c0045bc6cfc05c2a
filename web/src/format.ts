// Quantities as text.

const significant = (value: number) => {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(digits, 6));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
};

function scaled(value: number, units: [number, string][]): string {
  for (const [size, unit] of units) if (value >= size) return `${significant(value / size)} ${unit}`;
  const [size, unit] = units[units.length - 1] ?? [1, ""];
  return `${significant(value / size)} ${unit}`;
}

export const seconds = (value: number) =>
  scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);

export const rate = (bits: number) =>
  scaled(bits, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);

export const bytes = (value: number) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);

export const percent = (fraction: number) => `${significant(fraction * 100)} %`;

/** An instant with as many digits as differ within `span` seconds. */
export function instant(value: number, span: number): string {
  const digits = Math.min(9, Math.max(1, 3 - Math.floor(Math.log10(Math.max(span, 1e-9)))));
  return `${value.toFixed(digits)} s`;
}

/** A value as the text of a scenario. */
export const written = {
  delay: (value: number) =>
    value >= 1e-3 ? `${trim(value * 1e3)}ms` : value >= 1e-6 ? `${trim(value * 1e6)}us` : `${Math.round(value * 1e9)}ns`,
  rate: (value: number) =>
    value >= 1e9 ? `${trim(value / 1e9)}Gbit/s` : value >= 1e6 ? `${trim(value / 1e6)}Mbit/s` : `${trim(value / 1e3)}kbit/s`,
  loss: (value: number) => `${trim(value * 100)}%`,
  buffer: (value: number) =>
    value >= 1e6 ? `${trim(value / 1e6)}MB` : value >= 1e3 ? `${trim(value / 1e3)}kB` : `${Math.round(value)}B`,
};

function trim(value: number): string {
  return String(Number(value.toPrecision(3)));
}
