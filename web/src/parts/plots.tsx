import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import type { RunAnswer } from "../engine/types.ts";
import * as format from "../format.ts";
import { colour } from "../theme.ts";

interface Line {
  label: string;
  tone: string;
  dash?: number[];
  /** Isolated points instead of a line. */
  points?: boolean;
  step?: boolean;
}

interface Plot {
  title: string;
  unit: "bytes" | "seconds" | "rate";
  lines: Line[];
  data: uPlot.AlignedData;
}

const TEXT = { bytes: format.bytes, seconds: format.seconds, rate: format.rate };

/** Intervals of the goodput curve. */
const INTERVALS = 60;

/** Bytes acknowledged in equal intervals, as a rate. */
function goodput(times: number[], una: (number | null)[], end: number): [number[], number[]] {
  const width = Math.max(end, 1e-9) / INTERVALS;
  const rates: number[] = [];
  let [index, before] = [0, 0];
  for (let bin = 1; bin <= INTERVALS; bin++) {
    let value = before;
    while (index < times.length && (times[index] ?? 0) <= bin * width) value = una[index++] ?? value;
    rates.push(((value - before) * 8) / width);
    before = value;
  }
  return [rates.map((_, bin) => (bin + 0.5) * width), rates];
}

/** The plots of a run, of the first flow on the path that was asked for. */
export function plotsOf(run: RunAnswer): Plot[] {
  const flow = run.flows.find(({ name }) => name === run.shown) ?? run.flows[0];
  if (!flow) return [];
  const column = (name: string) => flow.columns[name] ?? [];
  const plots: Plot[] = [
    {
      title: "Window and flight",
      unit: "bytes",
      lines: [
        { label: "congestion window", tone: "tone-window", step: true },
        { label: "in flight", tone: "tone-flight", step: true },
        { label: "slow-start threshold", tone: "tone-threshold", dash: [6, 4], step: true },
      ],
      data: [flow.time_s, column("cwnd_bytes"), column("flight_bytes"), threshold(column("ssthresh_bytes"), column("cwnd_bytes"))],
    },
  ];
  if (run.queue) {
    const { time_s, bytes, dropped_s, limit_bytes } = run.queue;
    const top = limit_bytes ?? Math.max(0, ...bytes);
    const drops: uPlot.AlignedData = [dropped_s, dropped_s.map(() => top)];
    const joined = dropped_s.length > 0 ? uPlot.join([[time_s, bytes] as uPlot.AlignedData, drops]) : [time_s, bytes, time_s.map(() => null)];
    plots.push({
      title: "Queue at the slowest link",
      unit: "bytes",
      lines: [
        { label: "bytes in the queue", tone: "tone-queue", step: true },
        { label: "drops", tone: "tone-loss", points: true },
      ],
      data: joined as uPlot.AlignedData,
    });
  }
  const srtt = column("srtt_us").map((value) => (value === null ? null : value / 1e9));
  plots.push({
    title: "Round-trip time",
    unit: "seconds",
    lines: [{ label: "smoothed round trip", tone: "tone-rtt", step: true }],
    data: [flow.time_s, srtt],
  });
  plots.push({
    title: "Goodput",
    unit: "rate",
    lines: [{ label: "bytes acknowledged", tone: "tone-rate" }],
    data: goodput(flow.time_s, column("snd_una_bytes"), run.report.ended_s),
  });
  return plots;
}

/** A threshold far above the window would flatten the plot. */
function threshold(values: (number | null)[], windows: (number | null)[]): (number | null)[] {
  const most = 4 * Math.max(1, ...windows.map((value) => value ?? 0));
  return values.map((value) => (value !== null && value <= most ? value : null));
}

const stepped = uPlot.paths.stepped?.({ align: 1 });

function options(plot: Plot, width: number, isNarrow: boolean): uPlot.Options {
  const text = TEXT[plot.unit];
  const axis: uPlot.Axis = {
    stroke: colour("text"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height: isNarrow ? 170 : 200,
    title: plot.title,
    cursor: { drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (_, _low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((tick) => `${Number(tick.toPrecision(6))} s`) },
      { ...axis, size: 78, values: (_, ticks) => ticks.map(text) },
    ],
    series: [
      { label: "time", value: (_, value: number | null) => (value === null ? "" : format.seconds(value)) },
      ...plot.lines.map((line): uPlot.Series => ({
        label: line.label,
        stroke: colour(line.tone),
        width: 2,
        ...(line.dash && { dash: line.dash }),
        ...(line.points ? { paths: () => null, points: { show: true, size: 7, stroke: colour(line.tone), fill: colour(line.tone) } } : { points: { show: false } }),
        ...(line.step && stepped && !line.points && { paths: stepped }),
        spanGaps: true,
        value: (_, value: number | null) => (value === null ? "–" : text(value)),
      })),
    ],
  };
}

interface Props {
  plots: Plot[];
  isDark: boolean;
  onDrawn?: () => void;
}

/** Draws plots; new data of the same lines redraws them in place. */
export function Plots({ plots, isDark, onDrawn }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot[]>([]);
  const shape = `${isDark} ${plots.map((plot) => plot.title).join()}`;

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const width = () => Math.max(280, element.clientWidth);
    const made = plots.map((plot) => {
      const box = document.createElement("div");
      box.className = "plot";
      box.setAttribute("role", "img");
      element.append(box);
      return new uPlot(options(plot, width(), width() < 500), plot.data, box);
    });
    drawn.current = made;
    const observer = new ResizeObserver(() => made.forEach((plot) => plot.setSize({ width: width(), height: plot.height })));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.forEach((plot) => plot.destroy());
      element.replaceChildren();
    };
  }, [shape]);

  useEffect(() => {
    plots.forEach((plot, index) => {
      drawn.current[index]?.setData(plot.data);
      host.current?.children[index]?.setAttribute("aria-label", summary(plot));
    });
    if (plots.length > 0) requestAnimationFrame(() => onDrawn?.());
  }, [plots, shape]);

  return <div class="plots" ref={host} />;
}

/** What a plot shows, for those who cannot see it. */
function summary(plot: Plot): string {
  const parts = plot.lines.map((line, index) => {
    const values = (plot.data[index + 1] ?? []) as (number | null)[];
    const known = values.filter((value): value is number => value !== null);
    if (line.points) return `${known.length} ${line.label}`;
    if (known.length === 0) return `no ${line.label}`;
    const most = known.reduce((a, b) => Math.max(a, b));
    return `${line.label} at most ${TEXT[plot.unit](most)}`;
  });
  return `${plot.title}: ${parts.join(", ")}`;
}
