// Draws the path at an instant: the window, the queue, packets and ACKs on the wire.

import * as format from "../format.ts";
import type { PacketJourney } from "../engine/types.ts";
import { colour } from "../theme.ts";
import type { ClockRecord, Moment } from "./record.ts";

/** Blocks of a queue that are drawn one by one. */
const BLOCKS = 40;

interface Layout {
  width: number;
  height: number;
  sender: number;
  receiver: number;
  queue: [number, number] | undefined;
  data: number;
  acks: number;
}

function layout(width: number, height: number, hasQueue: boolean): Layout {
  const isNarrow = width < 560;
  const side = isNarrow ? 74 : 150;
  const right = isNarrow ? 46 : 92;
  const sender = side;
  const receiver = width - right;
  const span = receiver - sender;
  const queue: [number, number] | undefined = hasQueue ? [sender + span * 0.06, sender + span * (isNarrow ? 0.34 : 0.28)] : undefined;
  return { width, height, sender, receiver, queue, data: height * 0.36, acks: height * 0.76 };
}

export function draw(canvas: HTMLCanvasElement, record: ClockRecord, moment: Moment): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const place = layout(width, height, record.answer.queues[0] !== null);
  const pen = new Pen(context, place);
  pen.hosts(record);
  pen.window(record, moment);
  pen.lanes(record, moment);
  pen.wire(moment);
  for (const { packet, age } of moment.drops) pen.drop(packet, age);
}

class Pen {
  private readonly tones = {
    text: colour("text"), quiet: colour("quiet"), line: colour("grid"), data: colour("tone-flight"), again: colour("tone-loss"),
    ack: colour("tone-rate"), window: colour("tone-window"), queue: colour("tone-queue"), other: colour("tone-rtt"), field: colour("field"),
  };

  constructor(private readonly context: CanvasRenderingContext2D, private readonly place: Layout) {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
  }

  private text(text: string, x: number, y: number, tone = this.tones.text, align: CanvasTextAlign = "left", most?: number): void {
    this.context.fillStyle = tone;
    this.context.textAlign = align;
    this.context.fillText(text, x, y, most);
  }

  hosts(record: ClockRecord): void {
    const { context, place } = this;
    const { sender, receiver } = record.answer;
    context.strokeStyle = this.tones.line;
    context.lineWidth = 2;
    context.beginPath();
    for (const x of [place.sender, place.receiver]) {
      context.moveTo(x, place.data - 34);
      context.lineTo(x, place.acks + 26);
    }
    context.stroke();
    this.text(sender.name, 8, 18);
    this.text(place.width < 560 ? sender.cc : `${sender.profile}, ${sender.cc}`, 8, 34, this.tones.quiet, "left", place.sender + 40);
    this.text(receiver.name, place.width - 8, 18, this.tones.text, "right");
    if (place.width >= 560) this.text(receiver.profile, place.width - 8, 34, this.tones.quiet, "right");
  }

  /** The congestion window as a column, the bytes in flight inside it. */
  window(record: ClockRecord, { window }: Moment): void {
    if (!window) return;
    const { context, place } = this;
    const [x, width] = [14, place.sender < 100 ? 26 : 44];
    const [top, bottom] = [52, place.height - 44];
    const high = (bytes: number) => ((bottom - top) * Math.min(bytes, record.largest)) / record.largest;
    context.fillStyle = this.tones.data;
    context.fillRect(x + 3, bottom - high(window.flight), width - 6, high(window.flight));
    context.strokeStyle = this.tones.window;
    context.lineWidth = 2.5;
    context.strokeRect(x, bottom - high(window.cwnd), width, high(window.cwnd));
    const segments = (bytes: number) => (window.mss > 0 ? `${Math.round(bytes / window.mss)} seg` : "");
    const side = x + width + 6;
    if (place.sender >= 100) {
      const y = Math.min(Math.max(bottom - high(window.cwnd) + 10, top + 10), bottom - 46);
      this.text("window", side, y, this.tones.window, "left", place.sender - side - 6);
      this.text(segments(window.cwnd), side, y + 15, this.tones.text, "left", place.sender - side - 6);
      this.text("in flight", side, bottom - 14, this.tones.data, "left", place.sender - side - 6);
      this.text(segments(window.flight), side, bottom + 1, this.tones.text, "left", place.sender - side - 6);
    }
    this.text(format.bytes(window.cwnd), x, place.height - 26, this.tones.window, "left", place.sender - x - 6);
    this.text(format.bytes(window.flight), x, place.height - 10, this.tones.data, "left", place.sender - x - 6);
  }

  lanes(record: ClockRecord, moment: Moment): void {
    const { context, place } = this;
    context.strokeStyle = this.tones.line;
    context.lineWidth = 1;
    for (const y of [place.data, place.acks]) {
      context.beginPath();
      context.moveTo(place.sender, y);
      context.lineTo(place.receiver, y);
      context.stroke();
    }
    const end = place.receiver - 8;
    this.text("data →", end, place.data + 26, this.tones.quiet, "right");
    this.text("← ACKs", end, place.acks + 32, this.tones.quiet, "right");
    const limits = record.answer.queues[0];
    if (!place.queue || !limits) return;
    const [left, right] = place.queue;
    const [top, height] = [place.data - 16, 32];
    context.fillStyle = this.tones.field;
    context.fillRect(left, top, right - left, height);
    const { packets, bytes } = moment.queue;
    const full = limits.limit_packets !== null ? packets.length / limits.limit_packets : bytes / Math.max(limits.limit_bytes ?? bytes, 1);
    if (packets.length <= BLOCKS) {
      const step = Math.min(12, (right - left - 4) / Math.max(packets.length, 1));
      packets.forEach((packet, index) => {
        context.fillStyle = this.toneOf(packet);
        context.fillRect(right - 2 - (index + 1) * step, top + 4, Math.max(step - 1.5, 1), height - 8);
      });
    } else {
      context.fillStyle = this.tones.queue;
      const width = (right - left) * Math.min(1, full);
      context.fillRect(right - Math.max(width, 4), top + 2, Math.max(width, 4), height - 4);
    }
    context.strokeStyle = this.tones.queue;
    context.lineWidth = 2;
    context.strokeRect(left, top, right - left, height);
    const share = limits.limit_packets === null && limits.limit_bytes === null ? "" : `, ${format.percent(Math.min(full, 1))} full`;
    this.text(`queue: ${packets.length}${place.width < 560 ? "" : ` packets${share}`}`, left, top + height + 16, this.tones.text);
    if (limits.rate_bps !== null && place.width >= 560) {
      this.text(format.rate(limits.rate_bps), left, top - 6, this.tones.quiet);
    }
  }

  private toneOf(packet: PacketJourney): string {
    if (packet.again) return this.tones.again;
    if (packet.flow > 0) return this.tones.other;
    return packet.len > 0 ? this.tones.data : this.tones.ack;
  }

  /** Packets on the wire; those of one spot are one mark with their number. */
  wire(moment: Moment): void {
    const { place } = this;
    const spots = new Map<string, { packet: PacketJourney; x: number; count: number }>();
    for (const { packet, part } of moment.wire) {
      const start = packet.forward && place.queue && packet.queued !== null ? place.queue[1] : place.sender;
      const x = packet.forward ? start + (place.receiver - start) * part : place.receiver - (place.receiver - place.sender) * part;
      const key = `${packet.forward} ${packet.flow} ${packet.again} ${packet.len > 0} ${Math.round(x / 5)}`;
      const spot = spots.get(key);
      if (spot) spot.count++;
      else spots.set(key, { packet, x, count: 1 });
    }
    let free = { data: -Infinity, acks: -Infinity };
    for (const { packet, x, count } of [...spots.values()].sort((a, b) => a.x - b.x)) {
      const y = packet.forward ? place.data : place.acks;
      this.packet(packet, x, y);
      const lane = packet.forward ? "data" : "acks";
      if (count > 1 && x >= free[lane]) {
        this.text(`×${count}`, x, y - 15, this.tones.text, "center");
        free = { ...free, [lane]: x + 34 };
      }
    }
  }

  private packet(packet: PacketJourney, x: number, y: number): void {
    const { context } = this;
    context.fillStyle = this.toneOf(packet);
    if (packet.len === 0) {
      context.beginPath();
      context.arc(x, y, 5, 0, 2 * Math.PI);
      context.fill();
    } else {
      context.fillRect(x - 4, y - 11, 8, 22);
      // A retransmission differs in shape too, as not everyone distinguishes its colour.
      if (packet.again) {
        context.fillStyle = this.tones.field;
        context.fillRect(x - 4, y - 2, 8, 4);
      }
    }
    if (packet.marked) {
      context.strokeStyle = this.tones.again;
      context.lineWidth = 2;
      context.strokeRect(x - 6, y - 13, 12, 26);
    }
  }

  drop(packet: PacketJourney, age: number): void {
    const { context, place } = this;
    const atQueue = packet.outcome === "dropped_by_queue" && place.queue;
    const x = atQueue ? atQueue[0] - 8 : packet.forward ? place.sender + (place.receiver - place.sender) * 0.5 : (place.sender + place.receiver) / 2;
    const y = (packet.forward ? place.data : place.acks) + 6 + age * 34;
    context.strokeStyle = this.tones.again;
    context.globalAlpha = 1 - age * 0.8;
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(x - 6, y - 6);
    context.lineTo(x + 6, y + 6);
    context.moveTo(x + 6, y - 6);
    context.lineTo(x - 6, y + 6);
    context.stroke();
    context.globalAlpha = 1;
  }
}

/** The picture in words. */
export function describe(moment: Moment): string {
  const data = moment.wire.filter(({ packet }) => packet.forward && packet.len > 0).length;
  const acks = moment.wire.filter(({ packet }) => !packet.forward).length;
  const window = moment.window;
  const sizes = window ? `window ${format.bytes(window.cwnd)}, in flight ${format.bytes(window.flight)}, ` : "";
  return `${sizes}${data} data packets and ${acks} ACKs on the wire, ${moment.queue.packets.length} packets in the queue`;
}
