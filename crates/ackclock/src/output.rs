//! Files and standard output.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;
use crate::interrupt;
use crate::visible::{Visible, visible_in_colour};

/// Standard output, with [visible](crate::visible) characters only.
pub(crate) fn standard_output() -> Visible<StdoutLock<'static>> {
    Visible::new(io::stdout().lock())
}

/// Writes `text` to standard output. A reader who has gone is no error: the command goes on with what else it
/// has to do, and its exit status is what it would have been.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = standard_output();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The same for text with colours.
pub(crate) fn print_in_colour(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(visible_in_colour(text).as_bytes()).and_then(|()| out.flush()))
}

/// What came of writing to standard output.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::stdout(&error)),
    }
}

/// A file that takes its name only once it is whole: until [`OutFile::commit`] it is a temporary
/// one in the same directory, and what stood under the name before stays. Standard output, under
/// whatever name, is written through: what is printed follows after it. A pipe whose reader has gone takes
/// everything.
#[derive(Debug)]
pub(crate) struct OutFile {
    /// As the user named it.
    named: PathBuf,
    out: BufWriter<Sink>,
    /// Its temporary name; `None` for what is no regular file, such as /dev/null or a pipe, and is written as
    /// it is.
    temporary: Option<Temporary>,
    is_standard_stream: bool,
}

impl OutFile {
    /// Prepares to write under the name `path`.
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

    /// Gives the file its name, once its content is on the disk.
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

/// Where the bytes go.
#[derive(Debug)]
struct Sink {
    file: File,
    is_terminal: bool,
    /// Nobody reads the pipe any more.
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

/// Temporary files that there are now.
static TEMPORARIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn temporaries() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all temporary files; none can be made or take its name from then on.
pub(crate) fn remove_temporaries() {
    let names = temporaries();
    for name in names.iter() {
        let _ = fs::remove_file(name);
    }
    core::mem::forget(names);
}

/// The name of a file that is not whole yet.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    target: PathBuf,
}

impl Temporary {
    /// A new file beside `target`, under a name that cannot be foretold; with owner and mode of the file that it
    /// is to replace.
    fn beside(target: PathBuf, replaced: Option<&fs::Metadata>) -> io::Result<(File, Self)> {
        interrupt::watch();
        let mut names = temporaries();
        loop {
            let mut name = OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            // Each hasher has keys of its own, which the system has drawn.
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
            // Left over from a run that failed, whose error has been reported.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file that was not there (`O_EXCL`, which follows no link).
#[cfg(unix)]
fn create_new(path: &Path, replaced: Option<&fs::Metadata>) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(if replaced.is_some() { 0o600 } else { 0o666 });
    let file = options.open(path)?;
    if let Some(replaced) = replaced {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
            // Only root may give files away.
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

/// Puts the names in the directory of `path` on the disk. Not every file system does, and none need.
fn sync_directory(path: &Path) {
    if let Some(directory) = path.parent()
        && let Ok(directory) = File::open(directory)
    {
        let _ = directory.sync_all();
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
