//! A controller's C file compiled with the machine's own compiler: `ackclock cc build`.
//!
//! Three kinds of files: a Linux module with a `struct tcp_congestion_ops`, compiled against the headers in `shim/` under
//! the kernel's names and flags (overflow wraps, `char` is unsigned, no aliasing by type); a file that includes
//! ackclock-cc.h; FreeBSD's `struct cc_algo`, which is recognized and refused.

mod messages;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use messages::CompileError;

/// The kernel's headers that controllers include; each is `ackclock-linux.h`.
const HEADERS: [&str; 38] = [
    "asm/div64.h",
    "asm/unaligned.h",
    "linux/atomic.h",
    "linux/bitops.h",
    "linux/bpf.h",
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/bug.h",
    "linux/cache.h",
    "linux/compiler.h",
    "linux/errno.h",
    "linux/export.h",
    "linux/gfp.h",
    "linux/inet.h",
    "linux/inet_diag.h",
    "linux/init.h",
    "linux/jiffies.h",
    "linux/kernel.h",
    "linux/ktime.h",
    "linux/list.h",
    "linux/log2.h",
    "linux/math.h",
    "linux/math64.h",
    "linux/minmax.h",
    "linux/mm.h",
    "linux/module.h",
    "linux/moduleparam.h",
    "linux/prandom.h",
    "linux/random.h",
    "linux/sched/clock.h",
    "linux/skbuff.h",
    "linux/slab.h",
    "linux/string.h",
    "linux/tcp.h",
    "linux/time.h",
    "linux/types.h",
    "linux/win_minmax.h",
    "net/tcp.h",
];

const LINUX: &str = include_str!("../shim/ackclock-linux.h");
const GLUE: &str = include_str!("../shim/glue.c");
const DCTCP: &str = include_str!("../shim/tcp_dctcp.h");

/// What to compile.
#[derive(Debug, Clone)]
pub struct Build {
    /// The controller's file, and further files that it uses.
    pub sources: Vec<PathBuf>,
    /// The library.
    pub output: PathBuf,
    /// Ticks per second of the kernel (`CONFIG_HZ`).
    pub hz: u32,
    /// The C compiler.
    pub compiler: String,
}

/// Which interface a file is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Linux,
    Header,
    FreeBsd,
    Unknown,
}

impl Kind {
    fn of(text: &str) -> Self {
        if text.contains("tcp_congestion_ops") {
            Self::Linux
        } else if text.contains("ackclock-cc.h") {
            Self::Header
        } else if text.contains("struct cc_algo") {
            Self::FreeBsd
        } else {
            Self::Unknown
        }
    }
}

/// A directory that is removed with its contents.
struct Workplace(PathBuf);

impl Workplace {
    fn new() -> io::Result<Self> {
        for number in 0..1_000 {
            let name = format!("ackclock-cc-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(path)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // Files that cannot be removed stay: a destructor cannot report an error.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compiles and links the library.
///
/// # Errors
/// A file cannot be read, there is no compiler, or the file uses what is not provided: then each message has file and line.
pub fn build(build: &Build) -> Result<(), CompileError> {
    let mut texts = Vec::new();
    for source in &build.sources {
        let text = fs::read(source)
            .map_err(|error| CompileError::of(format!("{}: {error}", source.display())))?;
        texts.push(String::from_utf8_lossy(&text).into_owned());
    }
    let (Some(first), Some(text)) = (build.sources.first(), texts.first()) else {
        return Err(CompileError::of("no C file given".to_owned()));
    };
    let kind = Kind::of(text);
    match kind {
        Kind::Linux | Kind::Header => {}
        Kind::FreeBsd => {
            return Err(CompileError::of(format!(
                "{}: controllers with FreeBSD's `struct cc_algo` are not supported; Linux's `struct tcp_congestion_ops` and \
                 ackclock-cc.h are",
                first.display()
            )));
        }
        Kind::Unknown => {
            return Err(CompileError::of(format!(
                "{}: no congestion controller: it has no `struct tcp_congestion_ops` and does not include ackclock-cc.h",
                first.display()
            )));
        }
    }
    let place = Workplace::new().and_then(|place| write_headers(&place).map(|()| place));
    let place = place.map_err(|error| {
        CompileError::of(format!("cannot write into the directory for temporary files: {error}"))
    })?;
    let options =
        Options { build, kind, place: &place.0, rates: texts.iter().any(|text| uses_flight(text)) };
    let mut objects = Vec::new();
    for (number, source) in build.sources.iter().enumerate() {
        let object = place.0.join(format!("{number}.o"));
        options.compile(source, &object, &["ACKCLOCK_MODULE", &symbol(source)])?;
        objects.push(object);
    }
    if kind == Kind::Linux {
        let object = place.0.join("glue.o");
        options.compile(&place.0.join("glue.c"), &object, &["ACKCLOCK_FIRST", &symbol(first)])?;
        objects.push(object);
    }
    options.link(&objects)
}

fn write_headers(place: &Workplace) -> io::Result<()> {
    place.write("ackclock-cc.h", crate::HEADER)?;
    place.write("ackclock-linux.h", LINUX)?;
    place.write("tcp_dctcp.h", DCTCP)?;
    place.write("glue.c", GLUE)?;
    HEADERS.iter().try_for_each(|name| place.write(name, "#include \"ackclock-linux.h\"\n"))
}

/// A file's name as a part of an identifier.
fn symbol(source: &Path) -> String {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Does it use the flight of an acknowledgment, for which the stack must measure rates?
fn uses_flight(text: &str) -> bool {
    let after =
        |at: usize| text[at..].chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
    ["->in_flight", ".in_flight"]
        .iter()
        .any(|name| text.match_indices(name).any(|(at, found)| !after(at + found.len())))
}

struct Options<'b> {
    build: &'b Build,
    kind: Kind,
    place: &'b Path,
    rates: bool,
}

impl Options<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.build.compiler);
        // Messages in English, which are read below.
        command.env("LC_ALL", "C").args(["-O2", "-fPIC", "-std=gnu11"]);
        command
    }

    fn compile(&self, source: &Path, object: &Path, define: &[&str]) -> Result<(), CompileError> {
        let [name, value] = define else { return Ok(()) };
        let run = |old: bool| {
            let mut command = self.command();
            command.args(["-c", "-fvisibility=hidden", "-fwrapv", "-fno-strict-aliasing"]);
            command.args(["-fdiagnostics-color=never", "-fno-diagnostics-show-caret"]);
            command.arg("-Werror=implicit-function-declaration");
            command.arg("-I").arg(self.place);
            if self.kind == Kind::Linux {
                command.args(["-funsigned-char", "-fno-delete-null-pointer-checks"]);
                command.arg("-Werror=incompatible-pointer-types");
                command.arg(format!("-DHZ={}", self.build.hz)).arg(format!("-D{name}={value}"));
                if self.rates {
                    command.arg("-DACKCLOCK_RATES");
                }
                if old {
                    command.arg("-DACKCLOCK_CONG_CONTROL_2");
                }
            }
            command.arg(source).arg("-o").arg(object);
            self.run(command)
        };
        // Before Linux 6.10 `cong_control` has two arguments.
        match run(self.old_signature()) {
            Err(error) if error.is_of_signature() => {
                fs::write(self.place.join("old"), "").ok();
                run(true)
            }
            done => done,
        }
    }

    fn old_signature(&self) -> bool {
        self.place.join("old").exists()
    }

    fn link(&self, objects: &[PathBuf]) -> Result<(), CompileError> {
        let mut command = self.command();
        command.arg("-shared");
        if cfg!(target_os = "linux") {
            command.arg("-Wl,-z,defs");
        }
        // Under another name first: a library in use keeps its file.
        let made = self.place.join("made.so");
        command.args(objects).arg("-lm").arg("-o").arg(&made);
        self.run(command)?;
        let output = &self.build.output;
        let _ = fs::remove_file(output);
        fs::copy(&made, output).map(|_| ()).map_err(|error| {
            CompileError::of(format!("cannot write {}: {error}", output.display()))
        })
    }

    fn run(&self, mut command: Command) -> Result<(), CompileError> {
        let name = &self.build.compiler;
        let done = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CompileError::of(format!(
                "no C compiler `{name}` on this machine; install one (Debian: apt install gcc) or name another with --compiler"
            )),
            _ => CompileError::of(format!("cannot run `{name}`: {error}")),
        })?;
        match done.status.success() {
            true => Ok(()),
            false => Err(messages::read(&String::from_utf8_lossy(&done.stderr))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_file_is_that_of_its_interface() {
        assert_eq!(Kind::of("static struct tcp_congestion_ops x;"), Kind::Linux);
        assert_eq!(Kind::of("#include \"ackclock-cc.h\""), Kind::Header);
        assert_eq!(Kind::of("struct cc_algo vegas_cc_algo = {"), Kind::FreeBsd);
        assert_eq!(Kind::of("int main(void)"), Kind::Unknown);
    }

    #[test]
    fn only_the_field_of_a_sample_needs_rates() {
        assert!(uses_flight("x = sample->in_flight / 2"));
        assert!(!uses_flight(
            "rs->prior_in_flight; tcp_packets_in_flight(tp); bbr->in_flight_latest"
        ));
    }
}
