//! Libraries by their names in scenarios: `cc = "./tcp_xyz.so"`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use cc::ExternalAlgorithm;

/// Before the name of a library that runs inside of this process.
const IN_PROCESS: &str = "in-process:";

/// A library that has been loaded.
struct Known {
    name: &'static str,
    path: PathBuf,
    state: (u64, Option<SystemTime>),
    algorithm: ExternalAlgorithm,
}

/// All libraries of this program: a sweep names one many times.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The file of `PATH.so` or `in-process:PATH.so`; `None` if the text names no library.
pub fn library_file(text: &str) -> Option<&str> {
    let file = text.strip_prefix(IN_PROCESS).unwrap_or(text);
    let ending = Path::new(file).extension()?.to_str()?;
    matches!(ending, "so" | "dylib").then_some(file)
}

/// The controller in the library that a scenario calls `name`; its file is looked for in `folder`, then where the program
/// was started.
///
/// # Errors
/// There is no such file, it cannot be loaded, or it is no controller: a sentence that names it.
pub fn controller(name: &str, folder: &Path) -> Result<ExternalAlgorithm, String> {
    find(name, folder).map(|(algorithm, _)| algorithm)
}

/// The same, and the bytes of the file.
///
/// # Errors
/// Those of [`controller`].
pub fn controller_with_bytes(
    name: &str,
    folder: &Path,
) -> Result<(ExternalAlgorithm, Vec<u8>), String> {
    let (algorithm, path) = find(name, folder)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((algorithm, bytes))
}

fn find(name: &str, folder: &Path) -> Result<(ExternalAlgorithm, PathBuf), String> {
    let Some(file) = library_file(name) else {
        return Err(format!("`{name}` is no library: its name ends in .so"));
    };
    let beside = folder.join(file);
    let path = if beside.exists() { beside } else { Path::new(file).to_owned() };
    let shown = path.display().to_string();
    let wrong = |what: &str| format!("{shown}: {what}");
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(error) => {
            let hint = match Path::new(file).with_extension("c") {
                source if source.exists() || folder.join(&source).exists() => {
                    format!("; ackclock cc build {} makes it", source.display())
                }
                _ => String::new(),
            };
            return Err(wrong(&format!("cannot read it: {error}{hint}")));
        }
    };
    let metadata = std::fs::metadata(&path).map_err(|error| wrong(&error.to_string()))?;
    let state = (metadata.len(), metadata.modified().ok());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |one: &&Known| one.name == name && one.path == path && one.state == state;
    if let Some(found) = known.iter().find(same) {
        return Ok((found.algorithm, path));
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let algorithm = load(name, &path, known.len() as u64).map_err(|what| wrong(&what))?;
    known.push(Known { name, path: path.clone(), state, algorithm });
    Ok((algorithm, path))
}

#[cfg(unix)]
fn load(name: &'static str, path: &Path, number: u64) -> Result<ExternalAlgorithm, String> {
    let library = crate::library::Library::load(name, path, number, name.starts_with(IN_PROCESS))?;
    Ok(ExternalAlgorithm::of_kernel(library))
}

#[cfg(not(unix))]
fn load(_: &'static str, _: &Path, _: u64) -> Result<ExternalAlgorithm, String> {
    Err("controllers in C need Linux or another Unix".to_owned())
}

/// What a library is: its name in its file, and the names of its operations.
///
/// # Errors
/// Those of [`controller`].
#[cfg(unix)]
pub fn describe(path: &Path) -> Result<(String, Vec<&'static str>), String> {
    use cc::kernel::{KernelLibrary as _, KernelOp};

    let full = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let library = crate::library::Library::load("library", &full, u64::MAX, false)
        .map_err(|what| format!("{}: {what}", path.display()))?;
    let all = [
        KernelOp::Init,
        KernelOp::Release,
        KernelOp::Ssthresh,
        KernelOp::CongAvoid,
        KernelOp::SetState,
        KernelOp::CwndEvent,
        KernelOp::InAckEvent,
        KernelOp::PktsAcked,
        KernelOp::CongControl,
        KernelOp::UndoCwnd,
        KernelOp::MinTsoSegs,
        KernelOp::SndbufExpand,
    ];
    let traits = library.traits();
    let operations = all.into_iter().filter(|&op| traits.has(op)).map(KernelOp::name);
    Ok((library.own_name().to_owned(), operations.collect()))
}

/// What a library is.
///
/// # Errors
/// Always: controllers in C need Unix.
#[cfg(not(unix))]
pub fn describe(path: &Path) -> Result<(String, Vec<&'static str>), String> {
    Err(format!("{}: controllers in C need Linux or another Unix", path.display()))
}
