//! Folders given to `ackclock diagnose`: their captures and logs.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ingest::inputs;

use crate::failure::Failure;
use crate::input;

/// Bytes from which the kind of a file is detected.
const BEGINNING: u64 = 64 * 1_024;

/// Replaces each folder by the captures and logs in it, by name; subfolders are not searched.
pub(super) fn expand(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if path == Path::new("-") || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        let failed = |error: &std::io::Error| Failure::file("read", path, error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
            entries.push(entry.map_err(|error| failed(&error))?.path());
        }
        entries.sort();
        files.extend(entries.into_iter().filter(|entry| is_readable(entry)));
        if files.len() == before {
            return Err(Failure::new(format!(
                "{}: no capture or log in this folder",
                path.display()
            )));
        }
    }
    Ok(files)
}

/// Whether a file is a capture or a log. A file that cannot be read is none.
fn is_readable(path: &Path) -> bool {
    let mut begin = Vec::new();
    let file = path.is_file().then(|| input::open_argument(path).ok()).flatten();
    let read = file.and_then(|file| file.take(BEGINNING).read_to_end(&mut begin).ok());
    read.is_some() && inputs::kind_of(&begin).is_some()
}
