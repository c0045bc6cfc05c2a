// Runs of the scenario while it is edited: always the newest text, one run at a time.

import { useEffect, useRef, useState } from "preact/hooks";

import { Cancelled, EngineError, runs } from "../engine/client.ts";
import type { ControlChange, RunAnswer, ScenarioError } from "../engine/types.ts";

/** Rows of a series: more than a plot has pixels. */
const POINTS = 1_500;
/** A run that takes longer, in milliseconds, gives way to a newer one. */
const PATIENCE = 1_500;

export interface RunState {
  /** The text that the state is of. */
  text: string | undefined;
  /** The last run of a text without errors. */
  run: RunAnswer | undefined;
  errors: ScenarioError[];
  fault: string;
  isBusy: boolean;
}

/** A run that is asked for. */
interface Wanted {
  text: string;
  /** Index of the path whose controls are changed and answered. */
  path: number;
  changes: Map<string, ControlChange>;
}

export function useRun(text: string, setText: (text: string) => void) {
  const [state, setState] = useState<RunState>({ text: undefined, run: undefined, errors: [], fault: "", isBusy: false });
  const pending = useRef<Wanted | undefined>(undefined);
  const isRunning = useRef(false);
  const began = useRef(0);
  const latest = useRef(setText);
  latest.current = setText;
  const shown = useRef(text);
  shown.current = text;

  const next = async () => {
    const wanted = pending.current;
    if (!wanted || isRunning.current) return;
    pending.current = undefined;
    isRunning.current = true;
    began.current = performance.now();
    const slow = setTimeout(() => setState((old) => ({ ...old, isBusy: true })), 300);
    try {
      const controls = [...wanted.changes.values()];
      const run = await runs.call({ op: "run", text: wanted.text, controls, path: wanted.path, points: POINTS });
      // A change made meanwhile is applied to the text of this answer.
      const later = pending.current as Wanted | undefined;
      if (later && later.text === wanted.text) later.text = run.text;
      // What was typed meanwhile counts more than the slider.
      if (run.text !== wanted.text && shown.current === wanted.text && (!later || later.text === run.text)) latest.current(run.text);
      setState({ text: run.text, run, errors: [], fault: "", isBusy: false });
    } catch (error) {
      if (error instanceof EngineError) {
        const fault = error.errors.length > 0 ? "" : error.message;
        setState((old) => ({ ...old, text: wanted.text, errors: error.errors, fault, isBusy: false }));
      } else if (!(error instanceof Cancelled)) throw error;
      else setState((old) => ({ ...old, isBusy: false }));
    } finally {
      clearTimeout(slow);
      isRunning.current = false;
      void next();
    }
  };

  /** Runs a text, with changes of a path's controls. */
  const ask = (text: string, path: number, change?: ControlChange) => {
    const old = pending.current;
    const changes = new Map(change && old?.text === text && old.path === path ? old.changes : []);
    if (change) changes.set(change[0], change);
    pending.current = { text, path, changes };
    if (isRunning.current && performance.now() - began.current > PATIENCE) runs.cancel();
    void next();
  };

  useEffect(() => () => { pending.current = undefined; }, []);
  return { state, ask, stop: () => { pending.current = undefined; runs.cancel(); setState((old) => ({ ...old, isBusy: false, fault: "Stopped." })); } };
}
