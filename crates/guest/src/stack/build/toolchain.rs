//! The compilers and build tools of stacks.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{StackBuildError, Toolchain, output, with};

/// A toolchain that is installed.
#[derive(Debug)]
pub(super) struct Tools {
    toolchain: Toolchain,
    pub(super) program: PathBuf,
    /// Its name and version.
    pub(super) compiler: String,
}

impl Tools {
    /// Finds a toolchain.
    ///
    /// # Errors
    /// [`StackBuildError::MissingTool`].
    pub(super) fn find(toolchain: Toolchain) -> Result<Self, StackBuildError> {
        let (variable, names, arguments, missing): (_, &[&str], &[&str], _) = match toolchain {
            Toolchain::Go => (
                "GO",
                &["go", "/usr/local/go/bin/go"],
                &["version"],
                "quic-go cannot be built without the program `go` (Go 1.26 or later): install Go, or set GO to its path",
            ),
            Toolchain::Cargo => (
                "CARGO",
                &["cargo"],
                &["--version"],
                "the stack cannot be built without the program `cargo` (Rust 1.88 or later): install Rust, or set CARGO to its path",
            ),
            Toolchain::Python => (
                "PYTHON",
                &["python3"],
                &["--version"],
                "the stack cannot be built without the program `python3` (3.10 or later): install Python, or set PYTHON to its path",
            ),
            Toolchain::C => (
                "CC",
                &["cc", "gcc", "clang"],
                &["--version"],
                "the stack cannot be built without a C compiler: install one, or set CC to its path",
            ),
        };
        let program = chosen(variable, names, arguments);
        let program = program.ok_or(StackBuildError::MissingTool(missing))?;
        let compiler = output(Command::new(&program).args(arguments), "asking for the version")?;
        let compiler = compiler.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Self { toolchain, program, compiler })
    }

    /// Builds the files in `source` to the executable `host`.
    pub(super) fn build(
        &self,
        directory: &Path,
        source: &Path,
        host: &Path,
    ) -> Result<(), StackBuildError> {
        match self.toolchain {
            Toolchain::Go => self.go(source, host),
            Toolchain::Cargo => self.cargo(directory, source, host),
            Toolchain::Python => self.python(directory, source, host),
            Toolchain::C => self.c(source, host),
        }
    }

    fn go(&self, source: &Path, host: &Path) -> Result<(), StackBuildError> {
        let root = output(Command::new(&self.program).args(["env", "GOROOT"]), "go env")?;
        let added = Path::new(root.trim()).join("src/runtime/ackclock_next_timer.go");
        let overlay = source.join("overlay.json");
        let replace = serde_json::json!({ "Replace": { added.to_string_lossy(): source.join("overlay/next_timer.go") } });
        fs::write(&overlay, replace.to_string()).map_err(with(&overlay))?;
        let mut command = Command::new(&self.program);
        command.arg("build").args(["-trimpath", "-buildvcs=false", "-mod=readonly", "-overlay"]);
        command.arg(&overlay).arg("-o").arg(host).arg(".").current_dir(source);
        output(&mut command, "go build").map(|_| ())
    }

    fn cargo(&self, directory: &Path, source: &Path, host: &Path) -> Result<(), StackBuildError> {
        let target = directory.join("target");
        let mut command = Command::new(&self.program);
        command.args(["build", "--release", "--locked", "--target-dir"]).arg(&target);
        // Settings of a build that runs this one are none of this.
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"]
        {
            command.env_remove(name);
        }
        output(command.current_dir(source), "cargo build")?;
        let built = target.join("release/host");
        fs::rename(&built, host).map_err(with(&built))?;
        // Objects of hundreds of megabytes that no other build uses.
        fs::remove_dir_all(&target).map_err(with(&target))
    }

    /// The packages are in an environment of their own, and the executable is a script that runs main.py there.
    fn python(&self, directory: &Path, source: &Path, host: &Path) -> Result<(), StackBuildError> {
        let environment = directory.join("environment");
        let mut command = Command::new(&self.program);
        command.args(["-m", "venv", "--clear"]).arg(&environment);
        output(&mut command, "python3 -m venv (Debian: python3-venv)")?;
        let mut command = Command::new(environment.join("bin/pip"));
        command.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
        ]);
        command.arg("--requirement").arg(source.join("requirements.txt"));
        output(&mut command, "pip install")?;
        // The order of sets does not depend on the process.
        let script = "#!/bin/sh\nPYTHONHASHSEED=0 exec \"${0%/*}/environment/bin/python\" -s \"${0%/*}/source/main.py\"\n";
        fs::write(host, script).map_err(with(host))?;
        fs::set_permissions(host, Permissions::from_mode(0o755)).map_err(with(host))
    }
    /// The libraries are those of Debian's libngtcp2-dev and libngtcp2-crypto-gnutls-dev.
    fn c(&self, source: &Path, host: &Path) -> Result<(), StackBuildError> {
        // A text as a string of C.
        for name in ["certificate", "key"] {
            let (text, header) =
                [".pem", ".h"].map(|end| source.join(format!("{name}{end}"))).into();
            let lines = fs::read_to_string(&text).map_err(with(&text))?;
            let lines: String = lines.lines().map(|line| format!("\"{line}\\n\"\n")).collect();
            fs::write(&header, lines).map_err(with(&header))?;
        }
        let mut command = Command::new(&self.program);
        command.args(["-O1", "-o"]).arg(host).arg("main.c").current_dir(source);
        command.args(["-lngtcp2_crypto_gnutls", "-lngtcp2", "-lgnutls"]);
        output(&mut command, "cc (Debian: libngtcp2-dev libngtcp2-crypto-gnutls-dev)").map(|_| ())
    }
}

/// Returns the path of a tool: that of the variable, or the first of the names that runs.
#[expect(clippy::disallowed_methods, reason = "where the compiler is, not what a run does")]
fn chosen(variable: &str, names: &[&str], arguments: &[&str]) -> Option<PathBuf> {
    let set = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    set.into_iter().chain(names.iter().map(PathBuf::from)).find(|tool| {
        let mut command = Command::new(tool);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
