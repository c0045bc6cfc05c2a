//! Output files and standard output.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::interrupt;
use crate::visible::{Visible, visible_in_colour};

/// Standard output, with [visible](crate::visible) characters only.
pub(crate) fn standard_output() -> Visible<StdoutLock<'static>> {
    Visible::new(io::stdout().lock())
}

/// Writes `text` to standard output. A closed pipe is not an error: the command continues with its
/// other outputs, and its exit status is unchanged.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = standard_output();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// As [`print()`]; returns whether the pipe is still open.
pub(crate) fn print_if_read(text: &str) -> Result<bool, Failure> {
    let mut out = standard_output();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true).map_err(|error| Failure::stdout(&error)),
    }
}

/// As [`print()`], for text with colours.
pub(crate) fn print_in_colour(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(visible_in_colour(text).as_bytes()).and_then(|()| out.flush()))
}

/// Converts the result of writing to standard output; a closed pipe is not an error.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::stdout(&error)),
    }
}

/// An output file that replaces its target only when it is complete: until [`OutFile::commit`] it
/// is a temporary file in the same directory, and a previous file of that name stays. Standard
/// output, under any name, is written through, so that printed text follows. A closed pipe discards
/// everything.
#[derive(Debug)]
pub(crate) struct OutFile {
    /// The path that the user gave.
    named: PathBuf,
    out: BufWriter<Sink>,
    /// Its temporary name; `None` for anything but a regular file, such as /dev/null or a pipe,
    /// which is written directly.
    temporary: Option<Temporary>,
    is_standard_stream: bool,
}

impl OutFile {
    /// Opens `path` for writing.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failure = |error: &io::Error| Failure::file("write", path, error);
        let through = |file, is_standard_stream| {
            let out = BufWriter::new(Sink::new(file));
            Ok(Self { named: path.to_owned(), out, temporary: None, is_standard_stream })
        };
        if let Some(stream) = standard_stream(path) {
            return through(stream, true);
        }
        let target = resolved(path);
        let replaced = fs::metadata(&target).ok();
        if let Some(metadata) = &replaced {
            if metadata.is_dir() {
                return Err(failure(&io::Error::from(io::ErrorKind::IsADirectory)));
            }
            if metadata.permissions().readonly() {
                return Err(failure(&io::Error::from(io::ErrorKind::PermissionDenied)));
            }
            let file = OpenOptions::new().append(true).open(&target).map_err(|e| failure(&e))?;
            if !metadata.is_file() {
                return through(file, false);
            }
        }
        let (file, temporary) =
            Temporary::beside(target, replaced.as_ref()).map_err(|e| failure(&e))?;
        let out = BufWriter::new(Sink::new(file));
        let named = path.to_owned();
        Ok(Self { named, out, temporary: Some(temporary), is_standard_stream: false })
    }

    /// Syncs the file and renames it to its target.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        let done = self.out.flush().and_then(|()| match self.temporary.take() {
            Some(temporary) => {
                self.out.get_ref().file.sync_all()?;
                temporary.commit()
            }
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

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The destination of the bytes.
#[derive(Debug)]
struct Sink {
    file: File,
    is_terminal: bool,
    /// The pipe has no reader.
    reader_gone: bool,
}

impl Sink {
    fn new(file: File) -> Self {
        Self { is_terminal: file.is_terminal(), file, reader_gone: false }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.file.write(bytes);
        }
        let mut terminal = Visible::new(&self.file);
        terminal.write_all(bytes).and_then(|()| terminal.flush()).map(|()| bytes.len())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.reader_gone {
            match self.put(bytes) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.reader_gone = true,
                other => return other,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The existing temporary files.
static TEMPORARIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn temporaries() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all temporary files; afterwards none can be created or renamed.
pub(crate) fn remove_temporaries() {
    let names = temporaries();
    for name in names.iter() {
        let _ = fs::remove_file(name);
    }
    core::mem::forget(names);
}

/// As [`remove_temporaries`], at an end in the middle of anything: this thread may be creating such a file.
#[expect(clippy::disallowed_methods, reason = "waits for another thread")]
pub(crate) fn remove_temporaries_if_free() {
    for _ in 0..100 {
        match TEMPORARIES.try_lock() {
            Ok(free) => {
                drop(free);
                return remove_temporaries();
            }
            Err(TryLockError::Poisoned(_)) => return remove_temporaries(),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The name of an incomplete file.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Temporary {
    /// Creates a file next to `target` under an unpredictable name, with owner and mode of the file
    /// it replaces.
    fn beside(target: PathBuf, replaced: Option<&fs::Metadata>) -> io::Result<(File, Self)> {
        interrupt::watch();
        let mut names = temporaries();
        loop {
            let mut name = OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            // Each hasher has its own random keys from the system.
            name.push(format!(".{:016x}.part", RandomState::new().build_hasher().finish()));
            let path = target.with_file_name(name);
            let file = match create_new(&path, replaced) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            names.insert(path.clone());
            return Ok((file, Self { path, target }));
        }
    }

    fn commit(self) -> io::Result<()> {
        let mut names = temporaries();
        fs::rename(&self.path, &self.target)?;
        names.remove(&self.path);
        drop(names);
        sync_directory(&self.target);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut names = temporaries();
        if names.remove(&self.path) {
            // A failed run leaves it; its error has been reported.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a new file (`O_EXCL`, which follows no link).
#[cfg(unix)]
fn create_new(path: &Path, replaced: Option<&fs::Metadata>) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(if replaced.is_some() { 0o600 } else { 0o666 });
    let file = options.open(path)?;
    if let Some(replaced) = replaced {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
            // Only root may change the owner.
            let _ = fchown(&file, Some(replaced.uid()), Some(replaced.gid()));
        }
        file.set_permissions(fs::Permissions::from_mode(replaced.mode() & 0o777))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn create_new(path: &Path, _: Option<&fs::Metadata>) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Syncs the directory of `path`. Errors are ignored: not every file system supports it.
fn sync_directory(path: &Path) {
    if let Some(directory) = path.parent()
        && let Ok(directory) = File::open(directory)
    {
        let _ = directory.sync_all();
    }
}

/// Standard output or standard error, if `path` names it: a temporary file would replace it, and
/// printed text would go to the unlinked file.
#[cfg(unix)]
fn standard_stream(path: &Path) -> Option<File> {
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    // Terminals and /dev/null can be written under any name.
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

/// The canonical path of a file, whether it exists or not; symbolic links are resolved.
fn resolved(path: &Path) -> PathBuf {
    let beside = || {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::canonicalize(directory.unwrap_or(Path::new("."))).ok()?;
        Some(directory.join(path.file_name()?))
    };
    fs::canonicalize(path).ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}
