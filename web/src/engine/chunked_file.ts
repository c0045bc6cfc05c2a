// A file that is read chunk by chunk, so that one of any size needs no more memory.

import { canSuspend } from "./instance.ts";
import type { ReaderRequest } from "./types.ts";

/** Bytes that are read at a time: with fewer, the calls of the browser take longer than the reading. */
const CHUNK = 16 << 20;
/** Workers that read the next chunks of a large file while the engine takes one. */
const READERS = 4;

export class ChunkedFile {
  private chunk = new Uint8Array();
  private at = 0;
  /** Bytes given to the engine, or about to be. */
  position = 0;
  /** Where the next chunk to ask for begins. */
  private asked = 0;
  private readonly readers: Worker[] = [];
  private readonly awaited: Promise<ArrayBuffer | undefined>[] = [];

  constructor(
    private readonly file: File,
    private readonly onChunk: () => void,
  ) {}

  /** Fills `to` with the next bytes; their number, 0 at the end. A promise of it where the engine can wait. */
  read(to: Uint8Array): number | Promise<number> {
    if (this.at < this.chunk.length) return this.take(to);
    if (this.position === this.file.size) {
      this.close();
      return 0;
    }
    if (this.file.size <= CHUNK || !canSuspend) {
      const part = this.file.slice(this.position, this.position + CHUNK);
      return this.begin(new FileReaderSync().readAsArrayBuffer(part), to);
    }
    this.ask();
    return this.awaited.shift()?.then((part) => (part ? this.begin(part, to) : -1)) ?? -1;
  }

  /** Ends the workers. */
  close(): void {
    for (const reader of this.readers) reader.terminate();
    this.readers.length = 0;
  }

  /** Asks for chunks until each worker has one to read; each is in its turn. */
  private ask(): void {
    while (this.awaited.length < READERS && this.asked < this.file.size) {
      const reader =
        this.readers.length < READERS
          ? new Worker(new URL("./reader.ts", import.meta.url), { type: "module" })
          : this.readers.shift();
      if (!reader) return;
      this.readers.push(reader);
      const to = Math.min(this.asked + CHUNK, this.file.size);
      this.awaited.push(
        new Promise((resolve) => {
          reader.onmessage = ({ data }: MessageEvent<ArrayBuffer | undefined>) => resolve(data);
          reader.onerror = () => resolve(undefined);
        }),
      );
      reader.postMessage({ file: this.file, from: this.asked, to } satisfies ReaderRequest);
      this.asked = to;
    }
  }

  private begin(part: ArrayBuffer, to: Uint8Array): number {
    this.chunk = new Uint8Array(part);
    this.at = 0;
    this.position += part.byteLength;
    if (canSuspend && this.file.size > CHUNK) this.ask();
    this.onChunk();
    return this.take(to);
  }

  private take(to: Uint8Array): number {
    const part = this.chunk.subarray(this.at, this.at + to.length);
    to.set(part);
    this.at += part.length;
    return part.length;
  }
}
