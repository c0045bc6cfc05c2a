// A scenario to edit and to feel: sliders, and the plots that follow them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Cancelled, runs } from "../engine/client.ts";
import type { ControlChange, FileDiagnosis, Finding } from "../engine/types.ts";
import { Editor, textOf } from "../parts/editor.tsx";
import { Findings } from "../parts/findings.tsx";
import { Plots, plotsOf } from "../parts/plots.tsx";
import { ReportFrame } from "../parts/report_frame.tsx";
import { Sliders } from "../parts/sliders.tsx";
import { useRun } from "../parts/use_run.ts";
import { linkOf } from "../share.ts";
import { STORIES } from "../stories.ts";

interface Props {
  text: string;
  setText(text: string): void;
  isDark: boolean;
  isShown: boolean;
  onClock(text: string, at: number): void;
}

export function ScenarioPage({ text, setText, isDark, isShown, onClock }: Props) {
  const { state, ask, stop } = useRun(text, setText);
  const [path, setPath] = useState(0);
  const [schema, setSchema] = useState<unknown>();
  const [link, setLink] = useState("");
  const [html, setHtml] = useState("");
  const [findings, setFindings] = useState<Finding[]>();
  const [fault, setFault] = useState("");
  const jump = useRef<(line: number, column: number) => void>(() => undefined);
  const known = useRef<unknown>(undefined);
  known.current = schema;
  const asked = useRef(0);

  // The text runs shortly after the last key, but not again after a slider wrote it.
  useEffect(() => {
    setLink("");
    setHtml("");
    setFindings(undefined);
    if (!isShown || state.text === text) return;
    const timer = setTimeout(() => ask(text, path), state.run ? 250 : 0);
    return () => clearTimeout(timer);
  }, [text, isShown]);
  // Another text may have fewer paths.
  useEffect(() => {
    if (state.run && path > 0 && path >= state.run.paths.length) choosePath(0);
  }, [state.run]);
  useEffect(() => {
    if (!isShown || schema) return;
    runs.call({ op: "schema" }).then(({ schema }) => setSchema(JSON.parse(schema)), () => undefined);
  }, [isShown, state.run]);

  const plots = useMemo(() => (state.run ? plotsOf(state.run) : []), [state.run]);
  const slide = (change: ControlChange) => {
    asked.current = performance.now();
    ask(text, path, change);
  };
  const choosePath = (path: number) => {
    setPath(path);
    ask(text, path);
  };
  // For the test of the time from a slider's step to the drawn plots.
  const drawn = () => {
    if (asked.current > 0) performance.measure("slider", { start: asked.current });
    asked.current = 0;
  };
  const attempt = (what: () => Promise<void>) => async () => {
    setFault("");
    try {
      await what();
    } catch (error) {
      if (!(error instanceof Cancelled)) setFault((error as Error).message);
    }
  };
  const share = attempt(async () => {
    const made = await linkOf("scenario", text);
    setLink(made);
    history.replaceState(null, "", new URL(made).hash);
    await navigator.clipboard?.writeText(made).catch(() => undefined);
  });
  const diagnose = attempt(async () => {
    const { json } = await runs.call({ op: "findings", text });
    const file = JSON.parse(json) as FileDiagnosis & { connections?: { findings: Finding[] }[] };
    setFindings((file.connections?.[0] ?? file.quic?.[0])?.findings ?? []);
  });
  const page = attempt(async () => setHtml((await runs.call({ op: "run_page", text })).html));
  const story = STORIES.find((story) => story.text === text);

  return (
    <>
      <h1>Try a scenario</h1>
      <div class="stories" role="group" aria-label="Stories to begin with">
        {STORIES.map((one) => (
          <button key={one.id} type="button" aria-pressed={one === story} onClick={() => setText(one.text)}>{one.title}</button>
        ))}
      </div>
      {story && <p class="lead">{story.lead}</p>}
      <div class="bench">
        <div class="left">
          {state.run && (
            <Sliders controls={state.run.controls} paths={state.run.paths} path={path} onPath={choosePath} onChange={slide} />
          )}
          <Editor text={text} errors={state.errors} schema={() => known.current} onChange={setText}
            onReady={(to) => { jump.current = to; }} />
          <div role="status" aria-label="Errors of the scenario" class="errors">
            {state.errors.length > 0 && (
              <ul>
                {state.errors.map((error) => (
                  <li key={`${error.line}:${error.column}:${error.message}`}>
                    <button type="button" class="link" onClick={() => jump.current(error.line, error.column)}>
                      line {error.line}, column {error.column}
                    </button>: {textOf(error)}
                  </li>
                ))}
              </ul>
            )}
          </div>
        </div>
        <div class="right" aria-busy={state.isBusy}>
          {state.isBusy && (
            <p class="progress" role="status">running… <button type="button" onClick={stop}>Stop</button></p>
          )}
          {(state.fault || fault) && <p class="failure" role="alert">{state.fault || fault}</p>}
          {state.run && state.run.flows.length > 1 && <p>Plots of the flow {state.run.shown}:</p>}
          <Plots plots={plots} isDark={isDark} onDrawn={drawn} />
          {state.run && <pre class="result" tabIndex={0} aria-label="Result">{state.run.table}</pre>}
        </div>
      </div>
      <div class="row">
        <button type="button" class="primary" onClick={() => onClock(text, 0)}>Watch its ACK clock</button>
        <button type="button" onClick={diagnose}>What limits it?</button>
        <button type="button" onClick={page}>Full page of the run</button>
        <button type="button" onClick={share}>Link to this scenario</button>
      </div>
      {link && (
        <label class="block">
          The link, which holds the whole scenario
          <input readOnly value={link} onFocus={(event) => event.currentTarget.select()} />
        </label>
      )}
      {findings && (
        <section aria-label="Findings">
          <h2>What limits it</h2>
          <Findings findings={findings} onMoment={(at) => onClock(text, at * 1e9)} momentText="See the ACK clock at" />
        </section>
      )}
      {html && <ReportFrame html={html} title="Page of the run" />}
    </>
  );
}
