// One instance of the engine: requests and answers are JSON.
// It is used by the worker of the page, and by Node while the page is built.

/** What the engine needs of its host. */
export interface Host {
  /** Fills `to` with the next bytes of file number `file`; their number, 0 at the end, -1 if it fails. */
  read(file: number, to: Uint8Array): number;
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
  /** Answers a request; throws if the engine panics. */
  answer(request: string): string;
}

export async function instantiate(module: WebAssembly.Module, host: Host): Promise<Instance> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const bytes = (at: number, length: number) => new Uint8Array(exports.memory.buffer, at >>> 0, length >>> 0);
  const instance = await WebAssembly.instantiate(module, {
    ackclock: {
      read: (file: number, at: number, length: number) => host.read(file, bytes(at, length)),
      panicked: (at: number, length: number) => host.panicked(decoder.decode(bytes(at, length))),
    },
  });
  const exports = instance.exports as unknown as Exports;
  return {
    answer(request) {
      const text = encoder.encode(request);
      // Memory may grow while the buffer is made: its view is taken afterwards.
      const at = exports.request_buffer(text.length);
      bytes(at, text.length).set(text);
      const length = exports.answer_request();
      const answer = decoder.decode(bytes(exports.answer_ptr(), length));
      exports.free_answer();
      return answer;
    },
  };
}
