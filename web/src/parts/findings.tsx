import * as format from "../format.ts";
import type { Finding } from "../engine/types.ts";

const SYSTEMS: Record<string, string> = { linux: "Linux", freebsd: "FreeBSD", other: "Elsewhere" };

interface Props {
  findings: Finding[];
  /** Shows the moment of a finding: its start in seconds. */
  onMoment?: (at: number, code: string) => void;
  momentText?: string;
}

/** Findings with their evidence, cause and cure. */
export function Findings({ findings, onMoment, momentText }: Props) {
  if (findings.length === 0) return <p>No findings: nothing slowed this transfer that its packets show.</p>;
  return (
    <ul class="findings">
      {findings.map((finding) => (
        <li key={`${finding.code}-${finding.interval_s?.[0]}`} class={finding.severity}>
          <h3>
            <span class={`severity ${finding.severity}`}>{finding.severity}</span> <span class="code">{finding.code}</span>{" "}
            {finding.title}
          </h3>
          <p class="quiet">
            costs {format.seconds(finding.cost_s)}, confidence {finding.confidence}
            {finding.interval_s && `, ${finding.interval_s[0].toFixed(3)} to ${finding.interval_s[1].toFixed(3)} s`}
          </p>
          {finding.cause && <p>{finding.cause}</p>}
          <dl class="help">
            {Object.entries(finding.help).map(([system, text]) => (
              <div key={system}><dt>{SYSTEMS[system] ?? system}</dt><dd>{text}</dd></div>
            ))}
          </dl>
          {finding.unseen && <p class="quiet">Not visible here: {finding.unseen}</p>}
          {onMoment && finding.interval_s && (
            <button type="button" onClick={() => onMoment(finding.interval_s?.[0] ?? 0, finding.code)}>
              {momentText} {finding.interval_s[0].toFixed(3)} s<span class="sr"> of {finding.code}</span>
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
