import * as format from "../format.ts";
import type { TriedCure } from "../engine/types.ts";

/** The cures that were tried, with the time of the transfer without and with each. */
export function Cures({ cures, isTrying }: { cures: TriedCure[]; isTrying: boolean }) {
  if (isTrying) return <p class="quiet" role="status">Trying cures in simulations of the transfer…</p>;
  if (cures.length === 0) return null;
  return (
    <section aria-label="Cures">
      <h3>Cures, tried in simulations of this transfer</h3>
      <ul class="cures">
        {cures.map((cure) => (
          <li key={cure.set}>
            <span class="cure">{cure.what}</span>: <Gain cure={cure} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Gain({ cure }: { cure: TriedCure }) {
  const { recorded_s, duration_s, low_s, high_s, why } = cure;
  if (recorded_s === undefined || duration_s === undefined || low_s === undefined || high_s === undefined) {
    return <span class="quiet">cannot be predicted: {why}</span>;
  }
  const isRange = cure.validity === "range";
  const after = isRange ? `${format.seconds(low_s)} to ${format.seconds(high_s)}` : format.seconds(duration_s);
  return (
    <>
      <strong class="gain">{format.seconds(recorded_s)} → {after}</strong>
      {isRange && <span class="quiet"> ({why})</span>}
    </>
  );
}
