import { useState } from "preact/hooks";

import { Cancelled, captures } from "../engine/client.ts";
import type { WhatIf } from "../engine/types.ts";
import * as format from "../format.ts";

const SENDERS = ["linux-6.18/cubic", "linux-6.18/reno", "linux-6.18/bbr", "freebsd-14.3/cubic", "freebsd-rack-main/cubic"];

/** What another sender, or another path, would have done with a captured transfer. */
export function WhatIfPanel({ file, flow }: { file: File; flow: number }) {
  const [compare, setCompare] = useState(["linux-6.18/bbr"]);
  const [changes, setChanges] = useState("");
  const [answer, setAnswer] = useState<WhatIf>();
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const toggle = (name: string) =>
    setCompare((old) => (old.includes(name) ? old.filter((one) => one !== name) : [...old, name]));
  const ask = async (event: Event) => {
    event.preventDefault();
    setFault("");
    setBusy(true);
    try {
      const set = changes.split("\n").map((line) => line.trim()).filter(Boolean);
      const found = await captures.call({ op: "what_if", file: file.name, flow, compare, set }, [file]);
      setAnswer(JSON.parse(found.json) as WhatIf);
    } catch (error) {
      if (!(error instanceof Cancelled)) setFault((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <details class="what-if">
      <summary>What would another sender have done?</summary>
      <form onSubmit={ask}>
        <fieldset>
          <legend>Senders to compare</legend>
          {SENDERS.map((name) => (
            <label key={name}>
              <input type="checkbox" checked={compare.includes(name)} onChange={() => toggle(name)} /> {name}
            </label>
          ))}
        </fieldset>
        <label class="block">
          Changes of the path, one a line, such as <code>path.0.forward.0.link.rate=20Mbit/s</code>
          <textarea rows={2} value={changes} onInput={(event) => setChanges(event.currentTarget.value)} spellcheck={false} />
        </label>
        <div class="row">
          <button type="submit" class="primary" disabled={isBusy}>{isBusy ? "Simulating…" : "Simulate"}</button>
          {isBusy && <button type="button" onClick={() => captures.cancel()}>Cancel</button>}
        </div>
      </form>
      {fault && <p class="failure" role="alert">{fault}</p>}
      {answer && <Answer answer={answer} />}
    </details>
  );
}

function Answer({ answer }: { answer: WhatIf }) {
  const best = answer.senders[0];
  return (
    <>
      <div class="table" tabIndex={0} role="region" aria-label="Simulated transfers">
        <table>
          <thead><tr><th>sender</th><th>time</th><th>goodput</th><th>compared with the captured one</th></tr></thead>
          <tbody>
            <tr><td>as captured</td><td>{format.seconds(answer.recorded.time_s)}</td><td>{format.rate(answer.recorded.goodput_bps)}</td><td>–</td></tr>
            {best && (
              <tr>
                <td>{best.sender}, which fits best</td><td>{format.seconds(best.course.time_s)}</td>
                <td>{format.rate(best.course.goodput_bps)}</td><td>off by {format.percent(best.misfit)}</td>
              </tr>
            )}
            {answer.alternatives.map((one) => (
              <tr key={one.what}>
                <td>{one.what}</td>
                <td>{format.seconds(one.course.time_s)}{one.runs > 1 && ` (${format.seconds(one.spread_s[0])} to ${format.seconds(one.spread_s[1])})`}</td>
                <td>{format.rate(one.course.goodput_bps)}</td>
                <td>{format.percent(one.time_ratio)} of the time</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!answer.licensed && <p class="warn">No sender fits the capture closely enough: take the others as hints only.</p>}
      <details>
        <summary>The fitted path and its evidence</summary>
        <dl class="help">{answer.fitted.map((one) => <div key={one.what}><dt>{one.what}</dt><dd>{one.why}</dd></div>)}</dl>
      </details>
    </>
  );
}
