// WebAssembly gives the results of the native program: on all golden captures, scenarios and digests.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { ask, startEngine } from "./engine.ts";
import { ackclock, goldenCaptures, hasNative, output, root, scenarios, xtask } from "./native.ts";
import { expect, test } from "./page.ts";

test.skip(!hasNative, "it needs the native programs: cargo build --workspace --all-features --bins; cargo build --profile full -p xtask");
// A service worker would answer for the files of the repository.
test.use({ serviceWorkers: "block" });
test.setTimeout(240_000);

test("golden captures", async ({ page }) => {
  await startEngine(page);
  const paths = goldenCaptures();
  expect(paths.length).toBeGreaterThan(60);
  let withCures = 0;
  for (const path of paths) {
    const [native, cured, answer] = await Promise.all([
      output(ackclock, "diagnose", "--json", "--no-cures", path),
      output(ackclock, "diagnose", "--json", path),
      ask(page, { op: "diagnose", files: [path], limit: 1_000_000 }, [path]),
    ]);
    expect(answer.error, path).toBeUndefined();
    expect(answer.ok?.["json"] === native, `${path} differs`).toBe(true);
    if (cured === native) continue;
    const tried = await ask(page, { op: "diagnose", files: [path], limit: 1_000_000, cures: true }, [path]);
    expect(tried.error, path).toBeUndefined();
    expect(tried.ok?.["json"] === cured, `the cures of ${path} differ`).toBe(true);
    withCures += 1;
  }
  expect(withCures).toBeGreaterThan(10);
});

test("scenarios", async ({ page }) => {
  await startEngine(page);
  const paths = scenarios();
  expect(paths.length).toBeGreaterThan(15);
  for (const path of paths) {
    const text = readFileSync(resolve(root, path), "utf8");
    const [native, answer] = await Promise.all([
      output(ackclock, "run", "--json", path).catch((error: Error & { stderr?: string }) => ({ refused: error.stderr ?? String(error) })),
      ask(page, { op: "run_report", text }),
    ]);
    // What the native program refuses, such as a file with a path only, the page refuses too.
    if (typeof native !== "string") expect(answer.ok, `${path}: ${native.refused}`).toBeUndefined();
    else expect(answer.ok?.["json"] === native, `${path} differs: ${answer.error ?? ""}`).toBe(true);
  }
});

test("digests and what-if", async ({ page }) => {
  await startEngine(page);
  const digests = await ask(page, { op: "digests" });
  expect((digests.ok?.["lines"] as string[]).join("\n")).toBe((await output(xtask, "digest")).trimEnd());
  const path = "golden/linux/j1_bufferbloat_cubic/sender.pcap.xz";
  const answer = await ask(page, { op: "what_if", file: path, flow: null, compare: ["linux-6.18/bbr"], set: [] }, [path]);
  expect(answer.ok?.["json"]).toBe(await output(ackclock, "whatif", "--json", path, "--compare", "linux-6.18/bbr"));
});
