//! Builds a kernel and process 1 of its guests.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest as _, Sha256};

use super::changes::{CLOCK_COST, TIMER_STEPS, end_with_kernel, exact_timer, free_clock};
use super::{Cache, Kernel, KernelInfo};

/// Options of every kernel.
const CONFIG: &str = include_str!("../../recipe/kernel.config");
/// Process 1.
const INIT: &str = include_str!("../../recipe/init.c");
/// The part of process 1 that executes the system calls of a packet script.
const SCRIPT: &str = include_str!("../../recipe/script.c");
/// What the files that save a process's registers are compiled with.
const XSTATE: &str = include_str!("../../recipe/xstate.h");
/// Approximate number of objects that a build compiles, for progress.
const OBJECTS: u32 = 660;
/// Lines of make's output that an error shows.
const SHOWN: usize = 15;

/// What to build.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The source.
    pub source: Source,
    /// Name of the kernel; by default derived from its version, or from the name of its tree.
    pub name: Option<String>,
    /// Ticks of the kernel clock per second.
    pub hz: u32,
    /// Number of concurrent compilations.
    pub jobs: usize,
}

/// Source of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Debian's package linux-source-VERSION, installed or fetched by apt-get.
    Debian(String),
    /// A tarball of the kernel, or a Debian package that contains one.
    Archive(PathBuf),
    /// A source tree, possibly patched by the user.
    Tree(PathBuf),
}

/// Progress of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The current step.
    Step(&'a str),
    /// Objects compiled, and their approximate total.
    Objects(u32, u32),
}

/// Error of a build.
#[derive(Debug)]
pub enum BuildError {
    /// Missing programs or libraries, each with the Debian package that contains it.
    Missing(Vec<(&'static str, &'static str)>),
    /// The source was not found.
    NoSource(String),
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

impl core::fmt::Display for BuildError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Missing(tools) => {
                let names: Vec<_> = tools.iter().map(|tool| tool.0).collect();
                let mut packages: Vec<_> = tools.iter().map(|tool| tool.1).collect();
                packages.dedup();
                let (names, packages) = (names.join(", "), packages.join(" "));
                write!(f, "a kernel cannot be built without {names}: apt-get install {packages}")
            }
            Self::NoSource(message) => f.write_str(message),
            Self::Failed { step, output } => write!(f, "{step} failed:\n{output}"),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl core::error::Error for BuildError {}

pub(super) fn with(path: &Path) -> impl Fn(io::Error) -> BuildError {
    move |error| BuildError::Io { path: path.to_owned(), error }
}

/// Returns the tools missing for a build of this source, each with its Debian package.
pub fn missing_tools(source: &Source) -> Vec<(&'static str, &'static str)> {
    let mut tools = vec![
        ("gcc", "gcc"),
        ("make", "make"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("strip", "binutils"),
    ];
    if !matches!(source, Source::Tree(_)) {
        tools.extend([("tar", "tar"), ("xz", "xz-utils")]);
    }
    tools.retain(|(tool, _)| !runs(tool));
    if runs("gcc") && !has_static_libc() {
        tools.push(("libc.a", "libc6-dev"));
    }
    tools
}

fn runs(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// gcc prints the path of a library that it finds, and only the name of one that it does not find.
fn has_static_libc() -> bool {
    let output = Command::new("gcc").arg("-print-file-name=libc.a").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains('/'))
}

/// Builds a kernel unless the cache contains it; of a tree, only changed files are recompiled.
///
/// # Errors
/// [`BuildError`].
pub fn build(
    recipe: &Recipe,
    cache: &Cache,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Kernel, BuildError> {
    let missing = missing_tools(&recipe.source);
    if !missing.is_empty() {
        return Err(BuildError::Missing(missing));
    }
    let compiler = first_line(Command::new("gcc").arg("--version"), "the version of gcc")?;
    let (tree, identity) = tree(&recipe.source, cache, progress)?;
    let version = version(&tree)?;
    let name = match (&recipe.name, &recipe.source) {
        (Some(name), _) => name.clone(),
        (None, Source::Tree(path)) => path
            .canonicalize()
            .ok()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "linux".to_owned()),
        (None, _) => format!("linux-{version}"),
    };
    if !is_name(&name) {
        let message =
            format!("`{name}` cannot be a kernel's name: use letters, digits, `-`, `.`, `_`");
        return Err(BuildError::NoSource(message));
    }
    let hz = recipe.hz.to_string();
    let steps = TIMER_STEPS.map(|(_, _, exact)| exact).concat();
    let clock = [CLOCK_COST.1, &steps].concat();
    let parts = [identity.as_deref().unwrap_or(""), CONFIG, &hz, &compiler, &clock, XSTATE];
    let key = hex(&Sha256::digest(parts.join("\n")));
    let known = cache.kernel(&name).map_err(with(cache.path()))?;
    if let Some(kernel) = known.filter(|kernel| identity.is_some() && kernel.info.key == key) {
        return Ok(kernel);
    }
    let objects = cache.path().join("build").join(&name);
    fs::create_dir_all(&objects).map_err(with(&objects))?;
    progress(Progress::Step("configuring"));
    let unknown_options = configure(&tree, &objects, recipe.hz)?;
    compile(&tree, &objects, recipe.jobs, progress)?;
    let directory = cache.directory(&name);
    fs::create_dir_all(&directory).map_err(with(&directory))?;
    let path = directory.join("linux");
    let temporary = directory.join("linux.new");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&temporary).arg(objects.join("linux"));
    output(&mut strip, "strip")?;
    fs::rename(&temporary, &path).map_err(with(&path))?;
    let release = objects.join("include/config/kernel.release");
    let info = KernelInfo {
        name,
        release: fs::read_to_string(&release).map_err(with(&release))?.trim().to_owned(),
        hz: recipe.hz,
        key,
        sha256: sha256_of(&path)?,
        source: match &recipe.source {
            Source::Debian(version) => format!("linux-source-{version}"),
            Source::Archive(path) | Source::Tree(path) => path.display().to_string(),
        },
        compiler,
        unknown_options,
    };
    let description = directory.join("kernel.json");
    let text = serde_json::to_string_pretty(&info).unwrap_or_default() + "\n";
    fs::write(&description, text).map_err(with(&description))?;
    Ok(Kernel { info, path })
}

/// Returns process 1 of guests, which is compiled once per version.
///
/// # Errors
/// [`BuildError`].
pub fn init(cache: &Cache) -> Result<PathBuf, BuildError> {
    compile_init(cache, None)
}

/// Returns process 1 of a guest that a packet script drives.
///
/// # Errors
/// [`BuildError`].
pub fn script_init(cache: &Cache) -> Result<PathBuf, BuildError> {
    compile_init(cache, Some(SCRIPT))
}

fn compile_init(cache: &Cache, script: Option<&str>) -> Result<PathBuf, BuildError> {
    let directory = cache.path().join("init");
    let key = format!("{INIT}{}", script.unwrap_or_default());
    let path = directory.join(&hex(&Sha256::digest(key))[..16]);
    if path.is_file() {
        return Ok(path);
    }
    let missing: Vec<_> = if !runs("gcc") {
        vec![("gcc", "gcc")]
    } else if !has_static_libc() {
        vec![("libc.a", "libc6-dev")]
    } else {
        Vec::new()
    };
    if !missing.is_empty() {
        return Err(BuildError::Missing(missing));
    }
    fs::create_dir_all(&directory).map_err(with(&directory))?;
    // Two processes, or threads, may compile it at once: each its own file, and the last rename wins.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let stem = format!("{}-{number}", std::process::id());
    let sources = directory.join(format!("source-{stem}"));
    fs::create_dir_all(&sources).map_err(with(&sources))?;
    let source = sources.join("init.c");
    let temporary = directory.join(format!("init-{stem}"));
    fs::write(&source, INIT).map_err(with(&source))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-Wall", "-Os", "-static", "-s"]);
    if let Some(script) = script {
        let file = sources.join("script.c");
        fs::write(&file, script).map_err(with(&file))?;
        gcc.arg("-DACKCLOCK_SCRIPTS");
    }
    gcc.arg("-o").arg(&temporary).arg(&source);
    let compiled = output(&mut gcc, "the compilation of process 1");
    let _ = fs::remove_dir_all(&sources);
    compiled?;
    fs::rename(&temporary, &path).map_err(with(&path))?;
    Ok(path)
}

/// Returns the tree of a source and the identity of its content; the user's own tree has none.
fn tree(
    source: &Source,
    cache: &Cache,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(PathBuf, Option<String>), BuildError> {
    let archive = match source {
        Source::Tree(path) => {
            return match path.join("arch/um/Kconfig").is_file() {
                true => Ok((path.canonicalize().map_err(with(path))?, None)),
                false => {
                    let path = path.display();
                    Err(BuildError::NoSource(format!("{path} is no tree of the Linux kernel")))
                }
            };
        }
        Source::Archive(path) => path.clone(),
        Source::Debian(version) => debian(version, cache, progress)?,
    };
    progress(Progress::Step("reading the archive"));
    let identity = sha256_of(&archive)?;
    let directory = cache.path().join("source").join(&identity[..16]);
    let done = directory.join(".unpacked");
    if !done.is_file() {
        progress(Progress::Step("unpacking the source"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).map_err(with(&directory))?;
        unpack(&archive, &directory)?;
        fs::write(&done, "").map_err(with(&done))?;
    }
    let entries = fs::read_dir(&directory).map_err(with(&directory))?;
    let trees = entries.flatten().map(|entry| entry.path());
    let mut trees = trees.filter(|path| path.join("arch/um/Kconfig").is_file());
    let none = || BuildError::NoSource(format!("{} has no Linux kernel", archive.display()));
    let tree = trees.next().ok_or_else(none)?;
    free_clock(&tree)?;
    exact_timer(&tree)?;
    end_with_kernel(&tree)?;
    Ok((tree, Some(identity)))
}

/// Returns the archive of Debian's package: the installed one, else a downloaded one, which needs
/// no privilege.
fn debian(
    version: &str,
    cache: &Cache,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BuildError> {
    let package = format!("linux-source-{version}");
    let installed = PathBuf::from(format!("/usr/src/{package}.tar.xz"));
    if installed.is_file() {
        return Ok(installed);
    }
    let none = || {
        let cure = "give a tarball, a package or a tree with --source";
        BuildError::NoSource(format!(
            "{package} is not installed, and apt-get does not find it: apt-get install {package}, or {cure}"
        ))
    };
    if !runs("apt-get") {
        return Err(none());
    }
    let directory = cache.path().join("packages").join(&package);
    fs::create_dir_all(&directory).map_err(with(&directory))?;
    let find = || -> Option<PathBuf> {
        let entries = fs::read_dir(&directory).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|path| has_extension(path, "deb"))
    };
    if find().is_none() {
        progress(Progress::Step("fetching Debian's source package"));
        let mut fetch = Command::new("apt-get");
        fetch.arg("download").arg(&package).current_dir(&directory);
        output(&mut fetch, "apt-get download").map_err(|_| none())?;
    }
    find().ok_or_else(none)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == OsStr::new(extension))
}

fn unpack(archive: &Path, directory: &Path) -> Result<(), BuildError> {
    let mut archive = archive.to_owned();
    if has_extension(&archive, "deb") {
        let mut package = Command::new("dpkg-deb");
        package.arg("--extract").arg(&archive).arg(directory);
        output(&mut package, "unpacking the package")?;
        let inside = directory.join("usr/src");
        let entries = fs::read_dir(&inside).map_err(with(&inside))?;
        let tarball =
            entries.flatten().map(|entry| entry.path()).find(|path| has_extension(path, "xz"));
        let none = || BuildError::NoSource(format!("{} has no tarball", archive.display()));
        archive = tarball.ok_or_else(none)?;
    }
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(directory);
    output(&mut tar, "unpacking the source").map(drop)
}

/// Returns VERSION.PATCHLEVEL of a tree.
fn version(tree: &Path) -> Result<String, BuildError> {
    let makefile = tree.join("Makefile");
    let text = fs::read_to_string(&makefile).map_err(with(&makefile))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches([' ', '=']).trim().to_owned())
    };
    let version = field("VERSION").zip(field("PATCHLEVEL"));
    let none = || BuildError::NoSource(format!("{} has no version", makefile.display()));
    version.map(|(major, minor)| format!("{major}.{minor}")).ok_or_else(none)
}

/// Creates a make command in the tree with the settings that must be equal in every build: its timestamp and number
/// (which would count the builds in a folder) are part of the kernel's entropy.
fn make(tree: &Path, objects: &Path) -> Command {
    let mut make = Command::new("make");
    make.current_dir(tree).arg("ARCH=um").arg(format!("O={}", objects.display()));
    make.arg(format!("KBUILD_KCONFIG={}", objects.join("Kconfig.guest").display()));
    make.env("KBUILD_BUILD_TIMESTAMP", "2020-01-01").env("KBUILD_BUILD_VERSION", "1");
    make.env("KBUILD_BUILD_USER", "ackclock").env("KBUILD_BUILD_HOST", "ackclock");
    make.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("CARGO_MAKEFLAGS");
    make.stdin(Stdio::null());
    make
}

/// Writes the configuration; returns the options that this kernel does not have.
fn configure(tree: &Path, objects: &Path, hz: u32) -> Result<Vec<String>, BuildError> {
    // HZ has no prompt, and the first default applies: this one precedes that of arch/um.
    let kconfig = tree.join("Kconfig");
    let text = fs::read_to_string(&kconfig).map_err(with(&kconfig))?;
    let tick = format!("config HZ\n\tint\n\tdefault {hz}\n");
    let lines = text.lines().map(|line| match line.starts_with("mainmenu") {
        true => format!("{line}\n\n{tick}\n"),
        false => format!("{line}\n"),
    });
    let own = objects.join("Kconfig.guest");
    write_changed(&own, &lines.collect::<String>())?;
    let options = objects.join("guest.config");
    write_changed(&options, CONFIG)?;
    let mut configure = make(tree, objects);
    configure.arg(format!("KCONFIG_ALLCONFIG={}", options.display())).arg("allnoconfig");
    output(&mut configure, "the configuration of the kernel")?;
    let taken = objects.join(".config");
    let text = fs::read_to_string(&taken).map_err(with(&taken))?;
    if !text.lines().any(|line| line == format!("CONFIG_HZ={hz}")) {
        let output = format!("the tick rate of {hz} Hz was not taken");
        return Err(BuildError::Failed { step: "the configuration of the kernel", output });
    }
    let options = CONFIG.lines().filter(|line| line.starts_with("CONFIG_"));
    let wanted = options.filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let unknown = wanted.filter(|name| {
        let line = format!("{name}=");
        !text.lines().any(|taken| taken.starts_with(&line))
    });
    Ok(unknown.map(str::to_owned).collect())
}

/// Writes a file unless it already has this content, so that its dependents are not recompiled.
fn write_changed(path: &Path, content: &str) -> Result<(), BuildError> {
    if fs::read_to_string(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    fs::write(path, content).map_err(with(path))
}

fn compile(
    tree: &Path,
    objects: &Path,
    jobs: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), BuildError> {
    progress(Progress::Step("compiling"));
    let state = objects.join("xstate.h");
    write_changed(&state, XSTATE)?;
    let mut command = make(tree, objects);
    command.arg(format!("CFLAGS_registers.o=-include {}", state.display()));
    command.arg(format!("-j{}", jobs.max(1))).arg("linux");
    let errors = objects.join("errors");
    let file = File::create(&errors).map_err(with(&errors))?;
    command.stdout(Stdio::piped()).stderr(file);
    let mut child = command.spawn().map_err(with(Path::new("make")))?;
    let mut compiled = 0;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if line.trim_start().starts_with("CC ") {
                compiled += 1;
                progress(Progress::Objects(compiled, OBJECTS.max(compiled)));
            }
        }
    }
    let status = child.wait().map_err(with(Path::new("make")))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(&errors).unwrap_or_default();
    Err(BuildError::Failed { step: "the compilation of the kernel", output: last_lines(&text) })
}

/// Runs a command and returns its standard output.
fn output(command: &mut Command, step: &'static str) -> Result<String, BuildError> {
    let program = PathBuf::from(command.get_program());
    let output = command.stdin(Stdio::null()).output().map_err(with(&program))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(BuildError::Failed { step, output: last_lines(&String::from_utf8_lossy(&text)) })
}

fn first_line(command: &mut Command, step: &'static str) -> Result<String, BuildError> {
    let text = output(command, step)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed)
}

pub(crate) fn sha256_of(path: &Path) -> Result<String, BuildError> {
    let mut file = File::open(path).map_err(with(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let len = file.read(&mut buffer).map_err(with(path))?;
        if len == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..len]);
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_file_names() {
        for name in ["linux-6.12", "my_patch", "a"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a b", ".hidden"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_directory_without_a_kernel_is_no_source() {
        let recipe = Recipe {
            source: Source::Tree(env!("CARGO_MANIFEST_DIR").into()),
            name: None,
            hz: 250,
            jobs: 1,
        };
        let cache = Cache::new("/nonexistent");
        let missing = missing_tools(&recipe.source);
        let error = build(&recipe, &cache, &mut |_| {}).unwrap_err();
        match error {
            BuildError::NoSource(message) => assert!(message.contains("no tree"), "{message}"),
            BuildError::Missing(tools) => assert_eq!(tools, missing),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn missing_tools_are_named_with_their_packages() {
        let error = BuildError::Missing(vec![("flex", "flex"), ("libc.a", "libc6-dev")]);
        let expected =
            "a kernel cannot be built without flex, libc.a: apt-get install flex libc6-dev";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn every_option_of_the_recipe_is_named_once() {
        let mut names: Vec<&str> = CONFIG
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(|line| line.split_once('=').unwrap().0)
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|name| name.starts_with("CONFIG_")));
    }
}
