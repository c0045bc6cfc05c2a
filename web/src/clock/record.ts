// A recorded part of a run, prepared for drawing at any instant.

import type { PacketJourney, PacketsAnswer, WindowSample } from "../engine/types.ts";

export interface QueueState {
  packets: PacketJourney[];
  bytes: number;
}

/** The state of the picture at an instant. */
export interface Moment {
  at: number;
  /** Packets on the wire, with the fraction of their way from 0 to 1. */
  wire: { packet: PacketJourney; part: number }[];
  queue: QueueState;
  /** Dropped a short time ago: the age as a fraction of the time they are shown. */
  drops: { packet: PacketJourney; age: number }[];
  window: WindowSample | undefined;
}

/** Bytes of IP and TCP headers, for the size of packets in a queue. */
const HEADERS = 52;

export class ClockRecord {
  /** Instants at which something happens, ascending. */
  readonly instants: Float64Array;
  /** Typical time from one host to the other. */
  private readonly oneWay: number;
  private readonly packets: PacketJourney[];
  private readonly windows: WindowSample[];

  constructor(readonly answer: PacketsAnswer) {
    this.packets = [...answer.packets].sort((a, b) => a.sent - b.sent);
    this.windows = answer.windows.filter((sample) => sample.flow === 0);
    const ways = this.packets.flatMap((packet) => (packet.outcome === "arrived" && packet.end !== null ? [packet.end - wireStart(packet)] : []));
    ways.sort((a, b) => a - b);
    this.oneWay = ways[Math.floor(ways.length / 2)] ?? 1e6;
    const instants = this.packets.flatMap((packet) => [packet.sent, packet.queued, packet.dequeued, packet.end]);
    const all = [...instants, ...this.windows.map((sample) => sample.at), ...answer.remarks.map((remark) => remark.at)];
    const known = all.filter((at): at is number => at !== null && at >= answer.from_ns && at <= answer.until_ns);
    this.instants = Float64Array.from(new Set(known)).sort();
  }

  covers(at: number): boolean {
    return at >= this.answer.from_ns && (at < this.answer.until_ns || this.answer.is_last);
  }

  get roundTrip(): number {
    return 2 * this.oneWay;
  }

  /** Largest window of the record, for the scale of the bars. */
  get largest(): number {
    return this.windows.reduce((most, sample) => Math.max(most, sample.cwnd, sample.flight), 1);
  }

  /** The next instant at which something happens; `undefined` at the end of the record. */
  after(at: number): number | undefined {
    return this.instants[upper(this.instants, at)];
  }

  before(at: number): number | undefined {
    let index = upper(this.instants, at) - 1;
    if ((this.instants[index] ?? -1) >= at) index--;
    return this.instants[index];
  }

  moment(at: number): Moment {
    const moment: Moment = { at, wire: [], queue: { packets: [], bytes: 0 }, drops: [], window: this.windowAt(at) };
    const shown = this.roundTrip / 4;
    for (const packet of this.packets) {
      if (packet.sent > at) break;
      const end = packet.end ?? wireStart(packet) + this.oneWay;
      const isDrop = packet.outcome === "dropped_by_queue" || packet.outcome === "lost";
      if (isDrop && at >= end) {
        if (at < end + shown) moment.drops.push({ packet, age: (at - end) / shown });
        continue;
      }
      if (at >= end) continue;
      if (packet.queued !== null && (packet.dequeued === null || at < packet.dequeued)) {
        if (at < packet.queued || !packet.forward) moment.wire.push({ packet, part: 0 });
        else {
          moment.queue.packets.push(packet);
          moment.queue.bytes += packet.len + HEADERS;
        }
        continue;
      }
      const start = wireStart(packet);
      moment.wire.push({ packet, part: end > start ? (at - start) / (end - start) : 1 });
    }
    return moment;
  }

  private windowAt(at: number): WindowSample | undefined {
    let [low, high] = [0, this.windows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.windows[middle]?.at ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return this.windows[low - 1];
  }

  /** Index of the first remark after `at`. */
  remarkAfter(at: number): number {
    const index = this.answer.remarks.findIndex((remark) => remark.at > at);
    return index < 0 ? this.answer.remarks.length : index;
  }
}

function wireStart(packet: PacketJourney): number {
  return packet.dequeued ?? packet.sent;
}

function upper(sorted: Float64Array, value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
