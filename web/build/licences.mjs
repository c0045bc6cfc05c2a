// The licences of all packages that the lock file names: permissive ones, and MPL for tools that are no part of the page.
import { readFileSync } from "node:fs";

const ALLOWED = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "MPL-2.0", "MIT OR Apache-2.0"];
const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
const others = Object.entries(packages).filter(([name, { license }]) => name !== "" && !ALLOWED.includes(license));
for (const [name, { license }] of others) console.error(`${name}: licence ${license ?? "unknown"} is not allowed`);
process.exit(others.length > 0 ? 1 : 0);
