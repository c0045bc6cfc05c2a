//! Compares our QUIC sender with that of quinn-proto, a real stack, over the same path in virtual
//! time: the Mathis experiment (RTT 2 ms, 100 Gbit/s, 1,252 bytes per packet, NewReno), with every
//! 51st packet lost, and with 2 % random loss.
//!
//! `quinn_host::null_crypto` lets quinn run without TLS, `quinn_world` drives it over our path elements,
//! `meter` measures either sender. The tables are in the snapshots, and in docs/ledger/quic.md.
//!
//! Differences of quinn-proto 0.11.19 from the pseudocode of RFC 9002, found in its source where
//! the two runs diverge:
//! - A packet is sent only if the bytes in flight with it stay *below* the window
//!   (`connection/mod.rs`, `poll_transmit`: `in_flight.bytes + bytes_to_send >= window` blocks), so
//!   a window of ten packets carries nine.
//! - In congestion avoidance it counts bytes up to a window (RFC 3465), and keeps the count at a
//!   loss (`congestion/new_reno.rs`).
//! - Acknowledged packets are counted before the losses of the same ACK are processed, with the old
//!   window (`on_ack_received`).
//! - No packet is sent beyond a full window on entering recovery.

mod bbr;
mod encrypted;
mod host;
mod keys;
mod meter;
mod profile;
mod quinn_world;
#[cfg(quinn_qlog)]
mod whatif;

use std::fmt::Write as _;

use cc::quic_newreno::QuicAvoidance;
use meter::{PACKET, SenderMeter, WindowCycle};
use quic::QuicProfile;
use quic::profile::SendRule;
use quinn_world::QuinnController;
use scenario::{Overrides, load};
use sim::Scenario;
use units::{Duration, Instant};

const RTT: Duration = Duration::from_millis(2);
const WARM_UP: Duration = Duration::from_secs(1);
const SECONDS: u64 = 10;

/// The differences of quinn from our `quic-rfc9002`, rule by rule.
type QuinnRule = (&'static str, fn(&mut QuicProfile));

const RULES: [QuinnRule; 5] = [
    ("the flight stays below the window", |quic| quic.send = SendRule::Below),
    ("no packet on entering recovery", |quic| quic.newreno.one_packet_on_entry = false),
    ("bytes are counted up to a window", |quic| {
        quic.newreno.avoidance = QuicAvoidance::WindowOfBytes;
    }),
    ("a loss leaves the count as it is", |quic| quic.newreno.counter.cleared_at_loss = false),
    ("ACKs are counted before losses", |quic| quic.losses_first = false),
];

/// The measured sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderKind {
    Quinn,
    /// `quic-rfc9002` with this number of quinn's rules.
    Ours(usize),
}

impl SenderKind {
    const RFC: Self = Self::Ours(0);
    const LIKE_QUINN: Self = Self::Ours(RULES.len());
    const ALL: [Self; 3] = [Self::Quinn, Self::LIKE_QUINN, Self::RFC];

    const fn name(self) -> &'static str {
        match self {
            Self::Quinn => "quinn-proto 0.11.19",
            Self::RFC => "quic-rfc9002",
            Self::Ours(_) => "quic-rfc9002, quinn's rules",
        }
    }
}

/// The path of the experiment with this loss, between hosts of `profile`.
fn scenario(profile: &str, knobs: &str, loss: &str, seed: u64) -> Scenario {
    let text = format!(
        r#"
seed = {seed}
duration = "{SECONDS}s"

[host.client]
profile = "{profile}"
cc = "newreno"
mtu = "1280B"

[host.server]
profile = "{profile}"
cc = "newreno"
mtu = "1280B"
{knobs}
[[path]]
from = "client"
to = "server"
forward = [
    {{ loss = {loss} }},
    {{ link = {{ rate = "100Gbit/s", buffer = "200p" }} }},
    {{ delay = "1ms" }},
]
return = [
    {{ link = {{ rate = "100Gbit/s", buffer = "200p" }} }},
    {{ delay = "1ms" }},
]

[[flow]]
name = "stream"
from = "client"
to = "server"
bulk = "unlimited"
"#
    );
    let loaded = load(&text, "quinn-check", &Overrides::default());
    loaded.unwrap_or_else(|errors| panic!("{errors:?}")).scenario
}

/// Runs a sender; its receiver acknowledges every `every`-th packet.
fn run(sender: SenderKind, every: u32, loss: &str, seed: u64) -> SenderMeter {
    let mut meter = SenderMeter::new(Instant::ZERO + WARM_UP);
    if sender == SenderKind::Quinn {
        let scenario = scenario("rfc", "", loss, seed);
        return quinn_world::run(&scenario, (every, QuinnController::NewReno), seed as u8, meter);
    }
    let knobs = format!(
        "\n[host.server.knobs]\nnumReceivedAckElicitingsBeforeAck = {every}\n\
         initial_max_data = \"4294967295B\"\ninitial_max_stream_data = \"4294967295B\"\n"
    );
    let mut scenario = scenario("quic-rfc9002", &knobs, loss, seed);
    if let (SenderKind::Ours(rules), Some(quic)) = (sender, scenario.hosts[0].stack.quic_mut()) {
        RULES[..rules].iter().for_each(|(_, change)| change(&mut quic.profile));
    }
    sim::run(&scenario, &mut meter).unwrap_or_else(|error| panic!("{error:?}"));
    meter
}

const PERIODIC: &str = "{ pass = 50 }";
const RANDOM: &str = "\"2%\"";

/// The windows and the packets sent of a cycle, one column per round trip.
fn table(cycle: &WindowCycle) -> String {
    let row = |name: &str, cells: Vec<String>| {
        cells.iter().fold(format!("  {name:<9}"), |mut row, cell| {
            let _ = write!(row, "{cell:>6}");
            row
        }) + "\n"
    };
    let packets = |bytes: &u64| format!("{:.2}", *bytes as f64 / f64::from(PACKET));
    row("sent", cycle.sent.iter().map(ToString::to_string).collect())
        + &row("window", cycle.windows.iter().map(packets).collect())
}

/// One line and the rounds of each sender, the windows at which the last two diverge from the
/// first, and the goodputs in the order of [`SenderKind::ALL`].
fn side_by_side(every: u32) -> (String, [f64; 3]) {
    let mut text = String::new();
    let meters = SenderKind::ALL.map(|sender| run(sender, every, PERIODIC, 1));
    let rates = [0, 1, 2].map(|number| meters[number].mbps());
    for ((sender, meter), mbps) in SenderKind::ALL.into_iter().zip(&meters).zip(rates) {
        let cycles = meter.cycles(RTT);
        let spans: u64 = cycles.iter().map(|cycle| cycle.span.as_nanos()).sum();
        let mean = spans as f64 / cycles.len().max(1) as f64 / RTT.as_nanos() as f64;
        let than = (mbps / rates[0] - 1.0) * 100.0;
        let name = sender.name();
        let _ =
            writeln!(text, "{name:<28}{mbps:>7.2} Mbit/s {than:>+6.2} %{mean:>7.2} RTT a cycle");
        // The last two cycles, if different.
        let last = cycles.len().saturating_sub(2);
        let mut shown: Vec<WindowCycle> = cycles[last..].to_vec();
        shown.dedup_by(|one, other| (&one.sent, &one.windows) == (&other.sent, &other.windows));
        text.extend(shown.iter().map(table));
    }
    for (sender, meter) in SenderKind::ALL.into_iter().zip(&meters).skip(1) {
        let _ = writeln!(text, "{}: {}", sender.name(), parting(meter, &meters[0]));
    }
    (text, rates)
}

/// The first window of a run that differs from quinn's; window 0 is that after the first detected
/// loss.
fn parting(ours: &SenderMeter, quinn: &SenderMeter) -> String {
    let (ours, quinn) = (ours.windows_since_loss(), quinn.windows_since_loss());
    let same = ours.iter().zip(&quinn).take_while(|(one, other)| one.1 == other.1).count();
    let text = |windows: &[(Duration, u64)]| match windows.get(same) {
        Some((since, bytes)) => format!("{bytes} B at {:.3} ms", since.as_secs_f64() * 1e3),
        None => "no more".to_owned(),
    };
    format!("parts from quinn at window {same}: {}, quinn's {}", text(&ours), text(&quinn))
}

#[track_caller]
fn assert_within(percent: f64, one: f64, other: f64) {
    assert!((one / other - 1.0).abs() <= percent / 100.0, "{one} and {other}");
}

#[test]
fn periodic_loss_every_packet_acknowledged() {
    let (text, [quinn, alike, rfc]) = side_by_side(1);
    insta::assert_snapshot!(text);
    assert_within(1.0, alike, quinn);
    assert_within(5.0, rfc, quinn);
}

/// Here the rules of RFC 9002 give 5.2 % less: see [`RULES`] for the causes.
#[test]
fn periodic_loss_every_other_packet_acknowledged() {
    let (text, [quinn, alike, rfc]) = side_by_side(2);
    insta::assert_snapshot!(text);
    assert_within(1.0, alike, quinn);
    assert!(rfc < quinn, "{rfc} and {quinn}");
}

/// From our profile to quinn's rules, one by one.
#[test]
fn what_each_rule_is_worth() {
    let mut text = format!("{:<38}{:>10}{:>12}\n", "Mbit/s, ACK for", "every", "every other");
    for rules in 0..=RULES.len() {
        let name = if rules == 0 { "quic-rfc9002" } else { RULES[rules - 1].0 };
        let [one, two] =
            [1, 2].map(|every| run(SenderKind::Ours(rules), every, PERIODIC, 1).mbps());
        let _ = writeln!(text, "{name:<38}{one:>10.2}{two:>12.2}");
    }
    let [one, two] = [1, 2].map(|every| run(SenderKind::Quinn, every, PERIODIC, 1).mbps());
    let _ = writeln!(text, "{:<38}{one:>10.2}{two:>12.2}", SenderKind::Quinn.name());
    insta::assert_snapshot!(text);
}

#[test]
fn random_loss() {
    let mut text = String::new();
    for every in [1, 2] {
        let means = SenderKind::ALL.map(|sender| {
            let rates: Vec<f64> =
                (1..=6).map(|seed| run(sender, every, RANDOM, seed).mbps()).collect();
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let squares: f64 = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
            let spread = (squares / (rates.len() - 1) as f64).sqrt();
            let name = sender.name();
            let _ = writeln!(text, "every {every}: {name:<28}{mean:>7.2} Mbit/s, sd {spread:.2}");
            mean
        });
        assert_within(5.0, means[1], means[0]);
    }
    insta::assert_snapshot!(text);
}
