// The size of the built page, compressed as servers send it: at most 3 MB.
import { readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT = 3_000_000;
const folder = resolve(process.argv[2]);
const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const sizes = files.map((entry) => [entry.name, gzipSync(readFileSync(resolve(entry.parentPath, entry.name)), { level: 9 }).length]);
sizes.sort((a, b) => b[1] - a[1]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`playground: ${(total / 1e6).toFixed(2)} MB compressed, of which ${sizes[0][0]} ${(sizes[0][1] / 1e6).toFixed(2)} MB`);
if (total > LIMIT) {
  console.error(`playground: more than ${LIMIT / 1e6} MB`);
  process.exit(1);
}
