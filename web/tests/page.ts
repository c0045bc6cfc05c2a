import { test as base, expect } from "@playwright/test";

export const test = base.extend<{ faults: string[] }>({
  faults: [
    async ({ page }, use) => {
      const faults: string[] = [];
      page.on("console", (message) => {
        const isExpected = message.text() === "Service Worker registration blocked by Playwright";
        if (["error", "warning"].includes(message.type()) && !isExpected) faults.push(message.text());
      });
      page.on("pageerror", (error) => faults.push(String(error)));
      await use(faults);
      expect(faults, "errors in the console").toEqual([]);
    },
    { auto: true },
  ],
});
export { expect };
