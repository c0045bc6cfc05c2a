//! `cargo xtask release`: every package of a release, with checksums and a bill of materials.
//!
//! - `ackclock-VERSION-TARGET.tar.gz`: the static binary, manual pages, completions, licences,
//!   an extcap for Wireshark;
//! - `ackclock_VERSION_ARCH.deb`: the same for Debian, made by `dpkg-deb`;
//! - `docker/`: a directory for `docker build`, from `packaging/Dockerfile`;
//! - `wheels/`: the Python package for the stable ABI, made by maturin;
//! - `ackclock.cdx.json`: the bill of materials of the binary ([`sbom`]);
//! - `THIRD-PARTY.md`: the licences of everything in the binary ([`notices`]);
//! - `SHA256SUMS`.
//!
//! What lacks its tool is skipped, and the report says so; with `--require` it is an error, and with `--publish` also
//! what only the publisher knows (`packaging/publisher.toml`).

mod debian;
mod notices;
mod publisher;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use sha2::{Digest, Sha256};

/// The static target, without a C library at run time.
const MUSL: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-musl"
} else {
    "x86_64-unknown-linux-musl"
};
/// Arguments of the linker. A static program that is loaded at a random address has a table of its
/// pointers, which takes a megabyte unless it is packed (DT_RELR, which the C library of the target reads).
const LINKER: [&str; 1] = ["-Wl,-z,pack-relative-relocs"];
/// Limit of the stripped binary.
const MOST_BYTES: u64 = 20_000_000;
/// Shells with completions, and the names of their files.
const SHELLS: [(&str, &str); 4] = [
    ("bash", "bash/ackclock"),
    ("zsh", "zsh/_ackclock"),
    ("fish", "fish/ackclock.fish"),
    ("powershell", "powershell/ackclock.ps1"),
];

/// What has to be there for a release to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Demand {
    /// What can be made with the tools at hand.
    Possible,
    /// Every part.
    Require,
    /// Every part, and what the publisher sets.
    Publish,
}

type Done<T = ()> = Result<T, String>;

/// Makes all packages; `binary` is a program to pack instead of building one.
pub(crate) fn run(arguments: &[std::ffi::OsString]) -> ExitCode {
    let (mut binary, mut demand) = (None, Demand::Possible);
    for argument in arguments {
        match argument.to_str() {
            Some("--require") => demand = Demand::Require,
            Some("--publish") => demand = Demand::Publish,
            Some(other) if other.starts_with('-') => {
                eprintln!("release: unknown option {other}: --require and --publish are known");
                return ExitCode::from(2);
            }
            _ => binary = Some(Path::new(argument)),
        }
    }
    match release(binary, demand) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("release: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the licences of everything that a crate of the workspace is linked from, with their texts.
pub(crate) fn licences(package: &str, target: &str) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let linked = sbom::linked(&root, package, target);
    match linked.and_then(|packages| notices::of("The engine of this page", &packages)) {
        Ok(page) => {
            print!("{page}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("licences: {error}");
            ExitCode::from(2)
        }
    }
}

fn release(binary: Option<&Path>, demand: Demand) -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let out = root.join("target/release-files");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(text(&out))?;
    }
    fs::create_dir_all(&out).map_err(text(&out))?;
    let (target, program) = match binary {
        Some(program) => (MUSL, program.to_owned()),
        None => (MUSL, build(&root)?),
    };
    let version = env!("CARGO_PKG_VERSION");
    let tree = out.join(format!("ackclock-{version}-{target}"));
    gather(&root, &program, &tree)?;
    let materials = sbom::of(&root, "ackclock", target)?;
    fs::write(out.join("ackclock.cdx.json"), &materials.json).map_err(text(&out))?;
    let notices = notices::of("The binary", &materials.packages)?;
    fs::write(out.join("THIRD-PARTY.md"), &notices).map_err(text(&out))?;
    fs::write(tree.join("THIRD-PARTY.md"), &notices).map_err(text(&tree))?;
    let name = format!("ackclock-{version}-{target}");
    call(
        Command::new("tar")
            .current_dir(&out)
            .args(["--sort=name", "--owner=0", "--group=0"])
            .args(["--mtime=@0", "--numeric-owner", "-czf", &format!("{name}.tar.gz"), &name]),
    )?;
    let publisher = publisher::Publisher::read(&root)?;
    let mut missing = Vec::new();
    debian::make(&tree, &out, version, &publisher, &mut missing)?;
    docker(&root, &tree, &out)?;
    match binary {
        None => wheels(&root, &out, &mut missing)?,
        Some(_) => missing.push("wheels: a binary was given".to_owned()),
    }
    let size = fs::metadata(tree.join("ackclock")).map_err(text(&tree))?.len();
    fs::remove_dir_all(&tree).map_err(text(&tree))?;
    checksums(&out)?;
    // After all packages are made: they show what is too large.
    if size > MOST_BYTES {
        return Err(format!("the binary has {size} bytes, more than {MOST_BYTES}"));
    }
    let unset = publisher.unset();
    for part in &missing {
        println!("missing: {part}");
    }
    for name in &unset {
        println!("to be set by the publisher: {name} (packaging/publisher.toml)");
    }
    let lacks = match demand {
        Demand::Possible => false,
        Demand::Require => !missing.is_empty(),
        Demand::Publish => !missing.is_empty() || !unset.is_empty(),
    };
    match lacks {
        true => Err("parts of the release are missing".to_owned()),
        false => Ok(()),
    }
}

/// Builds the static binary, stripped, with all features.
#[expect(clippy::disallowed_methods, reason = "the variable names the folder to build in")]
fn build(root: &Path) -> Done<PathBuf> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["rustc", "--profile", "packages", "--package", "ackclock"]);
    command.args(["--bin", "ackclock", "--all-features", "--target", MUSL, "--"]);
    command.args(LINKER.map(|argument| format!("-Clink-arg={argument}")));
    call(&mut command)
        .map_err(|error| format!("{error}; the target comes with: rustup target add {MUSL}"))?;
    let built =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(built.join(MUSL).join("packages/ackclock"))
}

/// Collects the files of the archive: program, manual pages, completions, licences.
fn gather(root: &Path, program: &Path, tree: &Path) -> Done {
    fs::create_dir_all(tree).map_err(text(tree))?;
    let own = tree.join("ackclock");
    fs::copy(program, &own).map_err(text(program))?;
    let size = fs::metadata(&own).map_err(text(&own))?.len();
    println!("binary: {size} bytes");
    call(Command::new(&own).arg("man").arg(tree.join("man/man1")))?;
    for (shell, name) in SHELLS {
        let path = tree.join("completions").join(name);
        let directory = path.parent().ok_or("a path without directory")?;
        fs::create_dir_all(directory).map_err(text(directory))?;
        let shown = Command::new(&own).args(["completions", shell]).output().map_err(text(&own))?;
        fs::write(&path, shown.stdout).map_err(text(&path))?;
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md", "SECURITY.md"] {
        fs::copy(root.join(name), tree.join(name)).map_err(text(&root.join(name)))?;
    }
    let extcap = "wireshark/ackclock-extcap";
    put(&root.join("packaging").join(extcap), &tree.join(extcap))
}

/// Makes the directory for `docker build`.
fn docker(root: &Path, tree: &Path, out: &Path) -> Done {
    put(&tree.join("ackclock"), &out.join("docker/ackclock"))?;
    put(&root.join("packaging/Dockerfile"), &out.join("docker/Dockerfile"))
}

/// Makes the wheel of the Python package.
fn wheels(root: &Path, out: &Path, missing: &mut Vec<String>) -> Done {
    if Command::new("maturin").arg("--version").output().is_err() {
        missing.push("wheels: they need maturin (PyPI)".to_owned());
        return Ok(());
    }
    let mut command = Command::new("maturin");
    command.current_dir(root).args(["build", "--locked", "--out"]).arg(out.join("wheels"));
    // zig links with the symbols of an old C library, so that the wheel is for every Linux since 2014.
    let zig = Command::new("python3").args(["-m", "ziglang", "version"]).output();
    if zig.is_ok_and(|zig| zig.status.success()) {
        command.args(["--zig", "--compatibility", "manylinux2014"]);
    } else {
        let why = "wheels for Linux since 2014: they need ziglang (PyPI); these are for this system and newer ones";
        missing.push(why.to_owned());
    }
    call(&mut command)
}

/// Writes the checksums of all files below `out`.
fn checksums(out: &Path) -> Done {
    let mut files = Vec::new();
    collect(out, &mut files)?;
    files.sort();
    let mut lines = String::new();
    for file in files {
        let bytes = fs::read(&file).map_err(text(&file))?;
        let name = file.strip_prefix(out).map_err(|error| error.to_string())?.display().to_string();
        let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        lines += &format!("{sum}  {name}\n");
    }
    print!("{lines}");
    fs::write(out.join("SHA256SUMS"), lines).map_err(text(out))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Done {
    for entry in fs::read_dir(directory).map_err(text(directory))? {
        let path = entry.map_err(text(directory))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn put(from: &Path, to: &Path) -> Done {
    let directory = to.parent().ok_or("a path without directory")?;
    fs::create_dir_all(directory).map_err(text(directory))?;
    fs::copy(from, to).map(drop).map_err(text(from))
}

fn call(command: &mut Command) -> Done {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// Adds the path to an I/O error.
fn text(path: &Path) -> impl Fn(std::io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}
