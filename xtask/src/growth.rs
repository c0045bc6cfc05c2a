//! Growth of costs: `ackclock` with n, 2n, 4n and 8n of one thing. Instructions are counted by valgrind and peak
//! memory by the system; what an input of one thing takes is no part of either. A cost that grows more than
//! [`BOUND`] times as its input doubles fails.

mod inputs;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

use inputs::{CASES, GrowthCase};

/// Most that a cost may grow when its input doubles.
const BOUND: f64 = 2.3;
/// Least instructions and bytes of memory, above those of one thing, of which a ratio is made.
const JUDGED: [f64; 2] = [20e6, 4e6];

/// Measures all cases, or those named, with inputs `part` times as small.
pub(crate) fn run(options: &[std::ffi::OsString]) -> ExitCode {
    let mut words = options.iter().map(|word| word.to_string_lossy().into_owned());
    let mut names = Vec::new();
    let mut part = 1;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--inside" => return inside(&words.collect::<Vec<_>>()),
            "--sample" => part = 8,
            name if CASES.iter().any(|case| case.name == name) => names.push(word),
            other => {
                let all: Vec<&str> = CASES.iter().map(|case| case.name).collect();
                eprintln!("growth: there is no case {other}; cases are {}", all.join(", "));
                return ExitCode::from(2);
            }
        }
    }
    match measured(&names, part) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("growth: {error}");
            ExitCode::from(2)
        }
    }
}

fn measured(names: &[String], part: usize) -> Result<ExitCode, String> {
    let program = program()?;
    let folder = std::env::temp_dir().join(format!("ackclock-growth-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("{:<14} {:>7}  {:<24} {:<24} command", "n, 2n, 4n, 8n", "n", "instructions", "memory");
    let mut failed = 0;
    for case in CASES.iter().filter(|case| names.is_empty() || names.iter().any(|n| n == case.name))
    {
        let result = case_in(case, part, &program, &folder);
        let cleaned = std::fs::remove_dir_all(&folder).and_then(|()| std::fs::create_dir(&folder));
        let ratios = result?;
        cleaned.map_err(|error| format!("{}: {error}", folder.display()))?;
        let shown = |of: &[Option<f64>]| {
            let words = of.iter().map(|one| one.map_or("-".to_owned(), |one| format!("{one:.2}")));
            words.collect::<Vec<_>>().join(" ")
        };
        let is_over = ratios.iter().flatten().flatten().any(|&ratio| ratio > BOUND);
        failed += u32::from(is_over);
        println!(
            "{:<14} {:>7}  {:<24} {:<24} {}{}",
            case.name,
            case.n / part,
            shown(&ratios[0]),
            shown(&ratios[1]),
            case.arguments.join(" "),
            if is_over { "  GROWS FASTER THAN ITS INPUT" } else { "" }
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
    println!("growth: {failed} above {BOUND} when the input doubles");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The ratios of instructions and of memory from n to 2n, 2n to 4n and 4n to 8n; `None` where there is too
/// little to judge.
fn case_in(
    case: &GrowthCase,
    part: usize,
    program: &Path,
    folder: &Path,
) -> Result<[Vec<Option<f64>>; 2], String> {
    let n = (case.n / part).max(1);
    let mut costs = Vec::new();
    for size in [1, n, 2 * n, 4 * n, 8 * n] {
        for (name, bytes) in (case.files)(size) {
            let place = folder.join(name);
            std::fs::write(&place, bytes)
                .map_err(|error| format!("{}: {error}", place.display()))?;
        }
        costs.push(cost(case, program, folder)?);
    }
    Ok([0, 1].map(|of: usize| {
        let above = |size: usize| (costs[size][of] - costs[0][of]).max(0.0);
        let ratio = |size: usize| {
            (above(size + 1) >= JUDGED[of] && above(size) > 0.0)
                .then(|| above(size + 1) / above(size))
        };
        (1..4).map(ratio).collect()
    }))
}

/// Instructions and peak memory in bytes.
fn cost(case: &GrowthCase, program: &Path, folder: &Path) -> Result<[f64; 2], String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.args(["growth", "--inside"]).arg(program).args(case.arguments).current_dir(folder);
    let done = command.output().map_err(|error| error.to_string())?;
    let memory = String::from_utf8_lossy(&done.stdout).trim().parse::<f64>();
    let memory = memory
        .map_err(|_| format!("{}: {}", case.name, String::from_utf8_lossy(&done.stderr).trim()))?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let done = valgrind.args(case.arguments).current_dir(folder).output();
    let done = done.map_err(|error| format!("valgrind: {error}"))?;
    let reported = String::from_utf8_lossy(&done.stderr);
    let counted = reported.lines().find_map(|line| line.split_once("Collected : "));
    let counted = counted.and_then(|(_, count)| count.trim().parse::<f64>().ok());
    Ok([counted.ok_or_else(|| format!("valgrind of {}: {}", case.name, reported.trim()))?, memory])
}

/// Runs a command and prints its peak memory in bytes.
fn inside(command: &[String]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::from(2) };
    let done = Command::new(program).args(arguments).stdout(Stdio::null()).output();
    match (done, getrusage(UsageWho::RUSAGE_CHILDREN)) {
        (Ok(done), Ok(usage)) if done.status.code().is_some() => {
            // Linux counts in KiB.
            println!("{}", usage.max_rss() * 1024);
            ExitCode::SUCCESS
        }
        (Ok(done), _) => {
            eprintln!("{}: {}", program, done.status);
            ExitCode::FAILURE
        }
        (Err(error), _) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The `ackclock` that is built beside this program, or with the tests.
pub(crate) fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().unwrap_or(Path::new(""));
    let places = [folder.join("ackclock"), folder.join("../debug/ackclock")];
    places.into_iter().find(|place| place.exists()).ok_or_else(|| "build ackclock first".to_owned())
}
