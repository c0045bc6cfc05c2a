// Reads parts of files for the engine, beside it.

import type { ReaderRequest } from "./types.ts";

const scope = self as unknown as DedicatedWorkerGlobalScope;
const reader = new FileReaderSync();

scope.addEventListener("message", ({ data: { file, from, to } }: MessageEvent<ReaderRequest>) => {
  try {
    const part = reader.readAsArrayBuffer(file.slice(from, to));
    scope.postMessage(part, [part]);
  } catch {
    scope.postMessage(undefined);
  }
});
