import { useEffect, useState } from "preact/hooks";

import type { Control, ControlChange, ControlName } from "../engine/types.ts";
import { written } from "../format.ts";

/** Steps of a slider. */
const STEPS = 200;
const CONTROLLERS = ["newreno", "cubic", "reno", "bbr", "cubic-ticks", "cubic-freebsd-rfc9438", "cubic-linux", "cubic-rfc9438"];

interface Scale {
  label: string;
  from: number;
  to: number;
  /** The first step is zero. */
  zero?: boolean;
  text(value: number): string;
}

const SCALES: Record<Exclude<ControlName, "controller">, Scale> = {
  delay: { label: "Delay, each way", from: 20e-6, to: 0.5, text: written.delay },
  rate: { label: "Rate of the link", from: 500e3, to: 100e9, text: written.rate },
  loss: { label: "Loss", from: 0.0001, to: 0.2, zero: true, text: written.loss },
  buffer: { label: "Buffer", from: 3e3, to: 100e6, text: written.buffer },
};

function valueAt(scale: Scale, step: number): number {
  if (scale.zero && step === 0) return 0;
  return scale.from * (scale.to / scale.from) ** (step / STEPS);
}

function stepOf(scale: Scale, value: number): number {
  if (value <= scale.from) return scale.zero && value > 0 ? 1 : 0;
  return Math.round((Math.log(value / scale.from) / Math.log(scale.to / scale.from)) * STEPS);
}

interface Props {
  controls: Control[];
  /** Labels of all paths of the scenario, and the one whose values these are. */
  paths: string[];
  path: number;
  onPath(path: number): void;
  onChange(change: ControlChange): void;
}

/** Sliders for the values of a path of the scenario, and the controller that sends on it. */
export function Sliders({ controls, paths, path, onPath, onChange }: Props) {
  const ranges = controls.filter((control) => control.name !== "controller");
  const controller = controls.find((control) => control.name === "controller");
  return (
    <fieldset class="sliders">
      <legend>Path and controller</legend>
      {paths.length > 1 && (
        <label class="slider">
          <span class="label">Path</span>
          <select value={path} onChange={(event) => onPath(Number(event.currentTarget.value))}>
            {paths.map((label, at) => <option key={at} value={at}>{label}</option>)}
          </select>
        </label>
      )}
      {ranges.map((control) => <Slider key={control.name} control={control} onChange={onChange} />)}
      {controller && (
        <label class="slider">
          <span class="label">Controller</span>
          <select value={controller.text} onChange={(event) => onChange(["controller", event.currentTarget.value])}>
            {!CONTROLLERS.includes(controller.text) && <option>{controller.text}</option>}
            {CONTROLLERS.map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
      )}
    </fieldset>
  );
}

function Slider({ control, onChange }: { control: Control; onChange(change: ControlChange): void }) {
  const name = control.name as Exclude<ControlName, "controller">;
  const scale = SCALES[name];
  // The slider follows the finger at once, the text as soon as the run is done.
  const [held, setHeld] = useState<number>();
  useEffect(() => setHeld(undefined), [control.text]);
  const step = held ?? (control.value === null ? STEPS / 2 : stepOf(scale, control.value));
  const shown = held === undefined ? control.text : scale.text(valueAt(scale, held));
  const move = (event: Event) => {
    const step = Number((event.currentTarget as HTMLInputElement).value);
    setHeld(step);
    onChange([name, scale.text(valueAt(scale, step))]);
  };
  return (
    <label class="slider">
      <span class="label">{scale.label}</span>
      <input type="range" min={0} max={STEPS} value={step} onInput={move} data-control={name} aria-valuetext={shown} />
      <output>{shown}</output>
    </label>
  );
}
