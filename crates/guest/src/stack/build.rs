//! Builds the program of a QUIC stack, in a cache next to that of kernels.
//!
//! The sources of our programs are in stacks/ of this crate; the stacks themselves come from the registry of their
//! language, by its build tool, which checks their content against the hashes that are kept here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

mod newest;
mod recipes;
mod toolchain;

use super::StackProgram;
use crate::kernel::Cache;
use crate::kernel::build::{hex, last_lines, sha256_of};
pub use newest::build_newest;
pub use recipes::{RECIPES, StackRecipe, Toolchain, find};

/// Metadata of a built stack, stored next to it as stack.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackInfo {
    /// Name in scenarios: `quic-go-0.65`.
    pub name: String,
    /// SHA-256 of the inputs of the build: the program's files and the compiler.
    pub key: String,
    /// SHA-256 of the executable.
    pub sha256: String,
    /// Origin of the source.
    pub source: String,
    /// The compiler.
    pub compiler: String,
}

/// A stack of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltStack {
    /// The metadata.
    pub info: StackInfo,
    /// The executable.
    pub path: PathBuf,
}

impl BuiltStack {
    /// Returns the stack for hosts of scenarios.
    pub fn stack(&self) -> Option<StackProgram> {
        let recipe = find(&self.info.name)?;
        Some(StackProgram::new(recipe.name, &self.path, recipe.controllers))
    }
}

/// Error of a build.
#[derive(Debug)]
pub enum StackBuildError {
    /// The build tool is missing: what cannot be built, and what to do.
    MissingTool(&'static str),
    /// A command failed.
    Failed {
        /// The operation.
        step: &'static str,
        /// The last lines of its output.
        output: String,
    },
    /// A system call failed.
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl core::fmt::Display for StackBuildError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::MissingTool(what) => f.write_str(what),
            Self::Failed { step, output } => write!(f, "{step} failed:\n{output}"),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl core::error::Error for StackBuildError {}

fn with(path: &Path) -> impl Fn(io::Error) -> StackBuildError {
    move |error| StackBuildError::Io { path: path.to_owned(), error }
}

/// Returns the stack with this name from the cache; `None` if it is not built.
///
/// # Errors
/// Errors of reading its files.
pub fn built(cache: &Cache, name: &str) -> io::Result<Option<BuiltStack>> {
    let directory = cache.path().join("stacks").join(name);
    let text = match fs::read(directory.join("stack.json")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let path = directory.join("host");
    let info = serde_json::from_slice(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(path.is_file().then_some(BuiltStack { info, path }))
}

/// Builds a stack, unless the cache has it from the same files and compiler.
///
/// # Errors
/// [`StackBuildError`].
pub fn build(recipe: &StackRecipe, cache: &Cache) -> Result<BuiltStack, StackBuildError> {
    let tools = toolchain::Tools::find(recipe.toolchain)?;
    let key = key(recipe, &tools.compiler);
    if let Ok(Some(found)) = built(cache, recipe.name)
        && found.info.key == key
    {
        return Ok(found);
    }
    let directory = cache.path().join("stacks").join(recipe.name);
    let source = directory.join("source");
    write_source(recipe, &source)?;
    let fresh = directory.join("host.new");
    tools.build(&directory, &source, &fresh)?;
    let info = StackInfo {
        name: recipe.name.to_owned(),
        key,
        sha256: sha256(&fresh)?,
        source: recipe.source.to_owned(),
        compiler: tools.compiler,
    };
    let path = directory.join("host");
    fs::rename(&fresh, &path).map_err(with(&path))?;
    let description = directory.join("stack.json");
    fs::write(&description, format!("{:#}\n", serde_json::json!(info)))
        .map_err(with(&description))?;
    Ok(BuiltStack { info, path })
}

/// Writes the files of our program into an empty directory.
fn write_source(recipe: &StackRecipe, source: &Path) -> Result<(), StackBuildError> {
    match fs::remove_dir_all(source) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(with(source)(error)),
        _ => {}
    }
    for (name, text) in recipe.files {
        let path = source.join(name);
        let folder = path.parent().unwrap_or(source);
        fs::create_dir_all(folder).map_err(with(folder))?;
        fs::write(&path, text).map_err(with(&path))?;
    }
    Ok(())
}

fn sha256(path: &Path) -> Result<String, StackBuildError> {
    sha256_of(path).map_err(|error| StackBuildError::Failed {
        step: "reading the program",
        output: error.to_string(),
    })
}

fn key(recipe: &StackRecipe, compiler: &str) -> String {
    let mut hash = Sha256::new();
    for (name, text) in recipe.files {
        hash.update(format!("{name} {}\n", text.len()));
        hash.update(text);
    }
    hash.update(compiler);
    hex(&hash.finalize())
}

/// Runs a command and returns its standard output.
fn output(command: &mut Command, step: &'static str) -> Result<String, StackBuildError> {
    let program = PathBuf::from(command.get_program());
    let output = command.stdin(Stdio::null()).output().map_err(with(&program))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(StackBuildError::Failed { step, output: last_lines(&String::from_utf8_lossy(&text)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_a_stack_are_known() {
        for recipe in &RECIPES {
            assert_eq!(find(recipe.name).map(|found| found.name), Some(recipe.name));
            assert_eq!(find(recipe.wanted).map(|found| found.name), Some(recipe.name));
            assert!(quic::QuicProfile::named(recipe.profile).is_some(), "{}", recipe.profile);
        }
        assert!(find("quic-go").is_none());
    }

    /// Another program or compiler is another build.
    #[test]
    fn the_key_depends_on_the_compiler() {
        let recipe = &RECIPES[0];
        assert_eq!(key(recipe, "go1"), key(recipe, "go1"));
        assert_ne!(key(recipe, "go1"), key(recipe, "go2"));
    }
}
