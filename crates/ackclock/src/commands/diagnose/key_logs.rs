//! Key logs: that of `--keylog`, and those beside captures.

use std::path::{Path, PathBuf};

use ingest::inputs::KeyLog;

use crate::failure::Failure;
use crate::input;
use crate::visible::ShownPath as _;

/// Endings of a key log with the name of its capture.
const ENDINGS: [&str; 2] = ["keys", "keylog"];
/// A key log of all captures in its folder.
const SHARED: &str = "sslkeylog.txt";
/// Most bytes of a key log: those of a million connections.
const LARGEST: u64 = 1 << 29;

/// The secrets for these captures: of the file that is named, or else of those beside the captures.
pub(in crate::commands) fn read(
    named: Option<&Path>,
    captures: &[PathBuf],
) -> Result<KeyLog, Failure> {
    if let Some(path) = named {
        return read_one(path);
    }
    let mut keys = KeyLog::default();
    let mut beside: Vec<PathBuf> = captures.iter().flat_map(|capture| beside(capture)).collect();
    beside.sort();
    beside.dedup();
    for path in beside.iter().filter(|path| path.is_file() && !captures.contains(path)) {
        keys.extend(read_one(path)?);
    }
    Ok(keys)
}

/// Where the key log of a capture may be.
fn beside(capture: &Path) -> impl Iterator<Item = PathBuf> {
    let named = ENDINGS.into_iter().map(|ending| capture.with_extension(ending));
    named.chain([capture.with_file_name(SHARED)])
}

fn read_one(path: &Path) -> Result<KeyLog, Failure> {
    let file = input::open(path)?;
    let size = file.metadata().map_err(|error| Failure::file("read", path, &error))?.len();
    if size > LARGEST {
        return Err(Failure::new(format!("{}: a key log of more than 512 MiB", path.shown())));
    }
    let text = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    KeyLog::parse(&text).map_err(|error| {
        Failure::new(format!("key log {}: {error}", path.shown())).hint(
            "a key log has lines of a label, the random of a ClientHello and a secret, as programs write them with SSLKEYLOGFILE",
        )
    })
}
