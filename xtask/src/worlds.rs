//! Runs random scenarios, reports failures, and minimizes failing scenarios.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant as WallClock;
use std::{fmt, fs, panic, thread};

use crate::kernel_worlds::{self, WorldCc};
use clap::Parser;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use simtest::worlds::{self, WorldFailure, WorldStats};

/// Maximum failures to minimize; the others are only listed.
const SHRUNK: usize = 5;
/// Scenarios that a thread takes at a time.
const BATCH: u64 = 16;

/// Runs random scenarios with the verifier.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask worlds")]
struct WorldsOptions {
    /// Number of scenarios.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Number of the first scenario.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Seed of all scenarios.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads; by default, the number of processors.
    #[arg(long)]
    jobs: Option<usize>,
    /// Run only this scenario, and print it; with --against, write it into --out.
    #[arg(long, conflicts_with_all = ["count", "from"])]
    world: Option<u64>,
    /// Compare worlds of Linux models with the same worlds otherwise run.
    #[arg(long)]
    against: Option<Against>,
    /// Profile of the Linux hosts.
    #[arg(long, requires = "against", default_value = "linux-6.12")]
    profile: String,
    /// Name of the kernel (`ackclock kernel list`); by default, that of the profile.
    #[arg(long, requires = "against", value_name = "NAME")]
    kernel: Option<String>,
    /// Congestion control of the Linux hosts, one drawn for each; by default, as the worlds have it. `bbr3` is the kernel's
    /// `bbr`, whose draws are inferred in worlds of one flow.
    #[arg(long, requires = "against", value_delimiter = ',', value_name = "NAME,...")]
    cc: Vec<WorldCc>,
    /// Some hosts, of Linux or FreeBSD, remain models beside the kernels.
    #[arg(long, requires = "against", conflicts_with = "record")]
    mixed: bool,
    /// Every host requests ECN, and the line of every path marks packets.
    #[arg(long, requires = "against")]
    ecn: bool,
    /// Worlds as wide as the net: 0.3 Mbit/s to 2 Gbit/s, round trips of 0.2 ms to 1 s, 3 to 60 s.
    #[arg(long, requires = "against", conflicts_with_all = ["record", "mixed", "ecn"])]
    wide: bool,
    /// Only those of the worlds that have one flow.
    #[arg(long, requires = "against", conflicts_with = "record")]
    one_flow: bool,
    /// Do not search the smallest scenario with each kind of difference, which takes minutes.
    #[arg(long, requires = "against", conflicts_with = "record")]
    no_shrink: bool,
    /// Run each world's kernels twice; packets that differ are an error.
    #[arg(long, requires = "against")]
    twice: bool,
    /// Record the kernels' packets of the worlds into this file, packed with xz, for golden/linux-closed.
    #[arg(long, requires = "against", conflicts_with_all = ["twice", "jobs"])]
    record: Option<PathBuf>,
    /// Keep the kernels' packets in this directory, and take those of worlds that are in it: a changed model is compared
    /// without another run.
    #[arg(long, requires = "against", conflicts_with_all = ["twice", "record"])]
    kept: Option<PathBuf>,
    /// Directory for minimized failing scenarios.
    #[arg(long, default_value = "target/worlds")]
    out: PathBuf,
}

/// Reference that worlds are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Against {
    /// With a kernel of `ackclock kernel list`.
    Kernel,
    /// With the same models, whose packets are late by a random time up to a microsecond.
    Jitter,
}

/// Results of scenarios.
#[derive(Debug, Default)]
struct WorldsTally {
    passed: WorldStats,
    failures: Vec<(u64, WorldFailure)>,
}

pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("cargo xtask worlds");
    let options = match WorldsOptions::try_parse_from([name].iter().chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            // To standard output with --help, else to standard error.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if let Some(against) = options.against {
        let first = options.world.unwrap_or(options.from);
        let count = if options.world.is_some() { 1 } else { options.count };
        let WorldsOptions {
            seed,
            ref profile,
            ref kernel,
            ref cc,
            mixed,
            ecn,
            wide,
            one_flow,
            no_shrink,
            jobs,
            twice,
            ref out,
            ref record,
            ref kept,
            ..
        } = options;
        if cc.contains(&WorldCc::Bbr) && cc.contains(&WorldCc::Bbr3) {
            eprintln!("--cc: a kernel has one `bbr`, of version 1 or 3: give `bbr` or `bbr3`");
            return ExitCode::from(2);
        }
        let against = match against {
            Against::Kernel => kernel_worlds::Against::Kernel { twice },
            Against::Jitter => kernel_worlds::Against::Jitter,
        };
        let comparison = kernel_worlds::Comparison {
            seed,
            profile,
            kernel: kernel.as_ref().unwrap_or(profile),
            cc,
            first,
            count,
            mixed,
            ecn,
            wide,
            one_flow,
            shrinks: !no_shrink,
            jobs,
            against,
            kept: kept.as_deref(),
        };
        return match record {
            Some(file) => kernel_worlds::record(comparison, file),
            None => kernel_worlds::run(comparison, out),
        };
    }
    let tally = match options.world {
        Some(number) => {
            print!("{}", worlds::draw(options.seed, number));
            let mut tally = WorldsTally::default();
            tally.judge(options.seed, number);
            tally
        }
        None => hunt(&options),
    };
    println!("seed {}: {tally}", options.seed);
    for (position, (number, failure)) in tally.failures.iter().enumerate() {
        println!(
            "\nworld {number} fails: cargo xtask worlds --seed {} --world {number}",
            options.seed
        );
        if position < SHRUNK {
            show_smallest(&options, *number, failure.clone());
        } else {
            println!("{failure}");
        }
    }
    ExitCode::from(u8::from(!tally.failures.is_empty()))
}

/// Runs all scenarios on several threads; the result does not depend on their number.
#[expect(clippy::disallowed_methods, reason = "throughput is in wall-clock time")]
fn hunt(options: &WorldsOptions) -> WorldsTally {
    let since = WallClock::now();
    let bar = bar(options.count);
    let next = AtomicU64::new(0);
    let worker = || {
        let mut tally = WorldsTally::default();
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= options.count {
                return tally;
            }
            for number in first..options.count.min(first + BATCH) {
                tally.judge(options.seed, options.from.saturating_add(number));
                bar.inc(1);
            }
        }
    };
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or_else(processors).max(1);
    let mut whole = WorldsTally::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            whole.add(worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        }
    });
    bar.finish_and_clear();
    whole.failures.sort_by_key(|&(number, _)| number);
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{seconds:.1} s on {jobs} threads, {:.0} worlds a second",
        whole.worlds() as f64 / seconds
    );
    whole
}

impl WorldsTally {
    fn judge(&mut self, seed: u64, number: u64) {
        match worlds::judge(&worlds::draw(seed, number)) {
            Ok(passed) => self.passed += passed,
            Err(failure) => self.failures.push((number, failure)),
        }
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
    }

    fn worlds(&self) -> u64 {
        self.passed.worlds + self.failures.len() as u64
    }
}

impl fmt::Display for WorldsTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorldStats { ended, segments, retransmission, recoveries, timeouts, probes, .. } =
            self.passed;
        let WorldStats { aborted, lost, copied, damaged, longest, .. } = self.passed;
        writeln!(f, "{} worlds, {} failures", self.worlds(), self.failures.len())?;
        writeln!(f, "  {ended} whose transfers had to end, and did")?;
        writeln!(f, "  {segments} data packets sent, {retransmission} of them retransmitted")?;
        writeln!(f, "  {recoveries} fast recoveries, {timeouts} timeouts, {probes} window probes")?;
        writeln!(f, "  {lost} packets lost, {copied} doubled, {damaged} damaged")?;
        writeln!(f, "  {aborted} ends of connections that gave up")?;
        write!(f, "  {longest} steps in the longest run")
    }
}

/// Creates a progress bar on standard error, if that is a terminal.
fn bar(count: u64) -> ProgressBar {
    let template = "{bar:40} {pos} of {len} worlds, {rate} a second, {eta} left";
    let style = ProgressStyle::with_template(template);
    let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
        // The progress bar cannot report an error.
        let _ = write!(out, "{:.0}", state.per_sec());
    };
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("rate", rate);
    ProgressBar::new(count).with_style(style)
}

fn show_smallest(options: &WorldsOptions, number: u64, failure: WorldFailure) {
    let text = worlds::draw(options.seed, number);
    let style = ProgressStyle::with_template("{spinner} making it small: {pos} runs, {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::no_length().with_style(style);
    // A panicking scenario panics hundreds of times during minimization.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let (small, failure) = worlds::smallest(&text, failure, || bar.inc(1));
    panic::set_hook(hook);
    bar.finish_and_clear();
    println!("{failure}\n");
    let file = options.out.join(format!("seed-{}-world-{number}.toml", options.seed));
    let written = fs::create_dir_all(&options.out).and_then(|()| fs::write(&file, &small));
    match written {
        Ok(()) => println!("ackclock run {}", file.display()),
        Err(error) => eprintln!("{}: {error}", file.display()),
    }
    println!("{small}");
}
