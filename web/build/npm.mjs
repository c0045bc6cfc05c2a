// Runs npm: the system's, or else one from the user's registry, as Debian's package of it comes with hundreds of others.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";

const VERSION = "11.6.2";
const INTEGRITY = "sha512-7iKzNfy8lWYs3zq4oFPa8EXZz5xt9gQNKJZau3B1ErLBb6bF7sBJ00x09485DOvRT2l5Gerbl3VlZNT57MxJVA==";

/** The registry of the user's configuration. */
function registry() {
  const files = [resolve(homedir(), ".npmrc"), "/etc/npmrc", "/usr/local/etc/npmrc"].filter((file) => existsSync(file));
  const lines = files.flatMap((file) => readFileSync(file, "utf8").split("\n"));
  const configured = lines.map((line) => /^registry\s*=\s*(\S+)/.exec(line)?.[1]).find(Boolean);
  const address = process.env.NPM_CONFIG_REGISTRY ?? process.env.npm_config_registry ?? configured;
  if (!address) throw new Error("npm is missing: install it, or set NPM_CONFIG_REGISTRY to a registry that has it");
  return address.replace(/\/$/, "");
}

async function download(folder) {
  const response = await fetch(`${registry()}/npm/-/npm-${VERSION}.tgz`);
  if (!response.ok) throw new Error(`npm cannot be fetched: ${response.status}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (found !== INTEGRITY) throw new Error(`npm ${VERSION} has the checksum ${found}, expected ${INTEGRITY}`);
  mkdirSync(folder, { recursive: true });
  const archive = resolve(folder, "npm.tgz");
  writeFileSync(archive, bytes);
  const { status } = spawnSync("tar", ["-xzf", archive, "-C", folder], { stdio: "inherit" });
  if (status !== 0) throw new Error("npm cannot be unpacked");
}

const system = !process.env.PLAYGROUND_OWN_NPM && spawnSync("npm", ["--version"]).status === 0;
const folder = resolve(import.meta.dirname, "../../target/npm");
const program = resolve(folder, "package/bin/npm-cli.js");
if (!system && !existsSync(program)) await download(folder);
const [command, first] = system ? ["npm", []] : [process.execPath, [program]];
process.exit(spawnSync(command, [...first, ...process.argv.slice(2)], { stdio: "inherit" }).status ?? 1);
