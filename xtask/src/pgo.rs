//! A profile-guided build of the program, and what it saves.
//!
//! `cargo xtask pgo` builds the program and the benchmarks with counters, runs them on parts of the
//! workloads and on a capture, and builds both again with the profile: `target/pgo/ackclock`. It
//! requires `llvm-profdata` of the toolchain (`rustup component add llvm-tools`); without it nothing
//! is built. `--compare` also makes an ordinary build, and runs the workloads with both in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use simtest::workloads::{OneFlow, one_flow};

type Done<T = ()> = Result<T, String>;

/// Parts of the workloads that the instrumented benchmark runs.
const TRAINING: [(&str, &str); 5] =
    [("W1", "0.03"), ("W2", "0.1"), ("W3", "0.05"), ("W4", "0.05"), ("W5", "20")];

/// Parts of the workloads that are compared, and how often each program runs them.
const COMPARED: [(&str, &str, u32); 4] =
    [("W1", "1", 5), ("W2", "1", 5), ("W3", "1", 5), ("W4", "0.5", 4)];

/// Systems and controllers whose runs the instrumented program does.
const SENDERS: [(&str, &str); 6] = [
    ("linux-6.18", "cubic"),
    ("linux-6.18", "bbr"),
    ("freebsd-14.3", "newreno"),
    ("freebsd-14.3", "cubic"),
    ("freebsd-rack-14.3", "newreno"),
    ("rfc", "newreno"),
];

/// The program and the benchmarks of one build.
struct Built {
    program: PathBuf,
    benchmarks: PathBuf,
}

/// Builds with a profile; `compare` also with none, and prints the time of both.
pub(crate) fn run(compare: bool) -> ExitCode {
    match guided(compare) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pgo: {error}");
            ExitCode::from(2)
        }
    }
}

fn guided(compare: bool) -> Done {
    let Some(tool) = profdata()? else {
        println!(
            "nothing is built with a profile: this toolchain has no llvm-profdata \
             (rustup component add llvm-tools)"
        );
        return Ok(());
    };
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/pgo");
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let out = out.canonicalize().map_err(|error| format!("{}: {error}", out.display()))?;
    let counters = out.join("counters");
    // Counters of an older build do not fit.
    match fs::remove_dir_all(&counters) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", counters.display()));
        }
        _ => {}
    }
    println!("a build with counters");
    let flags = format!("-Cprofile-generate={}", counters.display());
    let counting = build(&out.join("counting"), &flags)?;
    train(&counting, &out)?;
    let profile = out.join("ackclock.profdata");
    call(Command::new(tool).arg("merge").arg("--output").arg(&profile).arg(&counters))?;
    println!("a build with the profile");
    let flags = format!("-Cprofile-use={}", profile.display());
    let built = build(&out.join("guided"), &flags)?;
    let program = out.join("ackclock");
    fs::copy(&built.program, &program)
        .map_err(|error| format!("{}: {error}", built.program.display()))?;
    println!("{}", program.display());
    if compare {
        println!("an ordinary build");
        let plain = build(&out.join("plain"), "")?;
        print_comparison(&plain.benchmarks, &built.benchmarks)?;
    }
    Ok(())
}

/// The toolchain's `llvm-profdata`, if it is installed.
fn profdata() -> Done<Option<PathBuf>> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path =
        Path::new(sysroot.trim()).join("lib/rustlib").join(host()?).join("bin/llvm-profdata");
    Ok(path.exists().then_some(path))
}

/// The target of this machine; with a target given, build scripts are not instrumented.
fn host() -> Done<String> {
    let about = output(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name its host".to_owned())
}

/// Builds program and benchmarks with these flags of the compiler below `target`.
fn build(target: &Path, flags: &str) -> Done<Built> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--profile", "full", "--package", "ackclock"]);
    cargo.args(["--bin", "ackclock", "--bench", "workloads"]);
    cargo.args(["--message-format", "json-render-diagnostics", "--target", &host()?]);
    cargo.arg("--target-dir").arg(target).env("RUSTFLAGS", flags);
    let messages = output(cargo.stderr(Stdio::inherit()))?;
    let executable = |name: &str| {
        let built = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut built = built.filter(|message: &serde_json::Value| {
            message["target"]["name"] == name && message["executable"].is_string()
        });
        let found =
            built.next().and_then(|message| message["executable"].as_str().map(PathBuf::from));
        found.ok_or_else(|| format!("cargo built no {name}"))
    };
    Ok(Built { program: executable("ackclock")?, benchmarks: executable("workloads")? })
}

/// Runs the instrumented programs.
fn train(counting: &Built, out: &Path) -> Done {
    for (name, part) in TRAINING {
        output(Command::new(&counting.benchmarks).args(["peer", name, part]))?;
    }
    for (profile, cc) in SENDERS {
        let path = out.join(format!("{profile}-{cc}.toml"));
        let text = one_flow(&OneFlow { profile, cc, millis: 1_000, ..OneFlow::W2 });
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        let capture = out.join("capture.pcapng");
        let mut run = Command::new(&counting.program);
        output(run.arg("run").arg(&path).arg("--pcap").arg(&capture))?;
        output(Command::new(&counting.program).arg("diagnose").arg(&capture).arg("--json"))?;
    }
    Ok(())
}

/// Prints nanoseconds of processor time for a segment in both programs, run in turn, the best of
/// several runs each.
fn print_comparison(plain: &Path, guided: &Path) -> Done {
    println!("{:<8} {:>16} {:>16} {:>8}", "", "plain, ns", "profile, ns", "ratio");
    for (name, part, tries) in COMPARED {
        let mut best = [f64::INFINITY; 2];
        for _ in 0..tries {
            for (best, program) in best.iter_mut().zip([plain, guided]) {
                *best = best.min(nanoseconds(program, name, part)?);
            }
        }
        let [plain, guided] = best;
        println!("{name:<8} {plain:>16.1} {guided:>16.1} {:>8.2}", guided / plain);
    }
    Ok(())
}

/// Processor time of one segment of a part of a workload, from the benchmark's line.
fn nanoseconds(program: &Path, name: &str, part: &str) -> Done<f64> {
    let line = output(Command::new(program).args(["peer", name, part]))?;
    let cells: Vec<f64> = line.split_whitespace().flat_map(str::parse).collect();
    match cells[..] {
        [segments, _, _, _, total] if segments > 0.0 => Ok(total / segments),
        _ => Err(format!("{name}: the benchmark printed {line:?}")),
    }
}

/// Runs a command and returns what it prints.
fn output(command: &mut Command) -> Done<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| format!("{name}: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{name}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr))),
    }
}

fn call(command: &mut Command) -> Done {
    output(command).map(drop)
}
