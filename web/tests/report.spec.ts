// Pages that the native program writes: what the reader saves and what the browser remembers.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { ackclock, folder, output } from "./native.ts";
import { expect, test } from "./page.ts";

test.skip(!existsSync(ackclock), "it needs the native program: cargo build --workspace --all-features --bins");

test("a page of a run remembers theme and zoom, and saves plots", async ({ page }) => {
  mkdirSync(folder, { recursive: true });
  const path = resolve(folder, "report.html");
  await output(ackclock, "run", "scenarios/example.toml", "--report", path);
  const address = pathToFileURL(path).href;
  await page.goto(address);
  const theme = page.locator("#theme");
  for (const name of ["light", "dark"]) {
    await theme.click();
    await expect(theme).toHaveText(`Theme: ${name}`);
  }
  const plots = page.locator("#plots-all");
  await plots.getByRole("button", { name: "Zoom in" }).click();
  await expect(page).toHaveURL(/#view=all:\d+-\d+$/);
  const zoomed = page.url();
  // Chromium stores values for another process a moment later: on a loaded machine a reload may be too early.
  await expect(async () => {
    await page.reload();
    await expect(theme).toHaveText("Theme: dark", { timeout: 2_000 });
  }).toPass();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  expect(page.url()).toBe(zoomed);

  const save = async (name: string): Promise<Buffer> => {
    const [download] = await Promise.all([page.waitForEvent("download"), plots.getByRole("button", { name }).click()]);
    return readFileSync(await download.path());
  };
  const picture = await save("PNG file");
  expect(picture.subarray(1, 4).toString()).toBe("PNG");
  const lines = (await save("values in view")).toString().trimEnd().split("\r\n");
  expect(lines[0]).toBe("panel,series,time (s),value,upper,unit,label");
  expect(lines.length).toBeGreaterThan(10);
  const [from, to] = /all:(\d+)-(\d+)$/.exec(zoomed)!.slice(1).map((ns) => Number(ns) / 1e9);
  const times = lines.slice(1).map((line) => Number(line.split(",")[2]));
  expect(Math.max(...times)).toBeLessThanOrEqual(to!);
  // Of a curve also the value that holds at the left end.
  expect(times.filter((time) => time < from!).length).toBeLessThan(8);

  await plots.getByRole("button", { name: "Show all" }).click();
  await expect(page).toHaveURL(address);
  await expect(page.locator("details pre")).toContainText("[host.sender]");
});

test("a name in saved values is no formula of a spreadsheet", async ({ page }) => {
  mkdirSync(folder, { recursive: true });
  const path = resolve(folder, "formula.html");
  const name = '--set=flow.upload.name="=1+2"';
  await output(ackclock, "run", "scenarios/example.toml", name, "--report", path);
  await page.goto(pathToFileURL(path).href);
  const plots = page.locator("#plots-all");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    plots.getByRole("button", { name: "values in view" }).click(),
  ]);
  const text = readFileSync(await download.path()).toString();
  expect(text).toContain("'=1+2");
  expect(text).not.toMatch(/(^|,)"?=/m);
});
