mod freebsd;
mod probes;
mod repairs;

use core::fmt::Write as _;

use check::{ElementInvariants, WorldModel};
use sim::scenario::{ElementSpec, Scenario};

use super::verdict::{check_not_stalled, check_world_against, delivered};
use super::*;
use scenario::{Overrides, load, reference};

fn scenario(text: &str) -> Scenario {
    load(text, "test", &Overrides::default()).unwrap_or_else(|e| panic!("{e:?}\n{text}")).scenario
}

#[test]
fn a_world_depends_only_on_seed_and_number() {
    assert_eq!(draw(1, 7), draw(1, 7));
    assert_ne!(draw(1, 7), draw(1, 8));
    assert_ne!(draw(1, 7), draw(2, 7));
}

/// New features of scenario files must be drawn too.
#[test]
fn every_scenario_feature_is_drawn() {
    let mut all = String::new();
    (0..2_000).for_each(|number| all.write_str(&draw(3, number)).unwrap());
    let tables = reference();
    let keys = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let mut keys: Vec<&str> = keys.map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert!(keys.len() > 100, "{keys:?}");
    let said = |key: &&str| {
        let head = [format!("[{key}"), format!(".{key}]")];
        let forms = [format!("{key} ="), format!("{key:?} =")].into_iter().chain(head);
        forms.into_iter().any(|form| all.contains(form.as_str()))
    };
    // A world is one run; a sweep is many, and selects its own outputs. Hosts of a world are
    // models: `cargo xtask worlds --against kernel` compares kernels with them.
    // Noise is what suites and sweeps draw runs by.
    let elsewhere = ["sweep", "axes", "repeat", "noise", "series", "columns", "points", "queues"]
        .into_iter()
        .chain(["kernel", "kernel_memory", "sysctl", "tcp_info", "guest", "stack"])
        .chain(hosts::OF_GUESTS)
        .collect::<Vec<_>>();
    let missing: Vec<&str> =
        keys.into_iter().filter(|key| !said(key) && !elsewhere.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let quic = hosts::quic_profiles();
    let profiles = tcp::profile::NAMES.iter().chain(&quic);
    for name in profiles.chain(&cc::registry::NAMES) {
        assert!(all.contains(&format!("= {name:?}\n")), "{name}");
    }
}

#[test]
fn the_text_is_a_scenario_and_is_unchanged() {
    for number in 0..200 {
        let text = draw(1, number);
        scenario(&text);
        assert_eq!(written(&text.parse().unwrap()), text);
    }
}

/// The parser and the writer of scenario files are inverse for any file.
#[test]
fn a_rewritten_file_has_the_same_tables_and_run() {
    for number in 0..2_000 {
        let drawn = generator::draw(2, number).to_string();
        let tables = ScenarioFile::read(&drawn, "drawn").unwrap();
        let text = tables.to_string();
        assert_eq!(ScenarioFile::read(&text, "written").unwrap(), tables, "{text}");
        assert_eq!(scenario(&text), scenario(&drawn), "{text}");
    }
}

fn doubles(scenario: &Scenario) -> bool {
    let routes = || scenario.paths.iter().flat_map(|path| [&path.forward, &path.reverse]).flatten();
    routes().any(|element| matches!(element, ElementSpec::Duplicate { .. }))
}

/// The first world of seed 1 that satisfies the predicate.
fn first(which: impl Fn(&Scenario) -> bool) -> String {
    (0..10_000).map(|number| draw(1, number)).find(|text| which(&scenario(text))).unwrap()
}

#[test]
fn irrelevant_parts_are_removed() {
    let bad = |scenario: &Scenario| doubles(scenario) && scenario.flows.len() > 1;
    let large =
        first(|scenario| bad(scenario) && scenario.hosts.len() > 2 && scenario.flows.len() > 4);
    let fails = |text: &str| {
        load(text, "test", &Overrides::default()).is_ok_and(|loaded| bad(&loaded.scenario))
    };
    let small = shrink(&large, fails);
    // Two hosts, one path, one element, two flows, and nothing that could be removed.
    let found = scenario(&small);
    assert_eq!((found.hosts.len(), found.paths.len(), found.flows.len()), (2, 1, 2), "{small}");
    assert_eq!(found.paths[0].forward.len() + found.paths[0].reverse.len(), 1, "{small}");
    assert!(found.shared.is_empty() && found.taps.is_empty(), "{small}");
    assert!(small.contains("    { duplicate = "), "{small}");
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).count();
    // A host has its system, and its controller where required; a flow its name, its ends and its
    // data.
    assert!(lines(&small) <= 2 * 3 + 7 + 2 * 5, "{small}");
    assert!(lines(&large) > 2 * lines(&small));
    // A second search gives the same result.
    assert_eq!(shrink(&large, fails), small);
    assert_eq!(shrink(&small, fails), small);
}

#[test]
fn a_text_that_does_not_fail_is_unchanged() {
    let text = draw(1, 1);
    assert_eq!(shrink(&text, |_| false), text);
    assert_eq!(shrink("no TOML", |_| true), "no TOML");
}

/// A world without duplication.
fn without_copies(scenario: &Scenario) -> WorldModel {
    let mut world = sim::audit::describe(scenario);
    let forbid = |law: &mut ElementInvariants| law.copies = false;
    world.hops.iter_mut().for_each(forbid);
    world
}

#[test]
fn a_violation_is_reported_and_minimised() {
    let by = |text: &str| check_world_against(text, without_copies).0;
    let (text, failure) = (0..)
        .map(|number| draw(1, number))
        .find_map(|text| by(&text).err().map(|failure| (text, failure)))
        .unwrap();
    assert!(failure.to_string().contains("cannot be copied at element"), "{failure}");
    let (small, failure) = smallest_by(&text, failure, without_copies, || {});
    assert!(failure.to_string().contains("cannot be copied at element"), "{failure}");
    let found = scenario(&small);
    assert_eq!((found.hosts.len(), found.paths.len(), found.flows.len()), (2, 1, 1), "{small}");
    let [forward, back] = [&found.paths[0].forward, &found.paths[0].reverse];
    assert_eq!(forward.len() + back.len(), 1, "{small}");
    assert!(doubles(&found), "{small}");
    // With the invariants of its own world it passes.
    assert!(judge(&small).is_ok());
}

#[test]
fn a_panic_is_an_ordinary_failure() {
    let failure = check_world_against(&draw(1, 0), |scenario| panic!("seed {}", scenario.seed))
        .0
        .unwrap_err();
    let other = check_world_against(&draw(1, 1), |scenario| panic!("seed {}", scenario.seed))
        .0
        .unwrap_err();
    assert!(matches!(&failure, WorldFailure::Panicked(message) if message.starts_with("seed ")));
    // A different number in the message is the same fault.
    assert_ne!(failure, other);
    assert_eq!(failure.kind(), other.kind());
    assert_ne!(failure.kind(), WorldFailure::Endless.kind());
}

#[test]
fn an_invalid_scenario_is_rejected() {
    assert!(matches!(judge("seed = 1"), Err(WorldFailure::Refused(_))));
}

const PLAIN: &str = r#"
[host.a]
profile = "rfc"

[host.b]
profile = "rfc"

[[path]]
from = "a"
to = "b"
forward = [{ delay = "10ms" }]
return = []

[[flow]]
name = "f"
from = "a"
to = "b"
requests = { request = "10B", response = "1kB", count = 3 }
"#;

#[test]
fn an_incomplete_transfer_is_reported() {
    let scenario = scenario(PLAIN);
    let run = || sim::audit::run_audited(&scenario, &mut record::NullRecorder).unwrap();
    let (outcome, summary) = run();
    assert_eq!(delivered(&scenario, &outcome, &summary.flows), Ok(()));
    let (mut unfinished, _) = run();
    unfinished.flows[0].finished = false;
    let message = delivered(&scenario, &unfinished, &summary.flows).unwrap_err();
    assert!(message.starts_with("flow f did not finish: of 30 B from a, "), "{message}");
    let mut short = summary.flows;
    short[0][0].read = units::Bytes(2_999);
    let message = delivered(&scenario, &outcome, &short).unwrap_err();
    assert!(message.starts_with("flow f finished: of 3000 B from b, "), "{message}");
    assert!(message.contains("2999 B read"), "{message}");
}

/// A window too small to be used is probed even if it is advertised twice, and the update that
/// would open it is lost.
const TIGHT: &str = r#"
[host.b]
profile = "rfc"

[host.d]
profile = "freebsd-main"
cc = "newreno"
mtu = "576B"

[host.d.knobs]
"net.inet.tcp.recvspace" = "2048B"
"net.inet.tcp.recvbuf_max" = "2048B"

[[path]]
from = "b"
to = "d"
forward = [
    { reorder = { reverse = 4 } },
]
return = [
    { loss = "1%" },
]

[[flow]]
name = "f1"
from = "b"
to = "d"
bulk = "373249B"
reads = { rate = "2822kbit/s", every = "98099us" }
"#;

#[test]
fn a_small_window_advertised_again_is_still_probed() {
    assert_eq!(judge(TIGHT).map(|passed| passed.ended), Ok(1));
}

/// The ServerHello is lost, and the client probes twice before anything arrives: its acknowledgment
/// resets the backoff, and the timeout counted from the last packet has then passed.
const LATE: &str = r#"
[host.a]
profile = "quic-rfc9002"

[host.b]
profile = "quic-inet-2025-03"
mtu = "1862B"

[[path]]
from = "a"
to = "b"
forward = [
    { delay = "1us" },
]
return = [
    { outage = { from = "0us", until = "2us" } },
]

[[flow]]
name = "f0"
from = "a"
to = "b"
bulk = "0B"
"#;

/// A probe timeout may send two empty packets (RFC 9002 section 6.2.4).
const TWO_PROBES: &str = r#"
[host.a]
profile = "quic-rfc9002"

[host.a.knobs]
"requested_max_ack_delay" = "26001us"
"sendQueueLimit" = "1B"

[host.b]
profile = "quic-inet-2025-02"

[[path]]
from = "b"
to = "a"
forward = []
return = []

[[flow]]
name = "f0"
from = "a"
to = "b"
bulk = "4B"

[[flow]]
name = "f1"
from = "b"
to = "a"
bulk = "0B"
"#;

/// Probes with new data exceed a window that persistent congestion has reduced to its minimum.
const BEYOND: &str = r#"
[host.q]
profile = "quic-rfc9002"

[host.q.knobs]
"time_threshold_eighths" = 23

[host.r]
profile = "quic-inet-2025-03"

[host.r.knobs]
"max_ack_delay" = "0us"
"handshake" = false

[shared.s]
policer = { rate = "80kbit/s", burst = "1500B" }

[[path]]
from = "q"
to = "r"
forward = [
    { shared = "s" },
    { delay = "54400us" },
]
return = [
    { shared = "s" },
]

[[flow]]
name = "f1"
from = "r"
to = "q"
requests = { request = "1B", response = "5757B", count = 2 }
"#;

/// A window of one datagram has no space for the client's Finished, but had for data after it,
/// which no timeout repairs before the handshake is confirmed.
const OVERTAKEN: &str = r#"
[host.q]
profile = "quic-rfc9002"
delay = "1us"

[host.r]
profile = "quic-inet-2025-03"

[host.r.knobs]
"initial_window" = 1
"send_beyond_window" = true

[[path]]
from = "q"
to = "r"
forward = []
return = [
    { outage = { from = "1us", until = "1001us", hold = true } },
]

[[flow]]
name = "f3"
from = "r"
to = "q"
bulk = "0B"
"#;

/// Every third packet back is lost. After two empty probes that is the new flow-control limit, each
/// time: a probe has to carry the outstanding limit.
const IN_STEP: &str = r#"
seed = 3

[host.q]
profile = "quic-rfc9002"

[host.r]
profile = "quic-rfc9002"

[host.r.knobs]
"initial_max_stream_data" = "2775B"

[[path]]
from = "q"
to = "r"
forward = [
    { jitter = "28us" },
]
return = [
    { loss = { pass = 2 } },
    { outage = { from = "28us", until = "67010466us" } },
]

[[flow]]
name = "f1"
from = "q"
to = "r"
bulk = "20kB"
start = "1593us"
"#;

/// The client's Finished is lost, and a full window of data waits for it without a timeout.
const UNREADABLE: &str = r#"
seed = 1621784777

[host.q]
profile = "quic-inet-2025-03"

[host.r]
profile = "quic-rfc9002"

[[path]]
from = "q"
to = "r"
forward = [
    { reorder = { swap = "7%" } },
    { reorder = { reverse = 3, gap = "1501us" } },
]
return = []

[[flow]]
name = "f8"
from = "q"
to = "r"
bulk = "8720B"
"#;

#[test]
fn quic_in_worlds_that_once_failed() {
    for text in [LATE, TWO_PROBES, BEYOND, OVERTAKEN, IN_STEP, UNREADABLE] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}

#[test]
fn a_connection_that_waits_for_ever_is_reported() {
    let scenario = scenario(PLAIN);
    let mut outcome = sim::run(&scenario, &mut record::NullRecorder).unwrap();
    assert_eq!(check_not_stalled(&scenario, &outcome), Ok(()));
    outcome.ended = units::Instant::ZERO + scenario.duration;
    let message = check_not_stalled(&scenario, &outcome).unwrap_err();
    assert_eq!(message, "flow f was never closed: 3000 B read");
    outcome.flows[0].finished = false;
    let message = check_not_stalled(&scenario, &outcome).unwrap_err();
    assert_eq!(message, "flow f waits for ever: 3000 B read");
}

#[test]
fn a_flow_aborted_by_its_application_need_not_finish() {
    let must = |key: &str| {
        let scenario = scenario(&format!("{PLAIN}{key}\n"));
        oracle::must_end(&scenario, &scenario.flows[0])
    };
    assert!(must("close = \"fin\""));
    assert!(!must("close = \"reset\""));
    assert!(must("keepalive = true"));
    assert!(must("keepalive = { idle = \"600s\", interval = \"75s\", count = 40 }"));
    assert!(!must("keepalive = { idle = \"600s\", interval = \"75s\", count = 39 }"));
    // Only one of the hosts has a short idle time.
    let knobs = "profile = \"linux-6.18\"\ncc = \"newreno\"\nknobs = { \"net.ipv4.tcp_keepalive_time\" = \"1s\" }";
    let hasty = PLAIN.replacen("profile = \"rfc\"", knobs, 1);
    let scenario = scenario(&format!("{hasty}keepalive = true\n"));
    assert!(!oracle::must_end(&scenario, &scenario.flows[0]));
}

/// A reset that arrives, and one that is lost, with the answers to both acknowledgments.
#[test]
fn a_reset_peer_may_wait() {
    let reset = |element: &str, keepalive: &str| {
        let text = PLAIN.replace("{ delay = \"10ms\" }", element);
        let (text, _) = text.split_once("requests").unwrap();
        let text = format!("{text}bulk = \"1kB\"\nclose = \"reset\"\n{keepalive}");
        let scenario = scenario(&text);
        let outcome = sim::run(&scenario, &mut record::NullRecorder).unwrap();
        (judge(&text).is_ok(), outcome.ended < units::Instant::ZERO + scenario.duration)
    };
    assert_eq!(reset("{ delay = \"10ms\" }", ""), (true, true));
    let lost = "{ delay = \"10ms\" }, { loss = { packets = [4, 5, 6] } }";
    assert_eq!(reset(lost, ""), (true, false));
    assert_eq!(reset(lost, "keepalive = true"), (true, true));
}

#[test]
fn only_survivable_flows_must_finish() {
    let with = |element: &str| PLAIN.replace("{ delay = \"10ms\" }", element);
    let must = |text: &str| {
        let scenario = scenario(text);
        scenario.flows.iter().all(|flow| oracle::must_end(&scenario, flow))
    };
    for element in [
        "{ delay = \"10s\" }",
        "{ loss = \"25%\" }",
        "{ loss = { every = 8 } }",
        "{ corrupt = { packets = [1, 2, 3, 4] } }",
        "{ loss = { gilbert_elliott = { p = \"1%\", r = \"80%\" } } }",
        "{ outage = { from = \"1s\", until = \"5s\" } }",
        "{ policer = { rate = \"500kbit/s\", burst = \"3kB\" } }",
        "{ duplicate = \"100%\" }",
    ] {
        assert!(must(&with(element)), "{element}");
        assert!(judge(&with(element)).is_ok_and(|passed| passed.ended == 1), "{element}");
    }
    for element in [
        "{ loss = \"26%\" }",
        "{ loss = \"20%\" }, { corrupt = \"20%\" }",
        "{ loss = { pass = 6 } }",
        "{ corrupt = { packets = [1, 2, 3, 4, 5] } }",
        "{ loss = { gilbert_elliott = { p = \"1%\", r = \"70%\" } } }",
        "{ outage = { from = \"1s\", until = \"6s\" } }",
        "{ policer = { rate = \"499kbit/s\", burst = \"3kB\" } }",
        "{ policer = { rate = \"1Mbit/s\", burst = \"2kB\" } }",
        "{ shaper = { rate = \"1Mbit/s\", burst = \"3kB\", buffer = \"1p\" } }",
        // RACK's retransmissions at a timeout, a byte and the FIN after it, are reordered every
        // time, and the byte meets a busy line.
        "{ reorder = { reverse = 3 } }, { link = { rate = \"500kbit/s\", buffer = \"1p\" } }",
        "{ reorder = { by = \"1ms\", every = 2 } }, { link = { rate = \"1Mbit/s\", buffer = \"1B\" } }",
    ] {
        assert!(!must(&with(element)), "{element}");
    }
    assert!(must(&with(
        "{ link = { rate = \"500kbit/s\", buffer = \"1B\" } }, { reorder = { reverse = 3 } }"
    )));
    assert!(must(&with(
        "{ reorder = { reverse = 3 } }, { link = { rate = \"500kbit/s\", buffer = \"2p\" } }"
    )));
    // Selected this number of times each.
    assert!(must(&with("{ loss = { bytes = \"0B..1kB\", times = 4 } }")));
    assert!(!must(&with("{ loss = { bytes = \"0B..1kB\", times = 5 } }")));
    // Of two flows only one packet fits, and every second one may be of the same flow.
    let flow = PLAIN.split_once("[[flow]]").unwrap().1.replace("\"f\"", "\"g\"");
    let two = |element: &str| format!("{}\n[[flow]]{flow}", with(element));
    assert!(must(&with("{ link = { rate = \"1Mbit/s\", buffer = \"1p\" } }")));
    assert!(!must(&two("{ link = { rate = \"1Mbit/s\", buffer = \"1p\" } }")));
    assert!(must(&two("{ link = { rate = \"1Mbit/s\", buffer = \"2p\" } }")));
    assert!(!must(&two("{ loss = { every = 100 } }")));
    assert!(must(&two("{ loss = \"1%\" }")));
    assert!(!must(&format!("duration = \"1s\"\n{PLAIN}")));
    let endless = PLAIN.replace(", count = 3", "");
    assert!(!must(&format!("duration = \"1s\"\n{endless}")));
}
