// The ACK clock: packets and ACKs on their way, the queue and the window, at any pace.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Seek } from "../app.tsx";
import { draw, describe } from "../clock/scene.ts";
import { ClockRecord } from "../clock/record.ts";
import { Cancelled, runs } from "../engine/client.ts";
import type { FileDiagnosis, Finding, RunAnswer } from "../engine/types.ts";
import * as format from "../format.ts";
import { Strip } from "../parts/strip.tsx";
import { linkOf } from "../share.ts";
import { STORIES } from "../stories.ts";

/** Packets that are recorded at a time. */
const PACKETS = 4_000;
/** Real seconds that a round trip takes at the middle of the slider. */
const ROUND_TRIP = 4;
/** Remarks that are shown. */
const REMARKS = 7;

interface Props {
  text: string;
  setText(text: string): void;
  seek: Seek;
  isDark: boolean;
  isShown: boolean;
  onScenario(text: string): void;
}

export function ClockPage({ text, setText, seek, isDark, isShown, onScenario }: Props) {
  const [run, setRun] = useState<RunAnswer>();
  const [record, setRecord] = useState<ClockRecord>();
  const [findings, setFindings] = useState<Finding[]>([]);
  const [fault, setFault] = useState("");
  const [at, setAt] = useState(0);
  const [isPlaying, setPlaying] = useState(false);
  const [pace, setPace] = useState(0);
  const [link, setLink] = useState("");
  const canvas = useRef<HTMLCanvasElement>(null);
  const loading = useRef(0);
  const shown = useRef("");

  const end = (run?.report.ended_s ?? 0) * 1e9;
  const load = async (from: number) => {
    const number = ++loading.current;
    setFault("");
    try {
      const answer = await runs.call({ op: "packets", text, from_ns: Math.max(0, Math.floor(from)), limit: PACKETS });
      if (number === loading.current) setRecord(new ClockRecord(answer));
    } catch (error) {
      if (!(error instanceof Cancelled)) {
        setPlaying(false);
        setFault((error as Error).message);
      }
    }
  };

  // A new scenario: its whole run, its findings, its packets from the sought instant on.
  useEffect(() => {
    if (!isShown) {
      setPlaying(false);
      return;
    }
    const key = `${seek.count} ${text}`;
    if (shown.current === key) return;
    shown.current = key;
    setPlaying(false);
    setRecord(undefined);
    setRun(undefined);
    setFindings([]);
    setLink("");
    setAt(seek.at);
    void (async () => {
      await load(seek.at);
      try {
        const run = await runs.call({ op: "run", text, controls: [], path: 0, points: 1_500 });
        if (shown.current !== key) return;
        setRun(run);
        setAt((old) => Math.min(old, run.report.ended_s * 1e9));
        const { json } = await runs.call({ op: "findings", text });
        const file = JSON.parse(json) as FileDiagnosis;
        if (shown.current !== key) return;
        const found = (file.connections?.[0] ?? file.quic?.[0])?.findings ?? [];
        setFindings(found);
        // The same finding of a simulated transfer has its own moment; the user may have moved on meanwhile.
        const same = found.find((finding) => finding.code === seek.code)?.interval_s;
        if (same) setAt((old) => (old === seek.at ? same[0] * 1e9 : old));
      } catch {
        // A run without a capture to diagnose has no findings; a wrong scenario is reported above.
      }
    })();
  }, [text, seek, isShown]);

  // Beyond what is recorded the next packets are recorded.
  useEffect(() => {
    if (isShown && record && !record.covers(at)) void load(at);
  }, [at, record, isShown]);

  const moment = useMemo(() => record?.moment(at), [record, at]);
  useEffect(() => {
    if (isShown && canvas.current && record && moment) draw(canvas.current, record, moment);
  }, [record, moment, isDark, isShown]);
  useEffect(() => {
    const element = canvas.current;
    if (!element || !record || !moment) return;
    const observer = new ResizeObserver(() => draw(element, record, moment));
    observer.observe(element);
    return () => observer.disconnect();
  }, [record, moment]);

  /** Nanoseconds of the run in a second here. */
  const speed = record ? (record.roundTrip / ROUND_TRIP) * 2 ** pace : 0;
  // Of the layout: a pause ends the frames before the next one, not some frames later.
  useLayoutEffect(() => {
    if (!isPlaying || !record) return;
    let frame = 0;
    let before = performance.now();
    const advance = (now: number) => {
      const passed = Math.min(now - before, 100) / 1e3;
      before = now;
      setAt((old) => {
        const next = old + passed * speed;
        // While the next packets are recorded, time waits for them.
        if (!record.covers(next) && !record.covers(old)) return old;
        if (end > 0 && next >= end) {
          setPlaying(false);
          return end;
        }
        return next;
      });
      frame = requestAnimationFrame(advance);
    };
    frame = requestAnimationFrame(advance);
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, record, speed, end]);

  const go = (to: number) => {
    setPlaying(false);
    setAt(Math.max(0, end > 0 ? Math.min(to, end) : to));
  };
  const step = (direction: 1 | -1) => {
    if (!record) return;
    const found = direction > 0 ? record.after(at) : record.before(at);
    // Before the record: a round trip earlier; after it: where the next record begins.
    go(found ?? (direction > 0 ? record.answer.until_ns : at - record.roundTrip));
  };
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      " ": () => setPlaying((old) => !old),
      ArrowRight: () => (event.shiftKey ? go(at + (record?.roundTrip ?? 0)) : step(1)),
      ArrowLeft: () => (event.shiftKey ? go(at - (record?.roundTrip ?? 0)) : step(-1)),
      Home: () => go(0),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  const share = async () => {
    const made = await linkOf("clock", text, at);
    setLink(made);
    history.replaceState(null, "", new URL(made).hash);
    await navigator.clipboard?.writeText(made).catch(() => undefined);
  };

  const story = STORIES.find((one) => one.text === text);
  const span = record ? record.roundTrip / 1e9 : 1;
  const first = record ? Math.max(0, record.remarkAfter(at) - REMARKS + 2) : 0;
  const remarks = record?.answer.remarks.slice(first, first + REMARKS) ?? [];
  return (
    <>
      <h1>The ACK clock</h1>
      <div class="stories" role="group" aria-label="Stories to watch">
        {STORIES.map((one) => (
          <button key={one.id} type="button" aria-pressed={one === story} onClick={() => setText(one.text)}>{one.title}</button>
        ))}
      </div>
      <p class="lead">
        {story ? story.lead : `${run?.report.title || "A scenario of your own"}.`} A sender may have as many bytes in flight as
        its window allows: each ACK that returns lets the next packets go.
      </p>
      {fault && (
        <p class="failure" role="alert">
          {fault} <button type="button" onClick={() => onScenario(text)}>Edit the scenario</button>
        </p>
      )}
      <div class="clock">
        <canvas ref={canvas} class="scene" tabIndex={0} role="img" onKeyDown={keys}
          aria-label={`The path at ${format.instant(at / 1e9, span)}: ${moment ? describe(moment) : "loading"}`} />
        <p class="keys quiet">
          <span class="key-data" /> data <span class="key-again" /> retransmission <span class="key-ack" /> ACK{" "}
          <span class="key-drop">×</span> dropped
        </p>
        <div class="row player">
          <button type="button" onClick={() => go(0)} aria-label="To the beginning">|◀</button>
          <button type="button" onClick={() => step(-1)} disabled={!record} aria-label="Step back">◀ step</button>
          <button type="button" class="primary" onClick={() => setPlaying(!isPlaying)} disabled={!record} aria-pressed={isPlaying}>
            {isPlaying ? "Pause" : "Play"}
          </button>
          <button type="button" onClick={() => step(1)} disabled={!record} aria-label="Step">step ▶</button>
          <button type="button" onClick={() => go(at + (record?.roundTrip ?? 0))} disabled={!record}>+ 1 round trip</button>
          <label class="pace">
            Pace
            <input type="range" min={-6} max={6} step={0.5} value={pace} aria-valuetext={`${format.seconds(speed / 1e9)} a second`}
              onInput={(event) => setPace(Number(event.currentTarget.value))} />
            <output>{format.seconds(speed / 1e9)} a second</output>
          </label>
        </div>
        <p class="instant"><strong data-at={Math.round(at)}>{format.instant(at / 1e9, span)}</strong> {moment && describe(moment)}</p>
        {run && <Strip run={run} at={at / 1e9} isDark={isDark} onSeek={(to) => go(to * 1e9)} />}
      </div>
      <div class="columns">
        <section aria-label="Moments">
          <h2>Moments</h2>
          {findings.length === 0 && <p class="quiet">No finding names a moment of this run.</p>}
          <ul class="moments">
            {findings.filter((finding) => finding.interval_s).map((finding) => (
              <li key={`${finding.code} ${finding.interval_s?.[0]}`}>
                <button type="button" onClick={() => go((finding.interval_s?.[0] ?? 0) * 1e9)}>
                  {(finding.interval_s?.[0] ?? 0).toFixed(3)} s
                </button>{" "}
                <span class="code">{finding.code}</span> {finding.title}
              </li>
            ))}
            {run?.queue?.dropped_s[0] !== undefined && (
              <li><button type="button" onClick={() => go((run.queue?.dropped_s[0] ?? 0) * 1e9 - 1)}>{run.queue.dropped_s[0].toFixed(3)} s</button> the queue drops its first packet</li>
            )}
          </ul>
        </section>
        <section aria-label="What happens">
          <h2>What happens</h2>
          <ol class="remarks">
            {remarks.map((remark, index) => (
              <li key={first + index} class={remark.at <= at ? "past" : "quiet"}>
                <button type="button" class="link" onClick={() => go(remark.at)}>{format.instant(remark.at / 1e9, span)}</button> {remark.text}
              </li>
            ))}
          </ol>
        </section>
      </div>
      <div class="row">
        <button type="button" onClick={() => onScenario(text)}>Edit this scenario</button>
        <button type="button" onClick={share}>Link to this moment</button>
      </div>
      {link && (
        <label class="block">
          The link, which holds the whole scenario and the moment
          <input readOnly value={link} onFocus={(event) => event.currentTarget.select()} />
        </label>
      )}
    </>
  );
}
