// The engine's worker, driven from a test in the page itself.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import type { Page } from "@playwright/test";

import { root } from "./native.ts";

export interface EngineAnswer {
  ok?: Record<string, unknown>;
  error?: string;
  errors?: unknown[];
  panicked?: boolean;
  ms?: number;
}

/** Starts a worker of the page's own build; files of the repository are below `/repository/`. */
export async function startEngine(page: Page): Promise<void> {
  await page.route("**/repository/**", (route) => {
    const path = decodeURIComponent(new URL(route.request().url()).pathname.replace("/repository/", ""));
    return route.fulfill({ body: readFileSync(resolve(root, path)) });
  });
  await page.goto("/");
  // The page loads its worker with the first request.
  const [request] = await Promise.all([
    page.waitForRequest(/worker-.*\.js$/),
    page.getByRole("link", { name: "Try a scenario" }).click(),
  ]);
  await page.evaluate((address) => {
    const worker = new Worker(address, { type: "module" });
    const waiting: ((answer: unknown) => void)[] = [];
    worker.addEventListener("message", ({ data }) => {
      if (!("progress" in data)) waiting.shift()?.(data);
    });
    const call = async (request: object, paths: string[]) => {
      const files = await Promise.all(paths.map(async (path) => new File([await (await fetch(`/repository/${path}`)).arrayBuffer()], path)));
      return new Promise((done) => {
        waiting.push(done);
        worker.postMessage({ id: 0, request, files });
      });
    };
    Object.assign(window, { engineCall: call });
  }, request.url());
}

export function ask(page: Page, request: object, paths: string[] = []): Promise<EngineAnswer> {
  return page.evaluate(
    ([request, paths]) => (window as unknown as { engineCall(request: object, paths: string[]): Promise<EngineAnswer> }).engineCall(request, paths),
    [request, paths] as const,
  );
}
