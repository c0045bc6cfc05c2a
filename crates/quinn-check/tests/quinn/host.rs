//! quinn-proto as a host of a scenario: the verifier accepts its runs, and equal runs are equal, on any number of
//! threads.

use record::Digest;
use scenario::{Overrides, load};
use sim::Scenario;
use sim::audit::run_audited;

/// A flow of quinn-proto, one of its model and one of TCP over one line.
fn shared(seed: u64, elements: &str) -> Scenario {
    let host = |name: &str, profile: &str| {
        format!(
            "[host.{name}1]\nprofile = \"{profile}\"\n[host.{name}2]\nprofile = \"{profile}\"\n"
        )
    };
    let flow = |name: &str, app: &str| {
        format!(
            "[[path]]\nfrom = \"{name}1\"\nto = \"{name}2\"\n\
             forward = [{{ shared = \"line\" }}, {elements} {{ delay = \"10ms\" }}]\n\
             return = [{{ delay = \"10ms\" }}]\n\
             [[flow]]\nname = \"{name}\"\nfrom = \"{name}1\"\nto = \"{name}2\"\n{app}\n"
        )
    };
    let text = [
        format!("seed = {seed}\nduration = \"5s\"\n"),
        host("real", "quinn-proto-0.11"),
        host("model", "quinn-0.11"),
        host("tcp", "linux-6.18"),
        "[shared.line]\nlink = { rate = \"20Mbit/s\", buffer = \"60kB\", queue = \"codel\" }\n"
            .into(),
        flow("real", "bulk = \"unlimited\""),
        flow("model", "bulk = \"unlimited\""),
        flow("tcp", "bulk = \"unlimited\""),
    ];
    let loaded = load(&text.concat(), "host", &Overrides::default());
    loaded.unwrap_or_else(|errors| panic!("{errors:?}")).scenario
}

fn digest(scenario: &Scenario) -> (u64, u64) {
    let mut digest = Digest::default();
    let outcome = sim::run(scenario, &mut digest).unwrap_or_else(|error| panic!("{error}"));
    (digest.value(), outcome.flows[0].bytes.get())
}

const ELEMENTS: [&str; 4] = [
    "",
    "{ loss = \"1%\" },",
    "{ reorder = { fraction = \"1%\", by = \"5ms\" } }, { duplicate = \"1%\" },",
    "{ corrupt = \"1%\" }, { jitter = \"3ms\" },",
];

#[test]
fn runs_are_equal_on_any_thread() {
    for elements in ELEMENTS {
        let first = digest(&shared(1, elements));
        let others: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let runs: Vec<_> =
                (0..3).map(|_| scope.spawn(|| digest(&shared(1, elements)))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert!(others.iter().all(|other| *other == first), "{elements}");
        assert!(first.1 > 500_000, "{elements}: {} B", first.1);
        assert_ne!(digest(&shared(2, elements)), first, "{elements}");
    }
}

#[test]
fn the_verifier_accepts_its_runs() {
    for elements in ELEMENTS {
        let scenario = shared(3, elements);
        let (outcome, _) = run_audited(&scenario, &mut record::NullRecorder)
            .unwrap_or_else(|error| panic!("{elements}: {error}"));
        assert_eq!(outcome.flows[0].profile, "quinn-proto-0.11");
        assert!(outcome.flows[0].max_cwnd.get() > 10_000);
    }
}

/// Requests, a limited transfer with both closes, IPv6, and an MTU below quinn's probes.
#[test]
fn applications_finish() {
    for app in
        ["bulk = \"300kB\"", "requests = { request = \"200B\", response = \"20kB\", count = 20 }"]
    {
        for extra in ["", "ip = 6\n", "close = \"reset\"\n"] {
            let text = format!(
                "seed = 1\nduration = \"20s\"\n\
                 [host.a]\nprofile = \"quinn-proto-0.11\"\nmtu = \"1400B\"\n\
                 [host.b]\nprofile = \"quinn-proto-0.11\"\ncc = \"newreno\"\n\
                 [[path]]\nfrom = \"a\"\nto = \"b\"\n\
                 forward = [{{ link = {{ rate = \"10Mbit/s\", buffer = \"30kB\" }} }}, {{ delay = \"10ms\" }}]\n\
                 return = [{{ delay = \"10ms\" }}]\n\
                 [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{app}\n{extra}"
            );
            let loaded = load(&text, "host", &Overrides::default());
            let scenario = loaded.unwrap_or_else(|errors| panic!("{errors:?}")).scenario;
            let (outcome, _) = run_audited(&scenario, &mut record::NullRecorder)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let flow = &outcome.flows[0];
            let expected = if app.starts_with("bulk") { 300_000 } else { 400_000 };
            // A reset discards what is not acknowledged.
            if extra.starts_with("close") {
                assert!(outcome.ended < units::Instant::from_nanos(20_000_000_000), "{text}");
            } else {
                assert!(flow.finished && flow.bytes.get() == expected, "{text}\n{flow:?}");
                assert!(outcome.ended < units::Instant::from_nanos(20_000_000_000), "{text}");
            }
        }
    }
}
