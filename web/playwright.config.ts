import { existsSync } from "node:fs";

import { defineConfig } from "@playwright/test";

// The system's browser; none is downloaded.
const browsers = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = browsers.find((path) => path && existsSync(path));
const address = "http://localhost:4173/";

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  // Two of them share two cores; a test of speed runs alone.
  workers: 2,
  fullyParallel: true,
  forbidOnly: Boolean(process.env["CI"]),
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [["list"]],
  use: {
    baseURL: address,
    viewport: { width: 1400, height: 900 },
    launchOptions: {
      ...(executablePath && { executablePath }),
      // Root, as in containers, has no sandbox of Chromium.
      args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
    },
  },
  webServer: { command: "npx vite preview", url: address, reuseExistingServer: false },
});
