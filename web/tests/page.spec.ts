// The page as a whole: offline, by keyboard alone, contrast and labels, and how it looks.

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";

import { root } from "./native.ts";
import { expect, test } from "./page.ts";

const screens = resolve(root, process.env["CARGO_TARGET_DIR"] ?? "target", "playground-screens");

async function accessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).exclude("iframe").analyze();
  const texts = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
  expect(texts).toEqual([]);
}

for (const width of [1400, 400]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`contrast, labels and looks at ${width} px, ${colorScheme}`, async ({ page }) => {
      mkdirSync(screens, { recursive: true });
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      const look = async (name: string) => {
        await accessible(page);
        await page.screenshot({ path: resolve(screens, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        // Nothing is wider than the screen.
        expect(await page.evaluate(() => document.documentElement.scrollWidth), name).toBeLessThanOrEqual(width);
      };
      await page.goto("/");
      await page.getByRole("button", { name: "an outage and its timeouts" }).click();
      await expect(page.getByRole("region", { name: "Verdict" })).toBeVisible();
      await page.getByText("What would another sender have done?").click();
      await page.getByRole("button", { name: "Show the graphs" }).click();
      await expect(page.locator("iframe")).toBeVisible();
      await look("verdict");
      await page.getByRole("button", { name: "a receive window too small" }).click();
      await expect(page.getByRole("region", { name: "Cures" })).toBeVisible();
      await page.getByRole("button", { name: "Show the graphs" }).click();
      await expect(page.frameLocator("iframe").getByRole("region", { name: "Verdict" })).toBeVisible();
      await look("cures");
      await page.getByRole("link", { name: "Try a scenario" }).click();
      await expect(page.getByRole("img", { name: /^Goodput: / })).toBeVisible();
      await look("scenario");
      await page.getByRole("button", { name: "Watch its ACK clock" }).click();
      await expect(page.getByRole("region", { name: "Moments" })).toContainText("CC101");
      await page.getByRole("slider", { name: "Instant of the run" }).fill("1.25");
      await expect(page.getByRole("img", { name: /^The path at 1\.2/ })).toBeVisible();
      await look("clock");
    });
  }
}

test("it works offline", async ({ page, context, faults }) => {
  await page.goto("/");
  await page.evaluate(() => navigator.serviceWorker.ready);
  // The first load of a service worker's page is not its own.
  await page.reload();
  await context.setOffline(true);
  await page.reload();
  await page.getByRole("button", { name: "a receive window too small" }).click();
  await expect(page.getByRole("region", { name: "Verdict" })).toContainText("CC401");
  await page.getByRole("button", { name: "Show the graphs" }).click();
  await expect(page.frameLocator("iframe").getByRole("heading", { level: 1 })).toBeVisible();
  await page.getByRole("link", { name: "Try a scenario" }).click();
  await expect(page.getByLabel("Result")).toContainText("goodput");
  for (const [name, holder] of [["in this page", "## preact"], ["in the engine", "The Rust Project Developers"]] as const) {
    await page.goto("/");
    await page.getByRole("link", { name }).click();
    await expect(page.locator("body")).toContainText(holder);
  }
  // The browser looks for the icon of a text.
  const isOfIcon = (fault: string) => fault === "Failed to load resource: net::ERR_FAILED";
  expect(faults.every(isOfIcon), faults.join("\n")).toBe(true);
  faults.length = 0;
});

test("the keyboard alone suffices", async ({ page }) => {
  await page.goto("/");
  /** Presses Tab until the focus is on what has this name. */
  const tabTo = async (name: RegExp) => {
    for (let count = 0; count < 80; count++) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate(() => {
        const element = document.activeElement;
        const inner = element?.shadowRoot?.activeElement ?? element;
        return inner?.getAttribute("aria-label") ?? inner?.closest("label")?.textContent ?? inner?.textContent ?? "";
      });
      if (name.test(focused)) return;
    }
    throw new Error(`Tab does not reach ${name}`);
  };
  await tabTo(/^a receive window too small/);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("region", { name: "Verdict" })).toContainText("CC401");
  await tabTo(/^See the ACK clock/);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "The ACK clock" })).toBeVisible();
  await page.goto("/#scenario");
  await page.reload();
  await expect(page.getByLabel("Result")).toContainText("goodput");
  await tabTo(/^Delay, each way/);
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByRole("textbox", { name: "Scenario" })).not.toContainText('delay = "50ms"');
  await tabTo(/^Scenario$/);
  // Tab leaves the editor again.
  await tabTo(/^Watch its ACK clock/);
  await page.keyboard.press("Enter");
  await tabTo(/^The path at/);
  await expect(page.getByRole("button", { name: "Play" })).toBeEnabled();
  const at = page.locator("[data-at]");
  const before = await at.getAttribute("data-at");
  await page.keyboard.press("ArrowRight");
  await expect(at).not.toHaveAttribute("data-at", before ?? "");
  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
  await page.keyboard.press("Space");
  await expect(page.getByRole("button", { name: "Play" })).toBeVisible();
});
