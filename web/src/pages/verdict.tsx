// Drop a capture or a qlog: the verdict, the graphs, what another sender would have done.

import { useRef, useState } from "preact/hooks";

import rwndCapture from "../../../golden/linux/h1_rwnd_cubic/sender.pcap.xz?url";
import rtoCapture from "../../../golden/linux/g1_rto_cubic/sender.pcap.xz?url";
import qlogSample from "../../../docs/samples/upload.sqlog?url";
import { Cancelled, EngineError, captures, trials } from "../engine/client.ts";
import type { Connection, FileDiagnosis } from "../engine/types.ts";
import * as format from "../format.ts";
import { Cures } from "../parts/cures.tsx";
import { Findings } from "../parts/findings.tsx";
import { ReportFrame, save } from "../parts/report_frame.tsx";
import { WhatIfPanel } from "../parts/what_if.tsx";

const SAMPLES: [string, string, string][] = [
  ["small-receive-window.pcap.xz", rwndCapture, "a receive window too small"],
  ["timeouts.pcap.xz", rtoCapture, "an outage and its timeouts"],
  ["upload.sqlog", qlogSample, "a qlog of QUIC"],
];
/** Most connections that are listed. */
const LISTED = 200;
/** Most bytes of captures whose cures are tried: as in the native program. */
const MOST_TRIED = 256 * 2 ** 20;

interface Verdict {
  files: File[];
  diagnoses: FileDiagnosis[];
  json: string;
  text: string;
  seconds: number;
  cures: "trying" | "tried" | "none";
}

/** Whether a connection has something to cure. */
function hasCures(files: File[], diagnoses: FileDiagnosis[]): boolean {
  const isLimited = diagnoses.some((file) => file.connections?.some((one) => one.primary !== null));
  return isLimited && files.reduce((sum, file) => sum + file.size, 0) <= MOST_TRIED;
}

function parse(json: string): FileDiagnosis[] {
  const parsed = JSON.parse(json) as FileDiagnosis | FileDiagnosis[];
  return Array.isArray(parsed) ? parsed : [parsed];
}

interface Props {
  onScenario(text: string): void;
  onClock(text: string, at: number, code: string): void;
}

export function VerdictPage({ onScenario, onClock }: Props) {
  const [verdict, setVerdict] = useState<Verdict>();
  const [progress, setProgress] = useState<{ done: number; total: number }>();
  const [fault, setFault] = useState("");
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  /** Counts what was asked for: only the last has an answer. */
  const turn = useRef(0);

  /** Takes away what is shown: it is not of the files that were just chosen. */
  const begin = () => {
    captures.cancel();
    trials.cancel();
    setFault("");
    setVerdict(undefined);
    setProgress(undefined);
    return ++turn.current;
  };
  const diagnose = async (files: File[]) => {
    if (files.length === 0) return;
    begin();
    setProgress({ done: 0, total: files.reduce((sum, file) => sum + file.size, 0) });
    const began = performance.now();
    try {
      const request = { op: "diagnose", files: files.map((file) => file.name), limit: LISTED } as const;
      const answer = await captures.call(request, files, (done, total) => setProgress({ done, total }));
      const diagnoses = parse(answer.json);
      const seconds = (performance.now() - began) / 1e3;
      const isTrying = hasCures(files, diagnoses);
      const shown: Verdict = { files, diagnoses, ...answer, seconds, cures: isTrying ? "trying" : "none" };
      setVerdict(shown);
      setProgress(undefined);
      if (isTrying) await tryCures(shown);
    } catch (error) {
      if (error instanceof Cancelled) return;
      setProgress(undefined);
      setFault((error as Error).message);
    }
  };
  /** Tries the cures of a verdict that is shown; without them it stays. */
  const tryCures = async (shown: Verdict) => {
    try {
      const request = { op: "diagnose", files: shown.files.map((file) => file.name), limit: LISTED, cures: true } as const;
      const answer = await trials.call(request, shown.files);
      setVerdict({ ...shown, ...answer, diagnoses: parse(answer.json), cures: "tried" });
    } catch (error) {
      if (error instanceof Cancelled) return;
      setVerdict({ ...shown, cures: "none" });
      throw error;
    }
  };
  const cancel = () => {
    captures.cancel();
    setProgress(undefined);
    setFault("Cancelled.");
  };
  const sample = async (name: string, url: string) => {
    const asked = begin();
    try {
      const response = await fetch(url);
      const bytes = await response.arrayBuffer();
      if (asked === turn.current) await diagnose([new File([bytes], name)]);
    } catch (error) {
      setFault(`The example cannot be loaded: ${(error as Error).message}`);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void diagnose([...(event.dataTransfer?.files ?? [])]);
  };

  return (
    <>
      <h1>Why is this transfer slow?</h1>
      <div class={`drop ${isOver ? "over" : ""}`} onDrop={drop} onDragLeave={() => setOver(false)}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }}>
        <p>
          Drop a capture or a qlog here: pcap, pcapng, text of tcpdump, BBLog, siftr, <code>ss -ti</code>, qlog, NetLog;
          also compressed, and several of one transfer.
        </p>
        <button type="button" class="primary" onClick={() => input.current?.click()}>Choose files…</button>
        <input ref={input} class="sr" type="file" multiple tabIndex={-1} aria-label="Captures or qlogs"
          onChange={(event) => { void diagnose([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }} />
        <p class="samples">
          Or try{" "}
          {SAMPLES.map(([name, url, title], index) => (
            <span key={name}>
              {index > 0 && ", "}
              <button type="button" class="link" onClick={() => void sample(name, url)}>{title}</button>
            </span>
          ))}.
        </p>
      </div>
      {progress && (
        <div class="progress" role="status">
          <progress value={progress.done} max={Math.max(progress.total, 1)} aria-label="Bytes read" />
          <span>
            {progress.done < progress.total
              ? `read ${format.bytes(progress.done)} of ${format.bytes(progress.total)}`
              : "diagnosing…"}
          </span>
          <button type="button" onClick={cancel}>Cancel</button>
        </div>
      )}
      {fault && <p class="failure" role="alert">{fault}</p>}
      {verdict && <Result verdict={verdict} onScenario={onScenario} onClock={onClock} />}
    </>
  );
}

/** The page of graphs, with the cures once they were tried; a worker that was ended meanwhile reads the files again. */
async function pageOf({ files, cures }: Verdict): Promise<string> {
  if (cures === "tried") return (await trials.call({ op: "diagnosis_page" })).html;
  try {
    return (await captures.call({ op: "diagnosis_page" })).html;
  } catch (error) {
    if (!(error instanceof EngineError) || error.panicked) throw error;
    await captures.call({ op: "diagnose", files: files.map((file) => file.name), limit: 1 }, files);
    return (await captures.call({ op: "diagnosis_page" })).html;
  }
}

function Result({ verdict, onScenario, onClock }: Props & { verdict: Verdict }) {
  const all = verdict.diagnoses.flatMap((file, index) =>
    [...(file.connections ?? []), ...(file.quic ?? [])].map((connection) => ({ file, index, connection })));
  const [chosen, setChosen] = useState(0);
  const [html, setHtml] = useState("");
  const [fault, setFault] = useState("");
  const one = all[Math.min(chosen, all.length - 1)];
  const capture = one && verdict.files[one.index];
  const problems = verdict.diagnoses.flatMap((file) => file.problems);
  const page = async () => {
    setFault("");
    try {
      setHtml(await pageOf(verdict));
    } catch (error) {
      if (!(error instanceof Cancelled)) setFault((error as Error).message);
    }
  };
  const fitted = async () => {
    if (!capture || !one) return "";
    const request = { op: "scenario_of", file: capture.name, flow: one.connection.id } as const;
    return (await captures.call(request, [capture])).text;
  };
  const attempt = (what: () => Promise<void>) => async () => {
    setFault("");
    try {
      await what();
    } catch (error) {
      if (!(error instanceof Cancelled)) setFault((error as Error).message);
    }
  };
  const moment = (at: number, code: string) => void attempt(async () => onClock(await fitted(), at * 1e9, code))();
  const isTcp = one?.connection.client !== undefined;
  return (
    <section aria-label="Verdict" class="verdict">
      {problems.length > 0 && (
        <div class="warn" role="alert">
          <strong>The file is damaged.</strong>
          <ul>{problems.slice(0, 5).map((problem) => <li key={problem}>{problem}</li>)}</ul>
        </div>
      )}
      {all.length > 1 && <ConnectionTable rows={all.map(({ connection }) => connection)} chosen={chosen} onChoose={setChosen} />}
      {one ? (
        <>
          <Headline file={one.file} connection={one.connection} />
          <Cures cures={one.connection.cures ?? []} isTrying={verdict.cures === "trying" && one.connection.primary !== null && isTcp} />
          <Findings findings={one.connection.findings} {...(isTcp ? { onMoment: moment, momentText: "See the ACK clock at" } : {})} />
          {isTcp && capture && (
            <>
              <div class="row">
                <button type="button" onClick={attempt(async () => onScenario(await fitted()))}>Edit as a scenario</button>
              </div>
              <WhatIfPanel key={`${capture.name}-${one.connection.id}`} file={capture} flow={one.connection.id} />
            </>
          )}
        </>
      ) : <p>The file has no connection of TCP or QUIC.</p>}
      {fault && <p class="failure" role="alert">{fault}</p>}
      <div class="row">
        <button type="button" onClick={page}>Show the graphs</button>
        <button type="button" onClick={() => save("diagnosis.json", "application/json", verdict.json)}>Save as JSON</button>
        {html && <button type="button" onClick={() => save("diagnosis.html", "text/html", html)}>Save the page</button>}
        <span class="quiet">diagnosed in {format.seconds(verdict.seconds)}</span>
      </div>
      {html && <ReportFrame html={html} title="Graphs of the diagnosis" />}
      <details><summary>As text</summary><pre tabIndex={0}>{verdict.text}</pre></details>
    </section>
  );
}

function ConnectionTable({ rows, chosen, onChoose }: { rows: Connection[]; chosen: number; onChoose(index: number): void }) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Connections">
      <table>
        <caption>Connections, the slowest first</caption>
        <thead><tr><th>flow</th><th>between</th><th>bytes</th><th>time</th><th>limited by</th></tr></thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index} class={index === chosen ? "chosen" : ""}>
              <td>
                <button type="button" aria-pressed={index === chosen} onClick={() => onChoose(index)}>
                  <span class="sr">Show flow </span>{row.id}
                </button>
              </td>
              <td>{row.client ?? "QUIC"} {row.server && `, ${row.server}`}</td>
              <td>{row.bytes !== undefined && format.bytes(row.bytes)}</td>
              <td>{row.duration_s !== undefined && format.seconds(row.duration_s)}</td>
              <td>{row.primary ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Classes of the colours of phases; the others are grey. */
const TONES: Record<string, string> = {
  handshake: "c1", slow_start: "c2", congestion_window: "c3", receive_window: "c4", application: "c5", recovery: "c6",
  timeout: "c7", path_saturated: "c8", connection_flow_control: "c4", stream_flow_control: "c4", pacing: "c8",
};

function Headline({ file, connection }: { file: FileDiagnosis; connection: Connection }) {
  const primary = connection.findings.find((finding) => finding.code === connection.primary);
  const budget = connection.time_budget ?? {};
  const phases = Object.entries(budget).map(([key, time]) => {
    const name = key.replace(/_s$/, "");
    return { name: name.replaceAll("_", " "), tone: TONES[name] ?? "c0", time };
  });
  const total = phases.reduce((sum, phase) => sum + phase.time, 0);
  return (
    <>
      <h2>{primary ? primary.title : "No single cause limits this transfer"}</h2>
      <p>
        {file.file}
        {connection.client && `, ${connection.client} and ${connection.server}`}
        {connection.bytes !== undefined && `: ${format.bytes(connection.bytes)}`}
        {connection.duration_s !== undefined && ` in ${format.seconds(connection.duration_s)}`}
        {connection.goodput_bps !== undefined && `, ${format.rate(connection.goodput_bps)}`}
        {connection.base_rtt_s != null && `, round trip ${format.seconds(connection.base_rtt_s)}`}
      </p>
      {total > 0 && (
        <figure class="budget">
          <div class="bar" aria-hidden="true">
            {phases.filter((phase) => phase.time > 0).map((phase) => (
              <span key={phase.name} class={phase.tone} style={{ flexGrow: phase.time / total }} />
            ))}
          </div>
          <figcaption>
            Where the time went:{" "}
            {phases.filter((phase) => phase.time / total >= 0.005).map((phase) => (
              <span key={phase.name} class="phase">
                <span class={`key ${phase.tone}`} aria-hidden="true" />{phase.name} {format.percent(phase.time / total)}
              </span>
            ))}
          </figcaption>
        </figure>
      )}
    </>
  );
}
