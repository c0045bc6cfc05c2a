//! Examines diagnoses and cures on drawn transfers with known faults.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, thread};

use clap::Parser;
use exam::{Case, DrawResult, Engine, Exam, ExamPlan, Transport};
use indicatif::{ProgressBar, ProgressStyle};

/// Draws transfers with faults, runs them with and without, and judges what `diagnose` and `whatif` say.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask exam",
    after_help = "Examples:\n  cargo xtask exam --count 200 --seed 7               the table of 200 draws\n  \
                  cargo xtask exam --seed 7 --draw 12 --keep target   draw 12 of them, with its files"
)]
struct ExamOptions {
    /// Number of draws.
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Examine captures of TCP; the default.
    #[arg(long, conflicts_with = "quic")]
    tcp: bool,
    /// Examine logs of senders of QUIC.
    #[arg(long)]
    quic: bool,
    /// Run the Linux hosts of this profile with the kernel of that name in `ackclock kernel list`.
    #[arg(long, value_name = "NAME", conflicts_with = "quic")]
    kernel: Option<String>,
    /// Examine logs that this real QUIC stack writes itself, of the name in `ackclock stack list`, with `--quic`; with
    /// `--ledger` several, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "tcp")]
    stack: Vec<String>,
    /// Number of the first draw.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads; by default, the number of processors.
    #[arg(long)]
    jobs: Option<usize>,
    /// Run only this draw.
    #[arg(long, conflicts_with_all = ["count", "from"])]
    draw: Option<u64>,
    /// Write scenario and captures of each draw into this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Examine both transports, and the kernel and the stacks named, and write the page of the ledger:
    /// docs/ledger/verdicts.md; with `--quic` only the stacks, and docs/ledger/quic-releases.md.
    #[arg(long, conflicts_with_all = ["draw", "from", "keep", "json", "strict"])]
    ledger: bool,
    /// Print all results as JSON, for programs.
    #[arg(long)]
    json: bool,
    /// Fail on a broken law of costs, an error about a healthy transfer, or a draw that cannot be run.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("cargo xtask exam");
    let options = match ExamOptions::try_parse_from([name].iter().chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            // To standard output with --help, else to standard error.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let numbers: Vec<u64> = match options.draw {
        Some(number) => vec![number],
        None => (options.from..options.from.saturating_add(options.count)).collect(),
    };
    let processors = || thread::available_parallelism().map_or(1, Into::into);
    let jobs = options.jobs.unwrap_or_else(processors);
    if options.ledger && options.quic {
        return match write_releases(options.seed, &numbers, &options.stack, jobs) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        };
    }
    if options.ledger {
        let kernels = options.kernel.iter().map(|name| (Transport::Tcp, kernel(name)));
        let stacks = options.stack.iter().map(|name| (Transport::Quic, stack(name)));
        let real = kernels.chain(stacks).map(|(transport, engine)| Ok((transport, engine?)));
        return match real.collect::<Result<Vec<_>, String>>() {
            Ok(real) => write_ledger(options.seed, &numbers, real, jobs),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        };
    }
    let engine = match (&options.kernel, &options.stack[..]) {
        (_, [name]) if options.quic => stack(name),
        (_, [_, ..]) => Err("--stack: one stack, with --quic; several with --ledger".to_owned()),
        (Some(name), []) => kernel(name),
        (None, []) => Ok(Engine::Models),
    };
    let engine = match engine {
        Ok(engine) => engine,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let transport = if options.quic { Transport::Quic } else { Transport::Tcp };
    let plan = ExamPlan { transport, seed: options.seed, numbers, engine };
    if let Some(folder) = &options.keep
        && let Err(error) = keep(&plan, folder)
    {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    let exam = with_progress(&plan, jobs);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&exam.results).unwrap_or_default());
    } else {
        print!("{}", exam::table::text(&plan, &exam));
    }
    let is_bad = |one: &DrawResult| !one.broken_laws.is_empty() || one.false_error;
    let fails = options.strict && (exam.results.iter().any(is_bad) || !exam.failures.is_empty());
    ExitCode::from(u8::from(fails))
}

fn with_progress(plan: &ExamPlan, jobs: usize) -> Exam {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} draws, {eta} left");
    let bar = ProgressBar::new(plan.numbers.len() as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let exam = exam::exam(plan, jobs, |done| bar.set_position(done as u64));
    bar.finish_and_clear();
    exam
}

/// Most draws of the ledger with a kernel or a stack, which take some hundred times as long as models.
const REAL_DRAWS: usize = 200;

/// Examines both transports and writes the page of the ledger; `real`: kernels and stacks.
fn write_ledger(
    seed: u64,
    numbers: &[u64],
    real: Vec<(Transport, Engine)>,
    jobs: usize,
) -> ExitCode {
    let models = [(Transport::Tcp, Engine::Models), (Transport::Quic, Engine::Models)];
    let exams: Vec<_> = models
        .into_iter()
        .chain(real)
        .map(|(transport, engine)| {
            let is_real = engine.kernel().is_some() || engine.stack().is_some();
            let most = if is_real { REAL_DRAWS } else { usize::MAX };
            let numbers = numbers.iter().take(most).copied().collect();
            let plan = ExamPlan { transport, seed, numbers, engine };
            let exam = with_progress(&plan, jobs);
            (plan, exam)
        })
        .collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ledger/verdicts.md");
    match fs::write(&page, exam::table::ledger(&exams)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("docs/ledger/verdicts.md: {error}");
            ExitCode::from(2)
        }
    }
}

/// The page about logs of stacks.
const RELEASES: &str = "docs/ledger/quic-releases.md";

/// Examines the logs of these stacks and writes their page of the ledger.
fn write_releases(
    seed: u64,
    numbers: &[u64],
    stacks: &[String],
    jobs: usize,
) -> Result<(), String> {
    if stacks.is_empty() {
        return Err("--ledger with --quic: --stack NAME,... names the stacks".to_owned());
    }
    let mut exams = Vec::new();
    for name in stacks {
        let (engine, numbers) = (stack(name)?, numbers.to_vec());
        let plan = ExamPlan { transport: Transport::Quic, seed, numbers, engine };
        let exam = with_progress(&plan, jobs);
        exams.push((release(name)?, plan, exam));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(RELEASES);
    fs::write(&page, exam::table::releases(&exams)).map_err(|error| format!("{RELEASES}: {error}"))
}

/// The release of a stack, as its registry names it.
#[cfg(target_os = "linux")]
fn release(name: &str) -> Result<&'static str, String> {
    let recipe = guest::stack::build::find(name);
    recipe.map(|recipe| recipe.wanted).ok_or_else(|| format!("there is no stack `{name}`"))
}

#[cfg(not(target_os = "linux"))]
fn release(_: &str) -> Result<&'static str, String> {
    Err("stacks as hosts need Linux".to_owned())
}

/// The kernel of that name, which is a profile's too.
#[cfg(target_os = "linux")]
fn kernel(profile: &str) -> Result<Engine, String> {
    use guest::kernel::{Cache, build};

    let none = || format!("there is no kernel {profile}: `ackclock kernel build` makes one");
    let cache = Cache::of_user().ok_or_else(none)?;
    let kernel = cache.kernel(profile).map_err(|error| error.to_string())?.ok_or_else(none)?;
    let init = build::init(&cache).map_err(|error| error.to_string())?;
    Ok(Engine::Kernel { kernel: kernel.path, init, profile: profile.to_owned() })
}

/// The QUIC stack of that name; its logs are kept below `target` while a draw runs.
#[cfg(target_os = "linux")]
fn stack(name: &str) -> Result<Engine, String> {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/exam-logs");
    Ok(Engine::Stack { name: name.to_owned(), logs })
}

#[cfg(not(target_os = "linux"))]
fn stack(_: &str) -> Result<Engine, String> {
    Err("stacks as hosts need Linux".to_owned())
}

#[cfg(not(target_os = "linux"))]
fn kernel(_: &str) -> Result<Engine, String> {
    Err("kernels as hosts need Linux".to_owned())
}

/// Writes the files of draws.
fn keep(plan: &ExamPlan, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for &number in &plan.numbers {
        // One that cannot be run is listed with the results.
        let case = Case::draw(plan.transport, plan.seed, number);
        let Ok(case) = case.run(&plan.engine) else { continue };
        for (name, bytes) in case.files()? {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}
