// The native programs that the page is compared with, and captures that are made by them.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

export const root = resolve(import.meta.dirname, "../..");
const target = resolve(root, process.env["CARGO_TARGET_DIR"] ?? "target");
export const ackclock = process.env["ACKCLOCK_BIN"] ?? resolve(target, "debug/ackclock");
export const xtask = process.env["XTASK_BIN"] ?? resolve(target, "full/xtask");
/** Files that tests make. */
export const folder = resolve(target, "playground-tests");

export const hasNative = existsSync(ackclock) && existsSync(xtask);

/** The output of a program, run in the repository. */
export async function output(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(program, args, { cwd: root, maxBuffer: 1 << 30 });
  return stdout;
}

function below(path: string): string[] {
  return readdirSync(resolve(root, path), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? below(`${path}/${entry.name}`) : [`${path}/${entry.name}`],
  );
}

/** Golden captures and logs, relative to the repository. */
export function goldenCaptures(): string[] {
  const captures = [...below("golden/linux"), ...below("golden/captures/recorded")].filter((path) => /\.pcap(ng)?\.(xz|gz)$/.test(path));
  const logs = below("docs/samples").filter((path) => /\.(sqlog|qlog|log|pcapng)$/.test(path));
  return [...captures, ...logs].sort();
}

export function scenarios(): string[] {
  return below("scenarios").filter((path) => path.endsWith(".toml") && !path.endsWith("Cargo.toml")).sort();
}

/** A capture of about `megabytes` MB, made by a run; its path. */
export async function largeCapture(megabytes: number): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const path = resolve(folder, `${megabytes}MB.pcapng`);
  if (!existsSync(path) || statSync(path).size < megabytes * 0.9e6) {
    const changes = [`upload.bulk=${Math.round(megabytes * 0.96)}MB`, "duration=1h", "path.0.forward.0.link.rate=1Gbit/s"];
    const sets = changes.flatMap((change) => ["--set", change]);
    const scenario = "scenarios/slow-start-freebsd.toml";
    await output(ackclock, "run", scenario, ...sets, "--pcap", path);
  }
  return path;
}
