//! Kernels for guests: found in a cache, or built there from source.
//!
//! Kernels are never shipped: [`build`] compiles them from Debian's linux-source package, a tarball
//! or a tree, with the options of recipe/kernel.config. A user's tree is unchanged: objects are stored
//! in a directory of the cache, and the tick rate, which has no prompt on User-Mode Linux, is set
//! by a Kconfig file next to them. Of source unpacked here one line of arch/um/kernel/time.c is changed, so that a
//! reading of the clock takes no virtual time.

pub mod build;
pub mod check;

mod changes;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Metadata of a built kernel, stored next to it as kernel.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Name in scenarios: `linux-6.12`.
    pub name: String,
    /// Release (`uname -r`).
    pub release: String,
    /// Ticks of the kernel clock per second (`CONFIG_HZ`).
    pub hz: u32,
    /// SHA-256 of the inputs of the build: source, options, tick rate and compiler.
    pub key: String,
    /// SHA-256 of the executable.
    pub sha256: String,
    /// Origin of the source.
    pub source: String,
    /// The compiler.
    pub compiler: String,
    /// Options of the recipe that this kernel does not have.
    pub unknown_options: Vec<String>,
}

/// A kernel of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The metadata.
    pub info: KernelInfo,
    /// The executable.
    pub path: PathBuf,
}

/// A directory with kernels.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// Creates the cache in this directory, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the cache of the user: `ackclock` in `$XDG_CACHE_HOME`, else in `~/.cache`; `None`
    /// without a home.
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
    /// Errors of reading the directory; a missing directory is no error.
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

    /// Returns the kernel with this name; `None` if it does not exist or its build is incomplete.
    ///
    /// # Errors
    /// Errors of reading its files.
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
