import type { Page } from "@playwright/test";

/** Drags the slider of the delay in 20 steps; ms from each step that was drawn to its plots, ascending. */
export async function dragDelay(page: Page): Promise<number[]> {
  const box = await page.getByRole("slider", { name: "Delay, each way" }).boundingBox();
  if (!box) throw new Error("the slider is not shown");
  const middle = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.78, middle);
  await page.mouse.down();
  for (let step = 0; step <= 20; step++) {
    await page.mouse.move(box.x + box.width * (0.78 - step * 0.01), middle);
    await page.waitForTimeout(60);
  }
  await page.mouse.up();
  await page.waitForTimeout(500);
  const times = await page.evaluate(() => performance.getEntriesByName("slider").map((entry) => entry.duration));
  return times.sort((a, b) => a - b);
}
