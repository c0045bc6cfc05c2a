//! Real QUIC stacks as hosts: quic-go and quinn, where their tools and registries are, and programs that fail.
#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ackclock_guest::kernel::Cache;
use ackclock_guest::stack::build::{self, RECIPES, StackBuildError, find};
use ackclock_guest::stack::{StackProgram, check};
use net::selection::{PacketClass, SelectionRule};
use packet::IpVersion;
use quic::real::RealStack as _;
use record::Digest;
use sim::RunError;
use sim::audit::run_audited;
use sim::scenario::{App, Close, ElementSpec, RealQuicStack, Scenario, StackSpec};
use support::{flow, scenario};
use units::{Bytes, Duration, Ratio};

/// Returns quic-go; `None`, with a message, if it cannot be built here.
fn quic_go() -> Option<&'static StackProgram> {
    static BUILT: OnceLock<Option<&'static StackProgram>> = OnceLock::new();
    *BUILT.get_or_init(|| build_stack("quic-go-0.65"))
}

/// Returns quinn; `None`, with a message, if it cannot be built here.
fn quinn() -> Option<&'static StackProgram> {
    static BUILT: OnceLock<Option<&'static StackProgram>> = OnceLock::new();
    *BUILT.get_or_init(|| build_stack("quinn-0.11"))
}

/// Builds a stack; `None`, with a message, if it cannot be built here.
///
/// # Panics
/// If it is not built and `ACKCLOCK_REQUIRE_STACK` is set.
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "which tests are skipped")]
fn build_stack(name: &str) -> Option<&'static StackProgram> {
    let recipe = find(name).unwrap();
    let cache = Cache::new(env!("CARGO_TARGET_TMPDIR"));
    let why = match build::build(recipe, &cache) {
        Ok(built) => return Some(built.stack().unwrap().leak()),
        Err(StackBuildError::MissingTool(what)) => what.to_owned(),
        // An old compiler, or a machine without the registry. Anything else is a fault of the program.
        Err(StackBuildError::Failed { output, .. })
            if [
                "dial tcp",
                "lookup ",
                "requires go >=",
                "toolchain not available",
                "proxyconnect",
                "failed to download",
                "failed to query replaced source",
                "Could not resolve host",
                "requires rustc",
            ]
            .iter()
            .any(|network| output.contains(network)) =>
        {
            format!("{name} cannot be fetched:\n{output}")
        }
        Err(error) => panic!("{error}"),
    };
    assert!(std::env::var_os("ACKCLOCK_REQUIRE_STACK").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

/// The scenario with this stack on both hosts.
fn with_stack(stack: &'static StackProgram, bytes: u64) -> Scenario {
    with_stacks([stack, stack], bytes)
}

/// The scenario with these stacks.
fn with_stacks(stacks: [&'static StackProgram; 2], bytes: u64) -> Scenario {
    let mut scenario = scenario(bytes);
    for (host, stack) in scenario.hosts.iter_mut().zip(stacks) {
        let cc = stack.controllers()[0];
        host.stack = StackSpec::Real(RealQuicStack { stack, cc, mtu: 1_500 });
        host.offload.tso = false;
    }
    scenario.taps.clear();
    scenario
}

#[test]
fn quic_go_sends_the_same_packets_twice() {
    let Some(stack) = quic_go() else { return };
    let checked = check::check(stack).unwrap_or_else(|error| panic!("{error}"));
    assert!(checked.is_good(), "{checked:?}");
    // 1 MB and 400 kB in packets of 1,452 B at most, and an acknowledgment for two of them.
    assert!(checked.packets[0] > 1_400, "{checked:?}");
}

#[test]
fn quinn_sends_the_same_packets_twice() {
    let Some(stack) = quinn() else { return };
    let checked = check::check(stack).unwrap_or_else(|error| panic!("{error}"));
    assert!(checked.is_good(), "{checked:?}");
    // 1 MB and 400 kB in packets of 1,452 B at most, and acknowledgments.
    assert!(checked.packets[0] > 1_400, "{checked:?}");
}

/// A client of one stack and a server of another, on a path with losses: the verifier accepts the run, and both
/// directions complete.
#[test]
fn two_stacks_transfer_to_each_other() {
    let (Some(quic_go), Some(quinn)) = (quic_go(), quinn()) else { return };
    for stacks in [[quic_go, quinn], [quinn, quic_go]] {
        let mut scenario = with_stacks(stacks, 300_000);
        let rule = SelectionRule::Share(Ratio::new(1, 100).unwrap());
        let lossy = ElementSpec::Loss { rule, only: PacketClass::All };
        scenario.paths[0].forward.insert(0, lossy);
        let requests = App::Requests {
            request: Bytes(200),
            response: Bytes(50_000),
            think: Duration::ZERO,
            count: Some(4),
        };
        scenario.flows.push(flow("requests", requests));
        let (outcome, _) = run_audited(&scenario, &mut record::NullRecorder)
            .unwrap_or_else(|error| panic!("{stacks:?}: {error}"));
        for (flow, bytes) in outcome.flows.iter().zip([300_000, 200_000]) {
            assert!(flow.finished && flow.bytes == Bytes(bytes), "{stacks:?}: {flow:?}");
        }
    }
}

/// The stacks that CI does not build: `cargo test -p ackclock-guest --test stacks -- --ignored`.
#[test]
#[ignore = "builds stacks for minutes"]
fn other_stacks_send_the_same_packets_twice_and_transfer_to_each_other() {
    let others =
        RECIPES.iter().filter(|recipe| !["quic-go-0.65", "quinn-0.11"].contains(&recipe.name));
    let mut built: Vec<&StackProgram> =
        others.filter_map(|recipe| build_stack(recipe.name)).collect();
    for stack in &built {
        let checked = check::check(stack).unwrap_or_else(|error| panic!("{stack:?}: {error}"));
        assert!(checked.is_good(), "{checked:?}");
    }
    built.extend([quic_go(), quinn()].into_iter().flatten());
    for &client in &built {
        for &server in &built {
            let scenario = with_stacks([client, server], 200_000);
            let (outcome, _) = run_audited(&scenario, &mut record::NullRecorder)
                .unwrap_or_else(|error| panic!("{client:?} {server:?}: {error}"));
            assert!(outcome.flows[0].finished, "{client:?} {server:?}: {outcome:?}");
        }
    }
}

/// Paths of all kinds, both versions of IP, and an MTU below the stack's probes: the verifier accepts the runs, and the
/// receiver has all bytes.
#[test]
fn the_verifier_accepts_runs_of_quic_go() {
    let Some(stack) = quic_go() else { return };
    let rule = || SelectionRule::Share(Ratio::new(1, 50).unwrap());
    let only = PacketClass::All;
    let elements = [
        vec![],
        vec![ElementSpec::Loss { rule: rule(), only }],
        vec![ElementSpec::Duplicate { rule: rule(), only }],
        vec![ElementSpec::Corrupt { rule: rule(), only }],
        vec![ElementSpec::Late { rule: rule(), by: Duration::from_millis(10), only }],
    ];
    for (number, elements) in elements.into_iter().enumerate() {
        let mut scenario = with_stack(stack, 500_000);
        scenario.seed = number as u64;
        scenario.paths[0].forward.splice(0..0, elements);
        if number == 2 {
            scenario.flows[0].ip = IpVersion::V6;
        }
        if number == 3 {
            scenario.hosts[0].stack =
                StackSpec::Real(RealQuicStack { stack, cc: "newreno", mtu: 1_300 });
        }
        let requests = App::Requests {
            request: Bytes(200),
            response: Bytes(20_000),
            think: Duration::from_millis(3),
            count: Some(5),
        };
        scenario.flows.push(flow("requests", requests));
        let (outcome, _) = run_audited(&scenario, &mut record::NullRecorder)
            .unwrap_or_else(|error| panic!("{number}: {error}"));
        for (flow, bytes) in outcome.flows.iter().zip([500_000, 100_000]) {
            assert!(flow.finished && flow.bytes == Bytes(bytes), "{number}: {flow:?}");
            assert_eq!(flow.profile, "quic-go-0.65");
            assert!(flow.max_cwnd.get() > 10_000, "{number}: {flow:?}");
        }
    }
}

/// A reset of the client ends the connection.
#[test]
fn a_reset_ends_the_run() {
    let Some(stack) = quic_go() else { return };
    let mut scenario = with_stack(stack, 100_000);
    scenario.flows[0].close = Close::Reset;
    let outcome = sim::run(&scenario, &mut Digest::default()).unwrap();
    assert!(outcome.ended.as_secs_f64() < 5.0, "{outcome:?}");
}

/// It writes its own log, which names every packet of the other end.
#[test]
fn quic_go_writes_its_own_log() {
    if quic_go().is_none() {
        return;
    }
    let recipe = find("quic-go-0.65").unwrap();
    let cache = Cache::new(env!("CARGO_TARGET_TMPDIR"));
    let built = build::built(&cache, recipe.name).unwrap().unwrap();
    let logs = fresh("logs");
    let stack = built.stack().unwrap().with_logs(&logs).leak();
    sim::run(&with_stack(stack, 100_000), &mut Digest::default()).unwrap();
    for side in ["client", "server"] {
        let text = fs::read_to_string(logs.join(format!("0-{side}.sqlog"))).unwrap();
        assert!(text.contains("\"title\":\"quic-go qlog\""), "{side}");
        assert!(text.contains("transport:packet_sent"), "{side}");
        assert!(text.contains("\"frame_type\":\"connection_close\""), "{side} is complete");
    }
}

/// Returns an empty directory.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stacks").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The error of a run with a stack that fails, and its process, which must be gone.
fn failure(mode: &str) -> String {
    let directory = fresh(mode);
    let program = directory.join(format!("stack-{mode}"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken_stack.py");
    fs::copy(script, &program).unwrap();
    let stack = StackProgram::new(RECIPES[0].name, &program, &["newreno"]).with_patience(5).leak();
    let mut scenario = with_stack(stack, 1_000);
    // Only the client fails: the server's program is of the same kind, and has nothing to do before.
    scenario.flows[0].start = Duration::from_millis(1_500);
    let error = sim::run(&scenario, &mut Digest::default()).unwrap_err();
    assert!(matches!(error, RunError::Stack(_)), "{error}");
    let process: u32 = fs::read_to_string(directory.join("pid")).unwrap().parse().unwrap();
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "{mode}: {process} is left");
    error.to_string()
}

#[test]
fn a_stack_that_fails_is_named_with_the_virtual_time_and_its_output() {
    for (mode, expected) in [
        ("silent", "did not answer for 5 s"),
        ("panic", "panic: nothing works"),
        ("hang", "did not answer for 5 s"),
        ("past", "is before 1500000000 ns"),
        ("spin", "asks to run at the same time without end"),
    ] {
        let error = failure(mode);
        // One that does not answer at all has failed before it has a time.
        let at = if mode == "silent" { "0.000000" } else { "1.500000" };
        let head = format!("host `sender` at {at} s: quic-go-0.65: ");
        assert!(error.starts_with(&head), "{mode}: {error}");
        assert!(error.contains(expected), "{mode}: {error}");
    }
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let stack = StackProgram::new("none", Path::new("/nonexistent"), &["newreno"]).leak();
    let error = sim::run(&with_stack(stack, 1_000), &mut Digest::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent cannot be started"), "{error}");
}
