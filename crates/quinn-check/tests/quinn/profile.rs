//! The profile `quinn-0.11` with its CUBIC against quinn-proto, on paths with queues, loss and delay. The table is
//! in the snapshot, and in docs/ledger/quic.md.

use std::fmt::Write as _;

use quic::profile::{PacerBursts, QuicProfile};
use scenario::{Overrides, load};
use sim::Scenario;
use sim::scenario::StackSpec;
use units::{Duration, Instant};

use crate::meter::SenderMeter;
use crate::quinn_world::{self, QuinnController};

const SECONDS: u64 = 16;
const WARM_UP: Duration = Duration::from_secs(1);
/// Seeds of a path with random loss or reordering.
const SEEDS: u64 = 4;
/// At 10 Mbit/s, where a run has few losses.
const MORE_SEEDS: u64 = 16;

/// A path: rate in Mbit/s, round trip in ms, buffer in packets, elements before the link, seeds.
pub(crate) type Path = (u64, u64, u64, &'static str, u64);

const PATHS: [Path; 18] = [
    (10, 10, 50, "", 1),
    (10, 40, 20, "", 1),
    (10, 40, 50, "", 1),
    (10, 100, 100, "", 1),
    (50, 20, 50, "", 1),
    (50, 20, 200, "", 1),
    (50, 40, 100, "", 1),
    (50, 80, 400, "", 1),
    (50, 20, 200, "{ loss = { pass = 500 } },", 1),
    (50, 40, 200, "{ loss = { pass = 1000 } },", 1),
    (50, 80, 400, "{ loss = { pass = 2000 } },", 1),
    (10, 40, 100, "{ loss = { pass = 100 } },", 1),
    (50, 20, 200, "{ loss = \"1%\" },", SEEDS),
    (50, 40, 200, "{ loss = \"0.1%\" },", SEEDS),
    (10, 80, 100, "{ loss = \"0.5%\" },", MORE_SEEDS),
    (50, 20, 200, "{ reorder = { swap = \"1%\" } },", SEEDS),
    (50, 40, 200, "{ reorder = { displace = 3, fraction = \"0.1%\" } },", SEEDS),
    (10, 40, 100, "{ reorder = { fraction = \"0.5%\", by = \"10ms\" } },", MORE_SEEDS),
];

/// The paths, with packets for an ACK, on which the profile is more than 1 % off: losses that count packets hit others
/// as soon as one host sends a packet more, and on this path by 1.8 %.
const MISSES: [(&str, u32); 1] = [("{ loss = { pass = 100 } },", 2)];

/// The path of the experiment between hosts of `profile` with this congestion control.
pub(crate) fn scenario(
    (profile, cc): (&str, &str),
    (rate, rtt, buffer, loss, _): Path,
    every: u32,
    seed: u64,
) -> Scenario {
    // A host of quinn-proto takes the place of one of TCP.
    let cc = if profile == "rfc" { "cubic" } else { cc };
    let host = format!("profile = \"{profile}\"\ncc = \"{cc}\"\nmtu = \"1280B\"\n");
    // A host of quinn-proto takes the place of one of TCP.
    let knobs = match profile {
        "rfc" => String::new(),
        _ => format!(
            "\n[host.server.knobs]\nnumReceivedAckElicitingsBeforeAck = {every}\n\
             initial_max_data = \"4294967295B\"\ninitial_max_stream_data = \"4294967295B\"\n"
        ),
    };
    let half = rtt * 500;
    let text = format!(
        r#"
seed = {seed}
duration = "{SECONDS}s"

[host.client]
{host}
[host.server]
{host}{knobs}
[[path]]
from = "client"
to = "server"
forward = [
    {loss}
    {{ link = {{ rate = "{rate}Mbit/s", buffer = "{buffer}p" }} }},
    {{ delay = "{half}us" }},
]
return = [{{ delay = "{half}us" }}]

[[flow]]
name = "stream"
from = "client"
to = "server"
bulk = "unlimited"
"#
    );
    let loaded = load(&text, "quinn-check", &Overrides::default());
    let mut scenario = loaded.unwrap_or_else(|errors| panic!("{errors:?}")).scenario;
    for host in &mut scenario.hosts {
        if let StackSpec::Quic(stack) = &mut host.stack {
            without_search_and_offload(&mut stack.profile);
        }
    }
    scenario
}

/// quinn-proto runs without path MTU discovery and segmentation offload here (`quinn_world`).
fn without_search_and_offload(profile: &mut QuicProfile) {
    profile.mtu_discovery = None;
    if let PacerBursts::Interval { batch, .. } = &mut profile.bursts {
        *batch = 1;
    }
}

/// Mbit/s of quinn-proto and of a profile, the mean of the seeds.
fn rates(profile: &str, path: Path, every: u32) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for seed in 1..=path.4 {
        let meter = || SenderMeter::new(Instant::ZERO + WARM_UP);
        let controller = (every, QuinnController::Cubic);
        let real = scenario(("rfc", "cubic"), path, every, seed);
        sums[0] += quinn_world::run(&real, controller, seed as u8, meter()).mbps();
        let mut ours = meter();
        let scenario = scenario((profile, "cubic"), path, every, seed);
        sim::run(&scenario, &mut ours).unwrap_or_else(|error| panic!("{error:?}"));
        sums[1] += ours.mbps();
    }
    sums.map(|sum| sum / path.4 as f64)
}

#[test]
fn the_profile_on_thirty_six_paths() {
    let mut table = format!(
        "{:>6} {:>6} {:>6} {:<46} {:>4} {:>8} {:>8} {:>8} {:>8}\n",
        "Mbit/s", "RTT ms", "buffer", "loss, reordering", "ACK", "quinn", "profile", "", "RFC 9438"
    );
    let (mut off, mut rfc_off) = (Vec::new(), Vec::new());
    let mut misses = Vec::new();
    for every in [1, 2] {
        for path in PATHS {
            let (rate, rtt, buffer, loss, _) = path;
            let [real, ours] = rates("quinn-0.11", path, every);
            let [_, rfc] = rates("quic-rfc9002", path, every);
            let percent = |one: f64| 100.0 * (one - real) / real;
            off.push(percent(ours).abs());
            rfc_off.push(percent(rfc).abs());
            if percent(ours).abs() > 1.0 {
                misses.push((loss, every));
            }
            let loss = loss.trim_end_matches(" },").trim_start_matches("{ ");
            let _ = writeln!(
                table,
                "{rate:>6} {rtt:>6} {buffer:>6} {loss:<46} {every:>4} {real:>8.2} {ours:>8.2} {:>+6.1} % {:>+6.1} %",
                percent(ours),
                percent(rfc)
            );
        }
    }
    let within = |limit: f64| off.iter().filter(|&&one| one <= limit).count();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let _ = writeln!(
        table,
        "within 1 %: {} of {}; mean {:.1} %, of RFC 9438 {:.1} %",
        within(1.0),
        off.len(),
        mean(&off),
        mean(&rfc_off)
    );
    insta::assert_snapshot!(table);
    assert_eq!(misses, MISSES, "{table}");
}

/// quinn-proto with a seed, driven in virtual time, is deterministic: all datagrams of both hosts are the
/// same, byte for byte and at the same nanoseconds.
#[test]
fn quinn_proto_sends_the_same_bytes_twice() {
    type SentDatagrams = Vec<(Instant, packet::Dir, Vec<u8>)>;
    let sent = |seed: u8, path: Path| {
        let mut all: SentDatagrams = Vec::new();
        let scenario = scenario(("rfc", "cubic"), path, 2, u64::from(seed));
        let meter = SenderMeter::new(Instant::ZERO);
        quinn_world::run_recorded(
            &scenario,
            (2, QuinnController::Cubic),
            seed,
            meter,
            |at, dir, bytes| all.push((at, dir, bytes.to_vec())),
        );
        all
    };
    for path in [PATHS[0], PATHS[12], PATHS[16]] {
        let [first, again, other] = [1, 1, 2].map(|seed| sent(seed, path));
        assert!(first.len() > 5_000, "{}", first.len());
        assert_eq!(first.len(), again.len());
        assert!(first == again, "path {path:?}");
        // Another seed has other connection IDs and losses.
        assert!(first != other, "path {path:?}");
    }
}
