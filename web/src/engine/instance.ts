// One instance of the engine: requests and answers are JSON.
// It is used by the worker of the page, and by Node while the page is built.

/** What the engine needs of its host. */
export interface Host {
  /**
   * Fills `to` with the next bytes of file number `file`; their number, 0 at the end, -1 if it fails.
   * A promise of it only if `canSuspend`.
   */
  read(file: number, to: Uint8Array): number | Promise<number>;
  /** The message of a panic, after which the instance is unusable. */
  panicked(text: string): void;
}

interface Exports {
  memory: WebAssembly.Memory;
  request_buffer(length: number): number;
  answer_request(): number;
  answer_ptr(): number;
  free_answer(): void;
}

export interface Instance {
  /** Answers a request; fails if the engine panics. One request at a time. */
  answer(request: string): Promise<string>;
}

/** Functions that wait for promises inside WebAssembly, where there are any. */
interface Suspension {
  Suspending?: new (wait: (...args: number[]) => number | Promise<number>) => WebAssembly.ImportValue;
  promising?(run: () => number): () => Promise<number>;
}
const { Suspending, promising } = WebAssembly as Suspension;

/** Whether the engine can wait for a promise of its host. */
export const canSuspend = Suspending !== undefined && promising !== undefined;

export async function instantiate(module: WebAssembly.Module, host: Host): Promise<Instance> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const bytes = (at: number, length: number) => new Uint8Array(exports.memory.buffer, at >>> 0, length >>> 0);
  const read = (file = 0, at = 0, length = 0) => host.read(file, bytes(at, length));
  const instance = await WebAssembly.instantiate(module, {
    ackclock: {
      read: canSuspend && Suspending ? new Suspending(read) : read,
      panicked: (at: number, length: number) => host.panicked(decoder.decode(bytes(at, length))),
    },
  });
  const exports = instance.exports as unknown as Exports;
  const answer = promising?.(exports.answer_request) ?? exports.answer_request;
  return {
    async answer(request) {
      const asked = encoder.encode(request);
      // Memory may grow while the buffer is made: its view is taken afterwards.
      const at = exports.request_buffer(asked.length);
      bytes(at, asked.length).set(asked);
      const length = await answer();
      const text = decoder.decode(bytes(exports.answer_ptr(), length));
      exports.free_answer();
      return text;
    },
  };
}
