import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { hasNative, largeCapture, root } from "./native.ts";
import { expect, test } from "./page.ts";

const CAPTURE = resolve(root, "golden/linux/f2_few_losses_cubic/sender.pcap.xz");

/** Drops a file on the page. */
async function drop(page: import("@playwright/test").Page, name: string, bytes: Buffer): Promise<void> {
  const transfer = await page.evaluateHandle(
    ([name, data]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(data), (one) => one.charCodeAt(0))], name));
      return transfer;
    },
    [name, bytes.toString("base64")] as const,
  );
  await page.dispatchEvent(".drop", "drop", { dataTransfer: transfer });
}

test("a dropped capture has a verdict, graphs and a what-if", async ({ page }) => {
  await page.goto("/");
  await drop(page, "transfer.pcap.xz", readFileSync(CAPTURE));
  const verdict = page.getByRole("region", { name: "Verdict" });
  await expect(verdict.getByRole("heading", { level: 2 })).toBeVisible();
  await expect(verdict.locator(".code").first()).toHaveText(/^CC\d+$/);
  await verdict.getByRole("button", { name: "Show the graphs" }).click();
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("heading", { level: 1 })).toContainText("transfer.pcap.xz");
  // Its own program has run: it draws the graphs.
  await expect(frame.locator("canvas, svg").first()).toBeVisible();
  await verdict.getByText("What would another sender have done?").click();
  await verdict.getByRole("button", { name: "Simulate" }).click();
  await expect(verdict.getByRole("region", { name: "Simulated transfers" })).toContainText("linux-6.18/bbr");
});

test("cures follow the verdict, and are in the page of graphs", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button", { name: "a receive window too small" }).click();
  const verdict = page.getByRole("region", { name: "Verdict" });
  const cures = verdict.getByRole("region", { name: "Cures" });
  await expect(cures).toContainText(/receiver: net\.ipv4\.tcp_rmem="4096 131072 6291456": 3\.27 s → 7\d\d ms/);
  await verdict.getByRole("button", { name: "Show the graphs" }).click();
  const frame = page.frameLocator("iframe");
  await expect(frame.getByText(/^Limited by the receiver's window /)).toBeVisible();
  await expect(frame.getByRole("region", { name: "Verdict" })).toContainText("with receiver: net.ipv4.tcp_rmem");
  // Another file ends what is tried for the last one.
  await page.getByRole("button", { name: "a qlog of QUIC" }).click();
  await expect(verdict).toContainText("upload.sqlog");
  await expect(cures).toHaveCount(0);
});

test("what was shown goes when another file is chosen", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button", { name: "an outage and its timeouts" }).click();
  const verdict = page.getByRole("region", { name: "Verdict" });
  await expect(verdict).toBeVisible();
  let goOn = () => {};
  const held = new Promise<void>((resolve) => (goOn = resolve));
  await page.route("**/*.sqlog", async (route) => {
    await held;
    await route.continue().catch(() => undefined);
  });
  await page.getByRole("button", { name: "a qlog of QUIC" }).click();
  await expect(verdict).toHaveCount(0);
  // The last one asked for is shown, whatever comes first.
  await page.getByRole("button", { name: "a receive window too small" }).click();
  await expect(verdict).toContainText("CC401");
  goOn();
  // Time for what was held to arrive; a request that was given up never does.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 500)));
  await expect(verdict).toContainText("CC401");
});

test("the moment of a finding is one click away", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button", { name: "an outage and its timeouts" }).click();
  await page.getByRole("button", { name: /See the ACK clock at 1\.492/ }).click();
  await expect(page.getByRole("heading", { name: "The ACK clock" })).toBeVisible();
  // In the simulation with the fitted path the outage begins a little later.
  await expect(page.getByRole("region", { name: "Moments" })).toContainText("CC204");
  const at = Number(await page.locator("[data-at]").getAttribute("data-at"));
  expect(at / 1e9).toBeGreaterThan(1.45);
  expect(at / 1e9).toBeLessThan(1.65);
});

test("a damaged capture is diagnosed as far as it goes, another is refused with the reason", async ({ page }) => {
  await page.goto("/");
  const damaged = readFileSync(resolve(root, "docs/samples/damaged.bblog.pcapng"));
  await drop(page, "damaged.pcapng", damaged);
  await expect(page.getByText("The file is damaged.")).toBeVisible();
  await drop(page, "noise.bin", Buffer.from("this is no capture at all, but some text"));
  await expect(page.getByRole("alert")).toContainText("expected a capture or a log");
  await drop(page, "cut.pcap.xz", readFileSync(CAPTURE).subarray(0, 30_000));
  await expect(page.getByRole("alert")).toContainText("the file ends within the compressed data");
});

test("names with markup or formulas are inert", async ({ page }) => {
  await page.goto("/");
  const name = `<img src=x onerror="window.hit=1">=cmd|'!A1.sqlog`;
  await drop(page, name, readFileSync(resolve(root, "docs/samples/upload.sqlog")));
  const verdict = page.getByRole("region", { name: "Verdict" });
  await expect(verdict.getByRole("paragraph").filter({ hasText: "<img src=x" }).first()).toBeVisible();
  await verdict.getByRole("button", { name: "Show the graphs" }).click();
  await expect(page.frameLocator("iframe").getByRole("heading", { level: 1 })).toContainText("<img src=x");
  expect(await page.locator("img[src=x]").count()).toBe(0);
  expect(await page.evaluate(() => "hit" in window)).toBe(false);
});

test("a panic of the engine is a message, and the page goes on", async ({ page }) => {
  await page.addInitScript(() => {
    const post = Worker.prototype.postMessage as (this: Worker, message: unknown) => void;
    Worker.prototype.postMessage = function (this: Worker, message: { request?: { op: string; files?: string[] } }) {
      const wanted = message.request?.files?.[0] === "panic.pcap";
      post.call(this, wanted ? { ...message, request: { op: "panic" } } : message);
    } as typeof Worker.prototype.postMessage;
  });
  await page.goto("/");
  await drop(page, "panic.pcap", Buffer.from("any"));
  await expect(page.getByRole("alert")).toContainText("The engine failed, which is a bug");
  await expect(page.getByRole("alert")).toContainText("this panic was asked for");
  await drop(page, "transfer.pcap.xz", readFileSync(CAPTURE));
  await expect(page.getByRole("region", { name: "Verdict" })).toBeVisible();
});

test("500 MB are streamed with progress, the page stays alive, and can be cancelled", async ({ page }) => {
  test.skip(!hasNative, "the capture is made by the native program");
  test.setTimeout(180_000);
  const path = await largeCapture(500);
  await page.goto("/");
  const input = page.getByLabel("Captures or qlogs");
  await input.setInputFiles(path);
  await expect(page.getByText(/^read .* of 4\d\d MB/)).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByRole("alert")).toHaveText("Cancelled.");
  // Frames go on while the engine works.
  await page.evaluate(() => {
    let last = performance.now();
    const state = { longest: 0 };
    Object.assign(window, { frames: state });
    const frame = (now: number) => {
      state.longest = Math.max(state.longest, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await input.setInputFiles(path);
  await expect(page.getByRole("region", { name: "Verdict" })).toBeVisible({ timeout: 150_000 });
  const longest = await page.evaluate(() => (window as unknown as { frames: { longest: number } }).frames.longest);
  expect(longest).toBeLessThan(1_000);
  await expect(page.locator(".code").first()).toHaveText(/^CC\d+$/);
});
