//! Files and standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}

/// A file that takes its name only once it is whole: until [`OutFile::commit`] it is a temporary
/// one in the same directory, and what stood under the name before stays. Standard output, under
/// whatever name, is written through: what is printed follows behind.
#[derive(Debug)]
pub(crate) struct OutFile {
    /// As the user named it.
    named: PathBuf,
    out: BufWriter<File>,
    /// Where it lies and where it is to go; `None` for what is no plain file, such as
    /// /dev/null or a pipe, and is written as it is.
    temporary: Option<Temporary>,
    is_standard_stream: bool,
}

#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl OutFile {
    /// Prepares to write under the name `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failure = |error: &io::Error| Failure::file("write", path, error);
        let named = path.to_owned();
        if let Some(stream) = standard_stream(path) {
            let out = BufWriter::new(stream);
            return Ok(Self { named, out, temporary: None, is_standard_stream: true });
        }
        let target = resolved(path);
        if let Ok(metadata) = fs::metadata(&target) {
            if metadata.is_dir() {
                return Err(failure(&io::Error::from(io::ErrorKind::IsADirectory)));
            }
            if metadata.permissions().readonly() {
                return Err(failure(&io::Error::from(io::ErrorKind::PermissionDenied)));
            }
            let file = OpenOptions::new().append(true).open(&target).map_err(|e| failure(&e))?;
            if !metadata.is_file() {
                let out = BufWriter::new(file);
                return Ok(Self { named, out, temporary: None, is_standard_stream: false });
            }
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let temporary = Temporary { path: target.with_file_name(name), target };
        let file = File::create(&temporary.path).map_err(|e| failure(&e))?;
        let out = BufWriter::new(file);
        Ok(Self { named, out, temporary: Some(temporary), is_standard_stream: false })
    }

    /// Gives the file its name.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        let done = self.out.flush().and_then(|()| match self.temporary.take() {
            Some(temporary) => fs::rename(&temporary.path, &temporary.target).inspect_err(|_| {
                let _ = fs::remove_file(&temporary.path);
            }),
            None => Ok(()),
        });
        done.map_err(|error| Failure::file("write", &self.named, &error))
    }

    /// Is it the same file as `path`?
    pub(crate) fn is(&self, path: &Path) -> bool {
        let target = self.temporary.as_ref().map(|temporary| &temporary.target);
        target.is_some_and(|target| *target == resolved(path))
            || (self.is_standard_stream && standard_stream(path).is_some())
    }
}

/// Standard output or standard error, if that is what `path` names: a file under another name
/// would take its place, and what is printed would go to the one that has lost its name.
#[cfg(unix)]
fn standard_stream(path: &Path) -> Option<File> {
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    // Terminals and /dev/null are written to under any name.
    let named = fs::metadata(path).ok().filter(|named| !named.file_type().is_char_device())?;
    let same = |stream: BorrowedFd<'_>| {
        let file = File::from(stream.try_clone_to_owned().ok()?);
        let known = file.metadata().ok()?;
        ((known.dev(), known.ino()) == (named.dev(), named.ino())).then_some(file)
    };
    same(io::stdout().as_fd()).or_else(|| same(io::stderr().as_fd()))
}

#[cfg(not(unix))]
fn standard_stream(_: &Path) -> Option<File> {
    None
}

/// One name for each file, whether it exists or not; what a link points at, not the link.
fn resolved(path: &Path) -> PathBuf {
    let beside = || {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::canonicalize(directory.unwrap_or(Path::new("."))).ok()?;
        Some(directory.join(path.file_name()?))
    };
    fs::canonicalize(path).ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Left over from a run that failed, whose error has been reported.
            let _ = fs::remove_file(&temporary.path);
        }
    }
}
