import { useEffect, useRef } from "preact/hooks";

import type { RunAnswer } from "../engine/types.ts";
import * as format from "../format.ts";
import { colour } from "../theme.ts";

interface Props {
  run: RunAnswer;
  at: number;
  isDark: boolean;
  onSeek(at: number): void;
}

/** The window over the whole run, with a slider for the instant. */
export function Strip({ run, at, isDark, onSeek }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const end = Math.max(run.report.ended_s, 1e-9);
  const paint = () => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [element.clientWidth, element.clientHeight];
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const flow = run.flows[0];
    if (!flow) return;
    const windows = flow.columns["cwnd_bytes"] ?? [];
    const flights = flow.columns["flight_bytes"] ?? [];
    const most = Math.max(1, ...windows.map((value) => value ?? 0), ...flights.map((value) => value ?? 0));
    const line = (values: (number | null)[], tone: string) => {
      context.strokeStyle = colour(tone);
      context.lineWidth = 1.5;
      context.beginPath();
      let last = height - 2;
      flow.time_s.forEach((time, index) => {
        const x = (time / end) * width;
        const y = height - 2 - ((values[index] ?? 0) / most) * (height - 6);
        if (index === 0) context.moveTo(x, y);
        else {
          context.lineTo(x, last);
          context.lineTo(x, y);
        }
        last = y;
      });
      context.stroke();
    };
    line(flights, "tone-flight");
    line(windows, "tone-window");
    context.fillStyle = colour("tone-loss");
    context.fillRect((at / end) * width - 1, 0, 2, height);
  };
  useEffect(paint, [run, at, isDark]);
  useEffect(() => {
    const observer = new ResizeObserver(paint);
    if (canvas.current) observer.observe(canvas.current);
    return () => observer.disconnect();
  });
  const seek = (event: PointerEvent) => {
    if (event.type === "pointermove" && event.buttons === 0) return;
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    onSeek(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * end);
  };
  return (
    <div class="strip">
      <canvas ref={canvas} role="img" aria-label="Window and flight over the whole run" onPointerDown={seek} onPointerMove={seek} />
      <input type="range" min={0} max={end} step={end / 2_000} value={at} aria-label="Instant of the run"
        aria-valuetext={format.seconds(at)} onInput={(event) => onSeek(Number(event.currentTarget.value))} />
    </div>
  );
}
