import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

import { defineConfig, type Plugin } from "vite";

import { instantiate } from "./src/engine/instance.ts";

const root = resolve(import.meta.dirname, "..");
const target = resolve(root, process.env["CARGO_TARGET_DIR"] ?? "target");
const folder = resolve(target, "wasm32-unknown-unknown/wasm");
const engine = resolve(folder, "ackclock_wasm.wasm");

/** Hashes of the style and the program of the engine's report pages, for the page that shows them in a frame. */
async function reportHashes(): Promise<{ scripts: string[]; styles: string[] }> {
  const module = await WebAssembly.compile(await readFile(engine));
  const instance = await instantiate(module, { read: () => -1, panicked: (text) => console.error(text) });
  const text = await readFile(resolve(root, "scenarios/slow-start-lro.toml"), "utf8");
  const answer = JSON.parse(await instance.answer(JSON.stringify({ op: "run_page", text })));
  const html: string = answer.ok.html;
  const hashes = (pattern: RegExp) =>
    [...html.matchAll(pattern)].map(([, source]) => `'sha256-${createHash("sha256").update(source ?? "").digest("base64")}'`);
  const scripts = hashes(/<script>([\s\S]*?)<\/script>/g);
  const styles = hashes(/<style>([\s\S]*?)<\/style>/g);
  if (scripts.length !== 1 || styles.length !== 1) throw new Error("a report page has one program and one style sheet");
  return { scripts, styles };
}

/** A policy that lets nothing be fetched but the page's own files, and nothing be executed but them. */
function securityPolicy(): Plugin {
  return {
    name: "security-policy",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      async handler(html) {
        // A frame without an address inherits this policy: what report pages contain is allowed by its hash.
        const { scripts, styles } = await reportHashes();
        const policy = [
          "default-src 'none'",
          `script-src 'self' ${scripts.join(" ")}`,
          `style-src 'self' ${styles.join(" ")}`,
          "img-src 'self' data:",
          "connect-src 'self'",
          "worker-src 'self'",
          "manifest-src 'self'",
          "frame-src 'none'",
          "base-uri 'none'",
          "form-action 'none'",
        ].join("; ");
        const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
        return html.replace('<meta charset="utf-8" />', `<meta charset="utf-8" />\n    ${meta}`);
      },
    },
  };
}

/** The licences of the engine's libraries, beside those of the page's. */
function engineLicences(): Plugin {
  return {
    name: "engine-licences",
    apply: "build",
    async buildStart() {
      const source = await readFile(resolve(folder, "licences.md"));
      this.emitFile({ type: "asset", fileName: "licences-engine.txt", source });
    },
  };
}

/** A service worker that keeps all files of one build, so that the page works offline. */
function offline(): Plugin {
  return {
    name: "offline",
    apply: "build",
    enforce: "post",
    async generateBundle(_, bundle) {
      const files = Object.keys(bundle).filter((name) => !name.endsWith(".map"));
      const hash = createHash("sha256");
      for (const name of files.sort()) {
        const part = bundle[name];
        if (part) hash.update(name).update(part.type === "chunk" ? part.code : part.source);
      }
      const shell = ["./", "icon.svg", "manifest.webmanifest", "licences.txt"];
      const list = [...shell, ...files.filter((name) => name !== "index.html")];
      const source = await readFile(resolve(import.meta.dirname, "build/sw.js"), "utf8");
      this.emitFile({
        type: "asset",
        fileName: "sw.js",
        source: source
          .replace('"FILES"', JSON.stringify(list))
          .replace("VERSION", hash.digest("hex").slice(0, 16)),
      });
    },
  };
}

export default defineConfig({
  base: "./",
  resolve: { alias: { "@engine": folder } },
  plugins: [securityPolicy(), engineLicences(), offline()],
  build: {
    outDir: resolve(target, "playground"),
    emptyOutDir: true,
    target: "es2022",
    // Every file is one of the policy's own, none a data URL.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "licences.txt" },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1024,
  },
  worker: { format: "es" },
  server: { fs: { allow: [root, folder] } },
  preview: { port: 4173, strictPort: true },
});
