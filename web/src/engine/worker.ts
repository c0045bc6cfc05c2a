// The engine in a worker: it streams files, reports progress, and survives panics of the engine.

import engineUrl from "@engine/ackclock_wasm.wasm?url";

import { ChunkedFile } from "./chunked_file.ts";
import { instantiate, type Instance } from "./instance.ts";
import type { WorkerMessage, WorkerRequest } from "./types.ts";

const scope = self as unknown as DedicatedWorkerGlobalScope;
const send = (message: WorkerMessage) => scope.postMessage(message);

let module: Promise<WebAssembly.Module> | undefined;
let engine: Promise<Instance> | undefined;
let files: ChunkedFile[] = [];
let panic = "";
let reportProgress = () => {};

async function load(): Promise<WebAssembly.Module> {
  // Not streamed: that needs a server which knows the type of the file.
  const response = await fetch(engineUrl);
  if (!response.ok) throw new Error(`cannot load the engine: ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

async function start(): Promise<Instance> {
  module ??= load();
  return instantiate(await module, {
    read: (file, to) => {
      try {
        return files[file]?.read(to) ?? -1;
      } catch {
        return -1;
      }
    },
    panicked: (text) => {
      panic = text;
    },
  });
}

async function handle({ id, request, files: given }: WorkerRequest): Promise<void> {
  try {
    engine ??= start();
    const ready = await engine;
    files = given.map((file) => new ChunkedFile(file, () => reportProgress()));
    const total = given.reduce((sum, file) => sum + file.size, 0);
    reportProgress = () => {
      const progress = files.reduce((sum, file) => sum + file.position, 0);
      send({ id, progress, total });
    };
    panic = "";
    const began = performance.now();
    const answer = JSON.parse(await ready.answer(JSON.stringify(request))) as object;
    send({ id, ms: performance.now() - began, ...answer } as WorkerMessage);
  } catch (error) {
    // The memory of an engine that panicked is in no defined state: the next request has a new one.
    engine = undefined;
    if (!(error instanceof WebAssembly.RuntimeError)) module = undefined;
    send({ id, error: panic || String(error), panicked: true });
  } finally {
    for (const file of files) file.close();
    files = [];
  }
}

let queue = Promise.resolve();
scope.addEventListener("message", (event: MessageEvent<WorkerRequest>) => {
  queue = queue.then(() => handle(event.data));
});
