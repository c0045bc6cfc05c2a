//! Kernels for guests: found in a cache, or built there from source.
//!
//! A kernel is never shipped: [`build`] makes it from Debian's linux-source package, a tarball or a
//! tree, with the options of recipe/kernel.config. The tree is left as it is: objects go to a directory
//! of the cache, and the tick rate, which has no prompt on User-Mode Linux, is set by a Kconfig file beside them.

pub mod build;
pub mod check;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What is known of a built kernel: kernel.json beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// The name by which scenarios refer to it: `linux-6.12`.
    pub name: String,
    /// Its release (`uname -r`).
    pub release: String,
    /// Ticks of its clock per second (`CONFIG_HZ`).
    pub hz: u32,
    /// What it was built of: SHA-256 of source, options, tick rate and compiler.
    pub key: String,
    /// SHA-256 of the executable.
    pub sha256: String,
    /// Where its source came from.
    pub source: String,
    /// The compiler.
    pub compiler: String,
    /// Options of the recipe that this kernel does not know.
    pub unknown_options: Vec<String>,
}

/// A kernel of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// What is known of it.
    pub info: KernelInfo,
    /// The executable.
    pub path: PathBuf,
}

/// A directory with kernels.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// The cache in this directory, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// That of the user: `ackclock` in `$XDG_CACHE_HOME`, else in `~/.cache`; `None` without a home.
    #[expect(clippy::disallowed_methods, reason = "where kernels are, not what a run does")]
    pub fn of_user() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
        Some(Self(cache.join("ackclock")))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.0.join("kernels").join(name)
    }

    /// All kernels, by name.
    ///
    /// # Errors
    /// Those of the directory, other than that it is not there.
    pub fn kernels(&self) -> io::Result<Vec<Kernel>> {
        let entries = match fs::read_dir(self.0.join("kernels")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut kernels = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            kernels.extend(self.kernel(&name)?);
        }
        kernels.sort_by(|a, b| a.info.name.cmp(&b.info.name));
        Ok(kernels)
    }

    /// The kernel of that name; `None` if there is none, or if it was not built to its end.
    ///
    /// # Errors
    /// Those of its files.
    pub fn kernel(&self, name: &str) -> io::Result<Option<Kernel>> {
        let directory = self.directory(name);
        let text = match fs::read(directory.join("kernel.json")) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let path = directory.join("linux");
        let info = serde_json::from_slice(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(path.is_file().then_some(Kernel { info, path }))
    }
}
