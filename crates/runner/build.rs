//! Digest of the code that results of runs depend on, so that rows of two models are not mixed.
//!
//! The version alone does not change with each commit. Files that only tests have are left out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Crates of the model.
const CRATES: [&str; 13] = [
    "cc",
    "machine",
    "net",
    "packet",
    "quic",
    "quinn-host",
    "record",
    "recovery",
    "runner",
    "scenario",
    "sim",
    "tcp",
    "units",
];

fn main() {
    let crates = Path::new("..");
    let mut digest = Sha256::new();
    for name in CRATES {
        let folder = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        // A crate of a registry has no others beside it: its version identifies them.
        let Ok(files) = files(&folder) else {
            digest.update(env!("CARGO_PKG_VERSION"));
            continue;
        };
        for file in files {
            let shown = file.to_string_lossy().replace('\\', "/");
            let text = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
            digest.update(shown);
            digest.update([0]);
            digest.update(text);
            digest.update([0]);
        }
    }
    let model: String =
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=ACKCLOCK_MODEL={model}");
}

/// All files of a folder but those of tests, in the order of their names.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.sort();
    let mut all = Vec::new();
    for path in entries {
        if path.file_stem().is_some_and(|stem| stem == "tests" || stem == "snapshots") {
            continue;
        }
        if path.is_dir() {
            all.extend(files(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
    Ok(all)
}
