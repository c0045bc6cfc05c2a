// Requests to the engine and its answers: bindings/wasm/src/requests.rs.

export type ControlName = "delay" | "rate" | "loss" | "buffer" | "controller";

/** A value of the scenario that a slider changes. */
export interface Control {
  name: ControlName;
  text: string;
  /** In seconds, bit/s, a fraction, bytes. */
  value: number | null;
}

export type ControlChange = [ControlName, string];

/** An error in a scenario; line and column count from 1, in characters. */
export interface ScenarioError {
  file: string;
  line: number;
  column: number;
  width: number;
  source_line: string;
  message: string;
  found: string | null;
  expected: string | null;
  hint: string | null;
}

export interface FlowSeries {
  name: string;
  time_s: number[];
  columns: Record<string, (number | null)[]>;
}

export interface QueueSeries {
  rate_bps: number | null;
  limit_bytes: number | null;
  limit_packets: number | null;
  time_s: number[];
  bytes: number[];
  dropped_s: number[];
}

export interface FlowReport {
  name: string;
  profile: string;
  cc: string;
  bytes: number;
  finished: boolean;
  duration_s: number;
  goodput_bps: number;
  retransmitted_segments: number;
  fast_recoveries: number;
  rtos: number;
  spurious_recoveries: number;
  max_cwnd_bytes: number;
  mss_bytes: number;
  min_rtt_s: number | null;
}

export interface RunAnswer {
  /** The text with the changes of the controls. */
  text: string;
  /** The controls of the path that was asked for. */
  controls: Control[];
  /** Labels of all paths. */
  paths: string[];
  report: { title: string; ended_s: number; segments_simulated: number; flows: FlowReport[] };
  table: string;
  flows: FlowSeries[];
  /** Name of the first flow on the path that was asked for, whose queue this is. */
  shown: string | null;
  queue: QueueSeries | null;
}

export interface HostName {
  name: string;
  profile: string;
  cc: string;
}

export interface QueueLimits {
  rate_bps: number | null;
  limit_bytes: number | null;
  limit_packets: number | null;
}

export type PacketOutcome = "travels" | "arrived" | "dropped_by_queue" | "lost";

/** A packet on its way; instants in ns. */
export interface PacketJourney {
  flow: number;
  forward: boolean;
  len: number;
  again: boolean;
  sent: number;
  queued: number | null;
  dequeued: number | null;
  end: number | null;
  outcome: PacketOutcome;
  marked: boolean;
}

export interface WindowSample {
  at: number;
  flow: number;
  cwnd: number;
  flight: number;
  ssthresh: number | null;
  mss: number;
}

export interface PacketsAnswer {
  from_ns: number;
  until_ns: number;
  is_last: boolean;
  sender: HostName;
  receiver: HostName;
  flows: string[];
  queues: [QueueLimits | null, QueueLimits | null];
  packets: PacketJourney[];
  windows: WindowSample[];
  remarks: { at: number; text: string }[];
}

export interface Finding {
  code: string;
  severity: "note" | "warning" | "error";
  confidence: string;
  title: string;
  cost_s: number;
  interval_s: [number, number] | null;
  frames?: [number, number];
  /** What it is more exactly, of codes that cover several causes. */
  kind?: string;
  evidence: Record<string, unknown>;
  cause: string;
  help: Record<string, string>;
  /** The part of it that concerns the systems of the hosts. */
  applicable_help: Record<string, string>;
  unseen?: string;
}

/** A cure of the primary finding, tried in a simulation of the transfer. Times that cannot be predicted are absent. */
export interface TriedCure {
  finding: string;
  set: string;
  what: string;
  recorded_s?: number;
  duration_s?: number;
  low_s?: number;
  high_s?: number;
  validity: "figure" | "range" | "none";
  why: string;
}

/** The options of a SYN. */
export interface SynOptions {
  mss_bytes: number | null;
  window_scale: number | null;
  sack: boolean;
  timestamps: boolean;
  mptcp: boolean;
  fast_open_cookie_bytes: number | null;
  data_bytes: number;
}

/** What the SYNs agree on; null where one is not in the capture. */
export interface Negotiated {
  client: SynOptions | null;
  server: SynOptions | null;
  window_scaling: boolean | null;
  sack: boolean | null;
  timestamps: boolean | null;
  ecn: 'none' | 'classic' | 'accurate' | null;
  mptcp: boolean | null;
}

export interface Connection {
  id: number;
  client?: string;
  server?: string;
  sender?: string;
  bytes?: number;
  duration_s?: number;
  goodput_bps?: number;
  packets?: number;
  retransmitted_packets?: number;
  base_rtt_s?: number | null;
  negotiated?: Negotiated;
  time_budget?: Record<string, number>;
  primary: string | null;
  findings: Finding[];
  /** Absent unless some were tried. */
  cures?: TriedCure[];
}

/** What the counters of a host show (nstat), of all its connections. */
export interface HostCounters {
  segments_sent: number;
  retransmitted: number;
  spurious: number;
  limits: {
    kind: string;
    code: string | null;
    title: string;
    help: string;
    evidence: Record<string, number>;
  }[];
}

/** The JSON of `ackclock diagnose --json` for one file. */
export interface FileDiagnosis {
  file: string;
  frames: number;
  problems: string[];
  connections?: Connection[];
  quic?: Connection[];
  /** Absent without counters. */
  host?: HostCounters;
}

export interface TransferResult {
  bytes: number;
  time_s: number;
  goodput_bps: number;
}

/** The JSON of `ackclock whatif --json`. */
export interface WhatIf {
  fitted: { what: string; why: string }[];
  recorded: TransferResult;
  senders: { sender: string; told_by_windows: boolean; course: TransferResult; misfit: number }[];
  licensed: boolean;
  alternatives: { what: string; runs: number; course: TransferResult; spread_s: [number, number]; time_ratio: number }[];
}

export type Request =
  | { op: "diagnose"; files: string[]; limit: number; cures?: boolean }
  | { op: "diagnosis_page" }
  | { op: "what_if"; file: string; flow: number | null; compare: string[]; set: string[] }
  | { op: "scenario_of"; file: string; flow: number | null }
  | { op: "check"; text: string }
  | { op: "schema" }
  | { op: "run"; text: string; controls: ControlChange[]; path: number; points: number }
  | { op: "run_page"; text: string }
  | { op: "packets"; text: string; from_ns: number; limit: number }
  | { op: "findings"; text: string }
  | { op: "run_report"; text: string }
  | { op: "digests" }
  | { op: "panic" };

/** The answer to each request. */
export interface Answers {
  diagnose: { json: string; text: string };
  diagnosis_page: { html: string };
  what_if: { json: string; text: string };
  scenario_of: { text: string };
  check: { sha256: string; title: string; controls: Control[] };
  schema: { schema: string };
  run: RunAnswer;
  run_page: { html: string };
  packets: PacketsAnswer;
  findings: { json: string; whole: boolean };
  run_report: { json: string; digest: string; events: number };
  digests: { lines: string[] };
  panic: never;
}

/** From the page to the worker. */
export interface WorkerRequest {
  id: number;
  request: Request;
  files: File[];
}

/** From the worker to the page. */
export type WorkerMessage =
  | { id: number; progress: number; total: number }
  | { id: number; ok: unknown; ms: number }
  | { id: number; error: string; panicked?: boolean }
  | { id: number; errors: ScenarioError[] };

/** From the engine's worker to those that read files for it. */
export interface ReaderRequest {
  file: File;
  from: number;
  to: number;
}
