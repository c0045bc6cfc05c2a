import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import type { Page } from "@playwright/test";

import { root } from "./native.ts";
import { expect, test } from "./page.ts";
import { dragDelay } from "./slider.ts";

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

test("plots follow a dragged slider", async ({ page }) => {
  await showAll(page);
  const plot = page.getByRole("img", { name: /^Round-trip time: / });
  const before = await plot.getAttribute("aria-label");
  // How long it takes is measured by bench.spec.ts, on a machine that does nothing else.
  expect((await dragDelay(page)).length).toBeGreaterThan(3);
  await expect(plot).not.toHaveAttribute("aria-label", before ?? "");
  await expect(page.getByRole("textbox", { name: "Scenario" })).not.toContainText('delay = "50ms"');
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

test("each path of a scenario has its sliders", async ({ page }) => {
  await showAll(page);
  const editor = page.getByRole("textbox", { name: "Scenario" });
  await expect(page.getByRole("combobox", { name: "Path" })).toBeHidden();
  await editor.focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(readFileSync(resolve(root, "scenarios/shared-bottleneck.toml"), "utf8"));
  await page.getByRole("combobox", { name: "Path" }).selectOption("shelf to server");
  await expect(page.getByRole("combobox", { name: "Controller" })).toHaveValue("reno");
  await expect(page.getByText("Plots of the flow photos:")).toBeVisible();
  // The link that both paths share.
  await page.getByRole("slider", { name: "Rate of the link" }).fill("60");
  await expect(editor).not.toContainText('"20Mbit/s"');
  await page.getByRole("combobox", { name: "Controller" }).selectOption("bbr");
  await expect(editor).toContainText('cc = "bbr"');
  await page.getByRole("combobox", { name: "Path" }).selectOption("desk to server");
  await expect(page.getByRole("combobox", { name: "Controller" })).toHaveValue("newreno");
  // The first story has one path.
  await page.getByRole("group", { name: "Stories to begin with" }).getByRole("button").first().click();
  await expect(page.getByRole("combobox", { name: "Path" })).toBeHidden();
  await expect(page.getByRole("slider", { name: "Delay, each way" })).toBeVisible();
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

test("the page of a run is shown in a frame with no right but to run and to save", async ({ page }) => {
  await page.getByRole("button", { name: "Full page of the run" }).click();
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("heading", { level: 1 })).toContainText("starved by LRO");
  await expect(page.locator("iframe")).toHaveAttribute("sandbox", "allow-scripts allow-downloads");
});
