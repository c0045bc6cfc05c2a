// The four published cases of docs/stories.md as starting points.

import cubicHz from "../../scenarios/cubic-hz.toml?raw";
import mathis from "../../scenarios/mathis.toml?raw";
import reordering from "../../scenarios/reordering.toml?raw";
import slowStart from "../../scenarios/slow-start-lro.toml?raw";

export interface Story {
  id: string;
  title: string;
  lead: string;
  text: string;
}

/** A scenario that ends earlier, so that plots follow a slider. */
function until(text: string, duration: string): string {
  return text.replace(/^duration = ".*"$/m, `duration = "${duration}"`);
}

export const STORIES: Story[] = [
  {
    id: "slow-start",
    title: "A slow start that takes 42 seconds",
    lead:
      "The receiver merges packets and acknowledges once per flight. FreeBSD 13.2 then adds two segments a round " +
      "trip instead of doubling its window.",
    text: slowStart,
  },
  {
    id: "reordering",
    title: "Packets that arrive last first",
    lead:
      "Groups of four packets arrive in reverse order. The sender takes every group for a loss and keeps its window " +
      "small, although no packet is lost.",
    text: until(reordering, "5s"),
  },
  {
    id: "mathis",
    title: "A formula and a sender",
    lead: "QUIC over a path that loses every 51st packet: the sawtooth of which the formula of Mathis speaks.",
    text: until(mathis, "4s"),
  },
  {
    id: "cubic-hz",
    title: "A clock too coarse for a LAN",
    lead: "A kernel clock of 10 ms in a LAN of 0.1 ms. Try CUBIC: it computes its window from time.",
    text: until(cubicHz, "1s"),
  },
];
