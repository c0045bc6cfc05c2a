//! Input files: regular files, of a size that fits into memory.
//!
//! A pipe may have no writer and a device no end, so both are rejected. Descriptors that the
//! program inherited (`/dev/stdin`, the `/dev/fd/63` of a shell's `<(...)`) may be either if an
//! argument names them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::failure::Failure;
use crate::visible::ShownPath as _;

/// Size limit of files that are read as a whole: scenarios, rate traces, scripts.
const MOST: u64 = 64 << 20;

/// Reads a file that an argument names; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let all = if path == Path::new("-") {
        whole(io::stdin().lock())
    } else {
        open_argument(path).and_then(|file| whole(&file))
    };
    all.map_err(|error| Failure::file("read", path, &error))
}

/// Reads a regular file that another file names.
pub(crate) fn read_named(path: &Path) -> Result<Vec<u8>, String> {
    let all = open_regular(path).and_then(|file| whole(&file));
    all.map_err(|error| format!("cannot read {}: {error}", path.shown()))
}

/// Folders of `--allow-path`, canonical.
static ALLOWED_PATHS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Sets the folders of which scenarios may name files besides their own.
pub(crate) fn allow_paths(folders: &[PathBuf]) -> Result<(), Failure> {
    let folders = folders.iter().map(|folder| {
        let canonical = fs::canonicalize(folder).ok().filter(|folder| folder.is_dir());
        let message = || format!("--allow-path {}: not a folder", folder.shown());
        canonical.ok_or_else(|| Failure::new(message()))
    });
    let _ = ALLOWED_PATHS.set(folders.collect::<Result<_, _>>()?);
    Ok(())
}

/// Reads a regular file that a scenario names, relative to its folder: a file in that folder or below, or in one of
/// `--allow-path`.
pub(crate) fn read_beside(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = folder.join(name);
    let own = if folder == Path::new("") { Path::new(".") } else { folder };
    // The read reports what does not exist, is no file, or what `ackclock mcp` does not allow.
    if !is_restricted()
        && fs::metadata(&path).is_ok_and(|file| file.is_file())
        && let (Ok(path), Ok(own)) = (fs::canonicalize(&path), fs::canonicalize(own))
    {
        let is_allowed =
            |folders: &Vec<PathBuf>| folders.iter().any(|folder| path.starts_with(folder));
        if !path.starts_with(own) && !ALLOWED_PATHS.get().is_some_and(is_allowed) {
            return Err(format!(
                "cannot read {name}: it is outside of the scenario's folder; add --allow-path with its folder"
            ));
        }
    }
    read_named(&path)
}

/// Opens a file that an argument names, for reading in chunks.
pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    open_argument(path).map_err(|error| Failure::file("read", path, &error))
}

/// Opens a file that an argument names.
pub(crate) fn open_argument(path: &Path) -> io::Result<File> {
    if is_own(path) { File::open(path) } else { open_regular(path) }
}

/// Is it a descriptor that the program inherited?
pub(crate) fn is_own(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || ["/dev/fd/", "/proc/self/fd/"].iter().any(|own| path.starts_with(own))
}

/// Variable with the folders, as in `PATH`, of which files may be read; without it all may.
/// `ackclock mcp` sets it for its calls: a scenario can name further files.
pub(crate) const ALLOWED_FOLDERS: &str = "ACKCLOCK_ALLOWED_FOLDERS";

/// The folders of which files may be read; `None` if all may.
#[expect(clippy::disallowed_methods, reason = "a restriction, not a result")]
fn allowed_folders() -> Option<&'static Vec<PathBuf>> {
    static FOLDERS: OnceLock<Option<Vec<PathBuf>>> = OnceLock::new();
    let folders = FOLDERS.get_or_init(|| {
        let folders = std::env::var_os(ALLOWED_FOLDERS)?;
        Some(std::env::split_paths(&folders).collect())
    });
    folders.as_ref()
}

/// Is this a call of `ackclock mcp`, which reads files and runs no programs?
pub(crate) fn is_restricted() -> bool {
    allowed_folders().is_some()
}

/// Returns an error for a file outside of the allowed folders.
fn require_allowed(path: &Path) -> io::Result<()> {
    let Some(folders) = allowed_folders() else { return Ok(()) };
    let path = fs::canonicalize(path).ok();
    match path.is_some_and(|path| folders.iter().any(|folder| path.starts_with(folder))) {
        true => Ok(()),
        false => Err(io::Error::other("no such file in the allowed folders")),
    }
}

fn open_regular(path: &Path) -> io::Result<File> {
    require_allowed(path)?;
    regular(&fs::metadata(path)?)?;
    let file = open_at_once(path)?;
    // The path may have been replaced meanwhile.
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens without waiting for the writer of a pipe.
#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn regular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if metadata.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

fn whole(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other(format!("it is larger than {} MiB", MOST >> 20)));
    }
    Ok(bytes)
}
