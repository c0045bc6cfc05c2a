//! Folders as arguments: the captures and logs in them and in their subfolders.

use std::fs;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ingest::inputs;

use crate::commands::pasted;
use crate::failure::Failure;
use crate::input;
use crate::visible::ShownPath as _;

/// Endings of files that may quote packets or scenarios.
const QUOTES: [&str; 9] = ["md", "rst", "rs", "py", "sh", "html", "ipynb", "toml", "pkt"];

/// Endings of captures and logs: such a file is read, or reported as unreadable.
const RECORDINGS: [&str; 6] = ["pcap", "pcapng", "cap", "qlog", "sqlog", "netlog"];
/// Endings of compressed files.
const COMPRESSED: [&str; 3] = ["gz", "xz", "zst"];

/// Bytes from which the kind of a file is detected: more than a block of xz or zstd, which is
/// unpacked as a whole.
pub(crate) const BEGINNING: u64 = 256 * 1_024;

/// Replaces each folder by the captures and logs in it and in its subfolders, by name.
pub(crate) fn expand(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if path == Path::new("-") || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        let walked = walk(path, &mut |file| {
            if is_recording(&file) || is_named_as_recording(&file) {
                files.push(file);
            }
            ControlFlow::Continue(())
        });
        let _ = walked.map_err(|(folder, error)| Failure::file("read", &folder, &error))?;
        if files.len() == before {
            // Texts of tools, if there is nothing else.
            let walked = walk(path, &mut |file| {
                let is_text = file.extension().is_some_and(|end| end == "txt" || end == "log");
                if is_text && pasted::read(&file).is_some() {
                    files.push(file);
                }
                ControlFlow::Continue(())
            });
            let _ = walked.map_err(|(folder, error)| Failure::file("read", &folder, &error))?;
        }
        if files.len() == before {
            return Err(Failure::new(format!(
                "{}: no capture or log in this folder",
                path.shown()
            )));
        }
    }
    Ok(files)
}

/// Returns the first file below the folder that fulfils the condition, among the first `most` files.
pub(crate) fn find(
    folder: &Path,
    most: usize,
    mut fulfils: impl FnMut(&Path) -> bool,
) -> Option<PathBuf> {
    let (mut found, mut seen) = (None, 0);
    // A folder that cannot be read has nothing to offer.
    let _ = walk(folder, &mut |file| {
        seen += 1;
        if seen > most {
            return ControlFlow::Break(());
        }
        if fulfils(&file) {
            found = Some(file);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

/// Visits the files below a folder by name, those of a folder before its subfolders. Hidden folders
/// are left out, and so are links to folders, which may lead back.
fn walk(
    folder: &Path,
    visit: &mut dyn FnMut(PathBuf) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, (PathBuf, io::Error)> {
    let (files, folders) = entries(folder).map_err(|error| (folder.to_path_buf(), error))?;
    for file in files {
        if visit(file).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    for folder in folders {
        if walk(&folder, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the files and the folders in a folder, by name, without hidden folders.
pub(crate) fn entries(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        match entry.file_type()?.is_dir() {
            true if is_hidden => {}
            true => folders.push(entry.path()),
            false => files.push(entry.path()),
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

/// Whether the name of a file is that of a capture or a log, compressed or not.
fn is_named_as_recording(path: &Path) -> bool {
    let ending = |path: &Path| path.extension().map(|end| end.to_string_lossy().to_lowercase());
    let is_compressed = ending(path).is_some_and(|end| COMPRESSED.contains(&&*end));
    let plain = if is_compressed { path.with_extension("") } else { path.to_owned() };
    ending(&plain).is_some_and(|end| RECORDINGS.contains(&&*end))
}

/// Whether a file is a capture or a log. A file that cannot be read is none, nor is a page or a
/// program, which may quote packets.
pub(crate) fn is_recording(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    if QUOTES.contains(&end) {
        return false;
    }
    let mut begin = Vec::new();
    let file = path.is_file().then(|| input::open_argument(path).ok()).flatten();
    let read = file.and_then(|file| file.take(BEGINNING).read_to_end(&mut begin).ok());
    read.is_some() && inputs::is_recording(&begin)
}
