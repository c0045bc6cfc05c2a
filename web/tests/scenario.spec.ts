import type { Page } from "@playwright/test";

import { expect, test } from "./page.ts";

/** Makes the editor so high that all its lines are in the document: it draws only those that are seen. */
async function showAll(page: Page): Promise<void> {
  await page.setViewportSize({ width: 1400, height: 4600 });
  await page.locator(".editor").evaluate((element) => {
    element.style.height = "4000px";
  });
}

test.beforeEach(async ({ page }) => {
  await page.goto("/#scenario");
  await expect(page.getByRole("img", { name: /^Window and flight: / })).toBeVisible();
});

test("an error is shown at its line, and keys are completed", async ({ page }) => {
  const editor = page.getByRole("textbox", { name: "Scenario" });
  await editor.focus();
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.insertText("seeed = 2\n");
  const errors = page.getByRole("status", { name: "Errors of the scenario" });
  await expect(errors).toContainText("line 1, column 1");
  await expect(errors).toContainText("seeed");
  await expect(page.locator(".cm-lint-marker-error")).toBeVisible();
  await errors.getByRole("button", { name: "line 1, column 1" }).click();
  await expect(editor).toBeFocused();
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Delete");
  await expect(errors).toBeEmpty();
  // Completion knows the table that the cursor is in.
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.type("dur");
  await expect(page.getByRole("option", { name: /^duration/ })).toBeVisible();
  await page.keyboard.press("Escape");
  for (let count = 0; count < 3; count++) await page.keyboard.press("Backspace");
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.insertText('\n[[flow]]\nname = "second"\nfrom = "sender"\nto = "sink"\n');
  await page.keyboard.type("bu");
  await expect(page.getByRole("option", { name: /^bulk/ })).toBeVisible();
  // The editor takes no key for an answer to a list that has just appeared.
  await page.waitForTimeout(200);
  await page.keyboard.press("Enter");
  await page.keyboard.insertText('"1MB"');
  await expect(page.getByLabel("Result")).toContainText("second");
});

test("plots follow a dragged slider within 100 ms", async ({ page }) => {
  await showAll(page);
  const slider = page.getByRole("slider", { name: "Delay, each way" });
  const box = await slider.boundingBox();
  if (!box) throw new Error("no slider");
  const plot = page.getByRole("img", { name: /^Round-trip time: / });
  const before = await plot.getAttribute("aria-label");
  const middle = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.78, middle);
  await page.mouse.down();
  for (let step = 0; step <= 20; step++) {
    await page.mouse.move(box.x + box.width * (0.78 - step * 0.01), middle);
    await page.waitForTimeout(60);
  }
  await page.mouse.up();
  await expect(plot).not.toHaveAttribute("aria-label", before ?? "");
  const editor = page.getByRole("textbox", { name: "Scenario" });
  await expect(editor).not.toContainText('delay = "50ms"');
  const times = await page.evaluate(() => performance.getEntriesByName("slider").map((entry) => entry.duration));
  expect(times.length).toBeGreaterThan(5);
  const sorted = times.sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Infinity;
  test.info().annotations.push({ type: "redraw", description: `median ${median.toFixed(0)} ms, longest ${sorted.at(-1)?.toFixed(0)} ms` });
  console.log(`redraw after a slider's step: median ${median.toFixed(0)} ms, longest ${sorted.at(-1)?.toFixed(0)} ms, ${times.length} steps`);
  expect(median).toBeLessThan(100);
});

test("loss, rate, buffer and controller change the text", async ({ page }) => {
  await showAll(page);
  const editor = page.getByRole("textbox", { name: "Scenario" });
  await page.getByRole("slider", { name: "Loss" }).fill("100");
  await expect(editor).toContainText(/loss = "0\.\d+%"/);
  await page.getByRole("slider", { name: "Rate of the link" }).fill("60");
  await expect(editor).toContainText(/rate = "[\d.]+Mbit\/s"/);
  await page.getByRole("slider", { name: "Buffer" }).fill("40");
  await expect(editor).toContainText(/buffer = "[\d.]+kB"/);
  await page.getByRole("combobox", { name: "Controller" }).selectOption("cubic");
  await expect(editor).toContainText('cc = "cubic"');
  // The comments of the author are still there.
  await expect(editor).toContainText("The transfer of the mail");
});

test("a link holds the whole scenario", async ({ page, context }) => {
  await showAll(page);
  await page.getByRole("slider", { name: "Loss" }).fill("100");
  const editor = page.getByRole("textbox", { name: "Scenario" });
  await expect(editor).toContainText("loss");
  await page.getByRole("button", { name: "Link to this scenario" }).click();
  const link = await page.getByLabel(/The link, which holds/).inputValue();
  const other = await context.newPage();
  await other.goto(link);
  await showAll(other);
  await expect(other.getByRole("textbox", { name: "Scenario" })).toContainText(/loss = "0\.\d+%"/);
  await other.goto("/#scenario&s=damaged!");
  await other.reload();
  await expect(other.getByRole("alert")).toContainText("The link is damaged");
});

test("all four stories run, and say what limits them", async ({ page }) => {
  for (const [name, code] of [["A slow start", "CC101"], ["Packets that arrive", "CC"], ["A formula", "CC811"], ["A clock too coarse", "CC"]] as const) {
    await page.getByRole("group", { name: "Stories to begin with" }).getByRole("button", { name }).click();
    await expect(page.getByLabel("Result")).toContainText("goodput");
    await page.getByRole("button", { name: "What limits it?" }).click();
    await expect(page.getByRole("region", { name: "Findings" })).toContainText(code, { timeout: 40_000 });
  }
});

test("the page of a run is shown in a frame without rights", async ({ page }) => {
  await page.getByRole("button", { name: "Full page of the run" }).click();
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("heading", { level: 1 })).toContainText("starved by LRO");
  await expect(page.locator("iframe")).toHaveAttribute("sandbox", "allow-scripts");
});
