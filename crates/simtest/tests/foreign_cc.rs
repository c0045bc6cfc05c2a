//! Linux's own congestion controllers, as files of Debian's linux-source package, in our sender: CUBIC and BBR as the ports
//! have it, the others as they come.
//!
//! The files are unpacked when the tests run, and are not part of this repository. Without the package, `tar` or a C
//! compiler the tests are skipped with a message.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ackclock_simtest as simtest;
use cc::Algorithm;
use cc::cubic::CubicVariant;
use foreign_cc::compile::{Build, build};
use foreign_cc::named;
use record::{Digest, Event, EventSource, Recorder, SenderState};
use scenario::Overrides;
use sim::scenario::{Scenario, StackSpec, TcpStack};
use simtest::worlds::{draw, wide};
use tcp::profile::Family;
use units::{Duration, Instant};

/// The package's archive.
const ARCHIVE: &str = "/usr/src/linux-source-6.12.tar.xz";
/// Linux's controllers; `yeah` calls functions of `vegas`.
const FILES: [&str; 16] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(why: &str) {
    eprintln!("{why}: skipped");
}

/// The directory with the kernel's files, unpacked once.
fn sources() -> Option<&'static Path> {
    static UNPACKED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let unpack = || {
        if !Path::new(ARCHIVE).exists() {
            skip("no linux-source-6.12");
            return None;
        }
        if Command::new("cc").arg("--version").output().is_err() {
            skip("no C compiler `cc`");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux-6.12");
        let inside = folder.join("linux-source-6.12/net/ipv4");
        let complete = FILES.iter().all(|name| inside.join(format!("tcp_{name}.c")).exists());
        if !complete {
            fs::create_dir_all(&folder).ok()?;
            let mut tar = Command::new("tar");
            tar.arg("-xJf").arg(ARCHIVE).arg("-C").arg(&folder).arg("--wildcards");
            tar.args(["linux-source-6.12/net/ipv4/tcp_*.c", "linux-source-6.12/net/ipv4/tcp_*.h"]);
            match tar.output() {
                Ok(done) if done.status.success() => {}
                _ => {
                    skip("`tar` cannot unpack linux-source-6.12");
                    return None;
                }
            }
        }
        Some(inside)
    };
    UNPACKED.get_or_init(unpack).as_deref()
}

/// The controller in a file of Linux's.
fn library(sources: &Path, name: &str, in_process: bool) -> Algorithm {
    let mut files = vec![sources.join(format!("tcp_{name}.c"))];
    if name == "yeah" {
        files.push(sources.join("tcp_vegas.c"));
    }
    // Each test has libraries of its own: tests run at the same time.
    let test = std::thread::current().name().unwrap_or("test").replace("::", "_");
    let output = sources.join(format!("{test}-{name}.so"));
    if !output.exists() || !in_process {
        let compiler = "cc".to_owned();
        let wanted = Build { sources: files, output: output.clone(), hz: 250, compiler };
        build(&wanted).unwrap_or_else(|error| panic!("tcp_{name}.c: {error}"));
    }
    let place = if in_process { "in-process:" } else { "" };
    let named = format!("{place}{}", output.display());
    Algorithm::Outside(named::controller(&named, Path::new("")).unwrap())
}

/// A controller in a file of Linux's, inside of this process.
fn inside(sources: &Path, name: &str) -> Algorithm {
    let _ = library(sources, name, false);
    library(sources, name, true)
}

/// A digest of everything but the events of windows: BBR's port reports fewer of its changes.
#[derive(Default)]
struct WithoutWindows(Digest);

impl Recorder for WithoutWindows {
    const ON: bool = true;

    fn record(
        &mut self,
        at: Instant,
        from: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        if !matches!(event, Event::Window { .. }) {
            self.0.record(at, from, event, state);
        }
    }
}

impl sim::Observer for WithoutWindows {}

/// Runs a scenario with this controller on each of its TCP hosts, which are Linux's; returns the digest of all events (without
/// those of windows for BBR), their number, and the packets retransmitted.
fn run(scenario: &Scenario, algorithm: Algorithm, windows: bool) -> (u64, u64, u64) {
    let mut scenario = scenario.clone();
    for host in &mut scenario.hosts {
        if let StackSpec::Tcp(stack) = &mut host.stack {
            *stack = TcpStack { cc: algorithm, ..stack.clone() };
        }
    }
    scenario.duration = scenario.duration.min(Duration::from_secs(20));
    let (mut all, mut without) = (Digest::default(), WithoutWindows::default());
    let outcome = match windows {
        true => sim::run(&scenario, &mut all),
        false => sim::run(&scenario, &mut without),
    };
    let again = outcome.unwrap().flows.iter().map(|flow| flow.retransmitted_segments).sum();
    let digest = if windows { all } else { without.0 };
    (digest.value(), digest.events(), again)
}

/// Is each host Linux's TCP with 250 ticks a second, for which the files are compiled?
fn is_of_linux(scenario: &Scenario) -> bool {
    scenario.hosts.iter().all(|host| match &host.stack {
        StackSpec::Tcp(stack) => stack.profile.family == Family::Linux && stack.profile.hz == 250,
        _ => false,
    })
}

fn scenario_of(text: &str) -> Scenario {
    scenario::load(text, "world", &Overrides::default()).unwrap().scenario
}

/// Compares a file with the port in random worlds; returns (worlds, worlds that differ, packets retransmitted).
fn compare(
    port: Algorithm,
    file: Algorithm,
    worlds: impl Iterator<Item = String>,
) -> (u32, Vec<u32>, u64) {
    let (mut number, mut differ, mut again) = (0, Vec::new(), 0);
    for text in worlds {
        let scenario = scenario_of(&text);
        if !is_of_linux(&scenario) {
            continue;
        }
        let windows = port != Algorithm::Bbr;
        let expected = run(&scenario, port, windows);
        if run(&scenario, file, windows) != expected {
            differ.push(number);
        }
        again += expected.2;
        number += 1;
    }
    (number, differ, again)
}

/// Small worlds with many rules: every event is the same, and so is every window. `known`: worlds in which the two differ
/// for a reason that is not found yet.
fn is_as_the_port_in_small_worlds(port: Algorithm, name: &str, known: &[u32]) {
    let Some(sources) = sources() else { return };
    let worlds = (0..2_000).map(|number| draw(67, number));
    let (number, differ, again) = compare(port, inside(sources, name), worlds);
    assert_eq!(differ, known, "of {number} worlds of seed 67");
    assert!(number >= 10 && again > 0, "{number} worlds, {again} packets retransmitted");
}

/// `known`: worlds in which the two differ for a reason that is not found yet.
fn is_as_the_port_in_wide_worlds(port: Algorithm, name: &str, known: &[u32]) {
    let Some(sources) = sources() else { return };
    let knobs = toml::Table::new();
    let worlds = (0..40).map(|number| wide(67, number, "linux-6.18", number % 4 != 0, &knobs));
    let (number, differ, again) = compare(port, inside(sources, name), worlds);
    assert_eq!(differ, known, "of {number} worlds of seed 67");
    assert!(again > 1_000, "{again} packets retransmitted");
}

#[test]
fn cubic_is_as_the_port_in_small_worlds() {
    is_as_the_port_in_small_worlds(Algorithm::Cubic(CubicVariant::Linux), "cubic", &[]);
}

#[test]
fn cubic_is_as_the_port_in_wide_worlds() {
    is_as_the_port_in_wide_worlds(Algorithm::Cubic(CubicVariant::Linux), "cubic", &[]);
}

#[test]
fn bbr_is_as_the_port_in_small_worlds() {
    is_as_the_port_in_small_worlds(Algorithm::Bbr, "bbr", &[2]);
}

#[test]
fn bbr_is_as_the_port_in_wide_worlds() {
    is_as_the_port_in_wide_worlds(Algorithm::Bbr, "bbr", &[]);
}

/// Each file compiles unchanged, moves data, and does the same inside of this process and in its own.
#[test]
fn each_file_of_linux_runs() {
    let Some(sources) = sources() else { return };
    let text = "duration = \"10s\"\n[host.a]\nprofile = \"linux-6.18\"\n[host.b]\nprofile = \"linux-6.18\"\n\
         [[path]]\nfrom = \"a\"\nto = \"b\"\nforward = [{ link = { rate = \"20Mbit/s\", buffer = \"60kB\" } }, \
         { loss = \"0.05%\" }, { delay = \"20ms\" }]\nreturn = [{ delay = \"20ms\" }]\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"unlimited\"\n";
    let scenario = scenario_of(text);
    let mut seen = Vec::new();
    for name in FILES {
        let apart = run(&scenario, library(sources, name, false), true);
        assert_eq!(run(&scenario, library(sources, name, true), true), apart, "{name}");
        // 10 s at 20 Mbit/s are 17,000 packets, each with several events.
        assert!(apart.1 > 10_000, "{name}: {} events", apart.1);
        seen.push(apart.0);
    }
    seen.sort_unstable();
    seen.dedup();
    // Without ECN, tcp_dctcp.c and tcp_lp.c without a competitor are Reno.
    assert!(seen.len() >= FILES.len() - 1, "{} different controllers", seen.len());
}
