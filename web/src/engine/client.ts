// The page's side of the engine: calls with progress and cancellation.

import type { Answers, Request, ScenarioError, WorkerMessage, WorkerRequest } from "./types.ts";

export class EngineError extends Error {
  constructor(
    message: string,
    /** Errors in a scenario, with their positions. */
    readonly errors: ScenarioError[] = [],
    /** The engine failed: a bug, whatever the input was. */
    readonly panicked = false,
  ) {
    super(message);
  }
}

/** A call was cancelled. */
export class Cancelled extends Error {}

type Progress = (done: number, total: number) => void;

interface Call {
  resolve(answer: unknown): void;
  reject(error: Error): void;
  progress: Progress | undefined;
}

export class Engine {
  private worker: Worker | undefined;
  private calls = new Map<number, Call>();
  private next = 0;
  /** Milliseconds that the last answered call took inside the engine. */
  lastMs = 0;

  call<R extends Request>(request: R, files: File[] = [], progress?: Progress): Promise<Answers[R["op"]]> {
    const worker = (this.worker ??= this.start());
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve: resolve as (answer: unknown) => void, reject, progress });
      worker.postMessage({ id, request, files } satisfies WorkerRequest);
    });
  }

  /** Ends whatever runs; the next call starts a new worker. */
  cancel(): void {
    this.worker?.terminate();
    this.fail(new Cancelled("cancelled"));
  }

  get isBusy(): boolean {
    return this.calls.size > 0;
  }

  private fail(error: Error): void {
    this.worker = undefined;
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) call.reject(error);
  }

  private start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<WorkerMessage>) => this.receive(event.data));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      worker.terminate();
      this.fail(new EngineError(`the engine cannot run: ${event.message ?? "its worker failed"}`, [], true));
    });
    return worker;
  }

  private receive(message: WorkerMessage): void {
    const call = this.calls.get(message.id);
    if (!call) return;
    if ("progress" in message) {
      call.progress?.(message.progress, message.total);
      return;
    }
    this.calls.delete(message.id);
    if ("ok" in message) {
      this.lastMs = message.ms;
      call.resolve(message.ok);
    } else if ("errors" in message) {
      call.reject(new EngineError(message.errors[0]?.message ?? "errors in the scenario", message.errors));
    } else {
      const text = message.panicked ? `The engine failed, which is a bug in Ackclock: ${message.error}` : message.error;
      call.reject(new EngineError(text, [], message.panicked));
    }
  }
}

/** Reads captures, which may take seconds. */
export const captures = new Engine();
/** Tries cures, which takes longer: the page goes on meanwhile. */
export const trials = new Engine();
/** Runs scenarios, while sliders move. */
export const runs = new Engine();
