// Speed in the page beside that of the native program; `make playground-bench` runs it.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { ask, startEngine } from "./engine.ts";
import { largeCapture, output, root, xtask } from "./native.ts";
import { expect, test } from "./page.ts";
import { dragDelay } from "./slider.ts";

const release = process.env["ACKCLOCK_RELEASE"];
test.skip(!release, "make playground-bench runs it");
test.use({ serviceWorkers: "block" });
test.setTimeout(600_000);

/** Runs of what takes some hundredths of a second. */
const SHORT = 20;

/** The shortest of some runs, in ms. */
async function shortest(run: () => Promise<number>, runs = 3): Promise<number> {
  let least = Infinity;
  for (let count = 0; count < runs; count++) least = Math.min(least, await run());
  return least;
}

async function native(...args: string[]): Promise<number> {
  const began = performance.now();
  await output(release ?? "", ...args);
  return performance.now() - began;
}

const row = (what: string, page: number, native: number) =>
  console.log(`${what.padEnd(44)} ${(page / 1e3).toFixed(2).padStart(7)} s ${(native / 1e3).toFixed(2).padStart(7)} s ${((native / page) * 100).toFixed(0).padStart(4)} %`);

test("runs of scenarios", async ({ page }) => {
  await startEngine(page);
  console.log(`${"".padEnd(44)}   page      native  speed`);
  // A process takes time to start, which the engine does not.
  const start = await shortest(() => native("scenario", "check", "scenarios/slow-start-lro.toml"));
  for (const path of ["scenarios/slow-start-ramp.toml", "scenarios/cubic-hz.toml", "scenarios/fairness-cubic-newreno.toml", "scenarios/fairness-bbr-cubic.toml"]) {
    const text = readFileSync(resolve(root, path), "utf8");
    const inPage = await shortest(async () => (await ask(page, { op: "run_report", text })).ms ?? Infinity);
    row(path, inPage, (await shortest(() => native("run", "--json", path))) - start);
  }
});

test("compressed captures, and runs against link-time optimisation", async ({ page }) => {
  await startEngine(page);
  const start = await shortest(() => native("scenario", "check", "scenarios/slow-start-lro.toml"), SHORT);
  for (const path of ["golden/linux/a2_slowstart_reno/sender.pcap.xz", "golden/linux/k1_two_flows/sender.pcap.xz"]) {
    const request = { op: "diagnose", files: [path], limit: 10 };
    const inPage = await shortest(async () => (await ask(page, request, [path])).ms ?? Infinity, SHORT);
    row(path, inPage, (await shortest(() => native("diagnose", "--json", "--no-cures", path), SHORT)) - start);
  }
  const inPage = await shortest(async () => (await ask(page, { op: "digests" })).ms ?? Infinity);
  const digests = await shortest(async () => {
    const began = performance.now();
    await output(xtask, "digest");
    return performance.now() - began;
  });
  row("cargo xtask digest, profile full", inPage, digests);
});

test("a slider of the slow-start story", async ({ page }) => {
  await page.goto("/#scenario");
  await expect(page.getByRole("img", { name: /^Window and flight: / })).toBeVisible();
  const times = await dragDelay(page);
  const median = times[Math.floor(times.length / 2)] ?? Infinity;
  console.log(`plots drawn after a slider's step: median ${median.toFixed(0)} ms, longest ${times.at(-1)?.toFixed(0)} ms`);
  expect(median).toBeLessThan(100);
});

for (const megabytes of [500, 1000]) {
  test(`a capture of ${megabytes} MB`, async ({ page }) => {
    const path = await largeCapture(megabytes);
    await page.goto("/");
    const read = async () => {
      const began = performance.now();
      await page.getByLabel("Captures or qlogs").setInputFiles(path);
      await expect(page.getByRole("region", { name: "Verdict" })).toBeVisible({ timeout: 120_000 });
      return performance.now() - began;
    };
    const inPage = await shortest(read);
    row(`a capture of ${megabytes} MB, to the verdict shown`, inPage, await shortest(() => native("diagnose", "--json", "--no-cures", path)));
    const memory = await page.evaluate(async () => {
      const measure = (performance as unknown as { memory?: { usedJSHeapSize: number } }).memory;
      return measure?.usedJSHeapSize ?? 0;
    });
    console.log(`the page's heap after it: ${(memory / 1e6).toFixed(0)} MB`);
    if (megabytes === 1000) expect(inPage).toBeLessThan(15_000);
  });
}
