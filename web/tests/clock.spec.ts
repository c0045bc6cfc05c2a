import { expect, test } from "./page.ts";

const instant = async (page: import("@playwright/test").Page) => Number(await page.locator("[data-at]").getAttribute("data-at"));

for (const name of ["A slow start", "Packets that arrive", "A formula", "A clock too coarse"]) {
  test(`the ACK clock plays, pauses, steps and slows down: ${name}`, async ({ page }) => {
    await page.goto("/#clock");
    await page.getByRole("group", { name: "Stories to watch" }).getByRole("button", { name }).click();
    const step = page.getByRole("button", { name: "Step", exact: true });
    await expect(step).toBeEnabled();
    await step.click();
    const first = await instant(page);
    for (let count = 0; count < 5; count++) await step.click();
    const sixth = await instant(page);
    expect(sixth).toBeGreaterThan(first);
    await page.getByRole("button", { name: "Step back" }).click();
    expect(await instant(page)).toBeLessThan(sixth);
    await page.getByRole("button", { name: "Play" }).click();
    await expect.poll(() => instant(page)).toBeGreaterThan(sixth);
    await page.getByRole("button", { name: "Pause" }).click();
    const paused = await instant(page);
    await page.waitForTimeout(200);
    expect(await instant(page)).toBe(paused);
    const pace = page.getByRole("slider", { name: "Pace" });
    const before = await pace.getAttribute("aria-valuetext");
    await pace.fill("-4");
    await expect(pace).not.toHaveAttribute("aria-valuetext", before ?? "");
    // Beyond the packets that are recorded, the next ones are.
    await page.getByRole("slider", { name: "Instant of the run" }).press("End");
    await page.getByRole("slider", { name: "Instant of the run" }).press("PageDown");
    await expect(page.getByRole("img", { name: /^The path at .*window/ })).toBeVisible();
  });
}

test("a finding's moment, and a link to a moment", async ({ page, context }) => {
  await page.goto("/#clock");
  await page.getByRole("group", { name: "Stories to watch" }).getByRole("button", { name: "A formula" }).click();
  await page.getByRole("region", { name: "Moments" }).getByRole("button", { name: "2.006 s" }).click();
  const at = await instant(page);
  expect(at / 1e9).toBeCloseTo(2.006, 2);
  await page.getByRole("button", { name: "Link to this moment" }).click();
  const link = await page.getByLabel(/The link, which holds/).inputValue();
  const other = await context.newPage();
  await other.goto(link);
  await expect.poll(() => instant(other)).toBe(at);
});
