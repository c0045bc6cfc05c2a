//! Simulation of a scenario that matches a formula's path.

use std::borrow::Cow;
use std::collections::VecDeque;

use record::{Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState};
use serde::Serialize;
use sim::Observer;
use theory::Path;
use units::{Bytes, Duration, HostId, Instant};

use crate::stop::{self, NEVER, StopFlag};
use scenario::{Overrides, ScenarioError, load};

/// The loss pattern of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One packet is lost after every 1/p packets.
    Periodic,
    /// Each packet is lost with the same probability.
    Random,
}

/// The parameters of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Profile of the sender.
    pub profile: String,
    /// Its congestion control; `None`: the Reno of its system.
    pub cc: Option<String>,
    /// The loss pattern.
    pub pattern: Pattern,
    /// Delayed ACK timeout; `None`: the receiver acknowledges every packet, otherwise every other.
    pub ack_delay: Option<Duration>,
    /// Seed of the run.
    pub seed: u64,
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialResult {
    /// Profile of the sender.
    pub profile: &'static str,
    /// Its congestion control.
    pub cc: Cow<'static, str>,
    /// Whether it is a sender of QUIC.
    #[serde(skip)]
    pub is_quic: bool,
    /// The loss pattern as text.
    pub losses: String,
    /// The ACK policy of the receiver as text.
    pub acks: String,
    /// Seed of the run.
    pub seed: u64,
    /// Payload read per second after the warm-up, in bit/s; for QUIC the rate of packets at the
    /// receiver, which its formulas count.
    pub rate_bps: f64,
    /// Warm-up, excluded from the measurement: slow start and the first cycles.
    pub warm_up_s: f64,
    /// Duration of the measurement.
    pub measured_s: f64,
    /// Retransmitted packets in the whole run.
    #[serde(rename = "resent")]
    pub retransmission: u64,
    /// Fast recoveries in the whole run.
    pub fast_recoveries: u64,
    /// Timeouts in the whole run.
    pub rtos: u64,
    /// SHA-256 of the scenario.
    pub scenario_sha256: String,
}

/// Warm-up in round trips, and its minimum duration.
const WARM_UP_RTTS: u64 = 200;
const WARM_UP_LEAST: Duration = Duration::from_secs(1);
/// Losses per measurement, and its limit in segments.
const LOSSES: f64 = 500.0;
const MOST_SEGMENTS: f64 = 1_000_000.0;

/// Simulates a sender over `path` for several hundred losses; `expected_bps` is the estimate of a
/// formula.
///
/// # Errors
/// The errors of the generated scenario.
pub fn measure(
    path: &Path,
    expected_bps: f64,
    trial: &Trial,
) -> Result<TrialResult, Vec<ScenarioError>> {
    measure_until(path, expected_bps, trial, &NEVER)
}

/// As [`measure`]; ends the run when `stop` is set.
///
/// # Errors
/// As for [`measure`].
pub fn measure_until(
    path: &Path,
    expected_bps: f64,
    trial: &Trial,
    stop: StopFlag<'_>,
) -> Result<TrialResult, Vec<ScenarioError>> {
    let warm_up = path.rtt().saturating_mul(WARM_UP_RTTS).max(WARM_UP_LEAST);
    let segments = (LOSSES / path.p()).min(MOST_SEGMENTS);
    let seconds = segments * path.mss().get() as f64 * 8.0 / expected_bps.max(1.0);
    let span = Duration::from_millis((seconds * 1e3).clamp(1e3, 1e6) as u64);
    let text = scenario(path, trial, warm_up + span);
    let loaded = load(&text, "the scenario of this run", &Overrides::default())?;
    let from = Instant::ZERO + warm_up;
    let is_quic = loaded.scenario.hosts.first().is_some_and(|host| host.stack.is_quic());
    let (outcome, bytes) = if is_quic {
        let mut packets = PacketMeter { from, in_flight: VecDeque::new(), bytes: 0 };
        (stop::run_shared(&loaded.scenario, &mut packets, stop), packets.bytes)
    } else {
        let mut reads = ReadMeter { from, bytes: 0 };
        (stop::run_shared(&loaded.scenario, &mut reads, stop), reads.bytes)
    };
    let outcome = outcome.map_err(|_| Vec::new())?;
    let Some(flow) = outcome.flows.first() else { return Err(Vec::new()) };
    Ok(TrialResult {
        profile: flow.profile,
        cc: flow.cc.clone(),
        is_quic,
        losses: match trial.pattern {
            Pattern::Periodic => format!("1 lost after {}", pass(path)),
            Pattern::Random => format!("{} % lost at random", percent(path)),
        },
        acks: match trial.ack_delay {
            None => "every packet".to_owned(),
            Some(delay) => format!("every other packet, or after {delay}"),
        },
        seed: trial.seed,
        rate_bps: bytes as f64 * 8.0 / span.as_secs_f64(),
        warm_up_s: warm_up.as_secs_f64(),
        measured_s: span.as_secs_f64(),
        retransmission: flow.retransmitted_segments,
        fast_recoveries: flow.fast_recoveries,
        rtos: flow.rtos,
        scenario_sha256: loaded.sha256,
    })
}

/// Packets that pass before one is lost: 1/p.
fn pass(path: &Path) -> u64 {
    ((1.0 / path.p()).round() as u64).max(1)
}

/// The loss rate in percent, to the twelfth decimal.
fn percent(path: &Path) -> String {
    let text = format!("{:.12}", path.p() * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Header bytes of IPv4 and TCP with timestamps.
const HEADERS: Bytes = Bytes(52);
/// Header bytes of IPv4 and UDP: the formula counts QUIC packets.
const UDP_HEADERS: Bytes = Bytes(28);

/// The scenario as text.
fn scenario(path: &Path, trial: &Trial, duration: Duration) -> String {
    match quic::QuicProfile::named(&trial.profile) {
        Some(_) => quic_scenario(path, trial, duration),
        None => tcp_scenario(path, trial, duration),
    }
}

/// A scenario of two hosts with the profile and the requested ACK policy and window.
fn quic_scenario(path: &Path, trial: &Trial, duration: Duration) -> String {
    let profile = &trial.profile;
    let cc = trial.cc.as_deref().unwrap_or("newreno");
    let mtu = path.mss() + UDP_HEADERS;
    let acks = match trial.ack_delay {
        None => "numReceivedAckElicitingsBeforeAck = 1".to_owned(),
        Some(delay) => {
            format!("numReceivedAckElicitingsBeforeAck = 2\nmax_ack_delay = \"{delay}\"")
        }
    };
    let window = path.window().map_or(u64::from(u32::MAX), |window| window.get());
    format!(
        r#"{head}
[host.sender]
profile = "{profile}"
cc = "{cc}"
mtu = "{mtu}B"

[host.sink]
profile = "{profile}"
cc = "{cc}"
mtu = "{mtu}B"

[host.sink.knobs]
{acks}
# Losses are found within a few packets; older gaps say nothing new.
max_ack_ranges = 16
initial_max_data = "{window}B"
initial_max_stream_data = "{window}B"
{path_and_flow}"#,
        head = head(trial, duration),
        mtu = mtu.get(),
        path_and_flow = path_and_flow(path, trial, ""),
    )
}

fn head(trial: &Trial, duration: Duration) -> String {
    let seed = trial.seed;
    format!("title = \"a sender, a loss rate\"\nseed = {seed}\nduration = \"{duration}\"\n")
}

/// The path and the flow; `only` selects the packets that may be lost.
fn path_and_flow(path: &Path, trial: &Trial, only: &str) -> String {
    let there = Duration::from_nanos(path.rtt().as_nanos() / 2);
    let back = path.rtt().saturating_sub(there);
    let loss = match trial.pattern {
        Pattern::Periodic => format!("{{ pass = {} }}", pass(path)),
        Pattern::Random => format!("\"{}%\"", percent(path)),
    };
    let rate = path.rate().map_or(100_000_000_000, units::Rate::bits_per_second);
    format!(
        r#"
[[path]]
from = "sender"
to = "sink"
forward = [
    {{ loss = {loss}{only} }},
    {{ link = {{ rate = "{rate}bit/s", buffer = "1000000p" }} }},
    {{ delay = "{there}" }},
]
return = [{{ delay = "{back}" }}]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
bulk = "unlimited"
"#
    )
}

/// A scenario of a bulk sender and a FreeBSD receiver, whose ACK policy can be set, over a link
/// that is no limit unless the path has one.
fn tcp_scenario(path: &Path, trial: &Trial, duration: Duration) -> String {
    let profile = &trial.profile;
    let cc = trial.cc.as_deref().unwrap_or(match profile.starts_with("linux") {
        true => "reno",
        false => "newreno",
    });
    let mtu = path.mss() + HEADERS;
    let acks = match trial.ack_delay {
        None => "\"net.inet.tcp.delayed_ack\" = 0".to_owned(),
        Some(delay) => format!("\"net.inet.tcp.delacktime\" = \"{delay}\""),
    };
    let window = path.window().map_or_else(String::new, |window| {
        let window = window.get();
        format!("\"net.inet.tcp.recvbuf_auto\" = 0\n\"net.inet.tcp.recvspace\" = \"{window}B\"\n")
    });
    format!(
        r#"{head}
[host.sender]
profile = "{profile}"
cc = "{cc}"
mtu = "{mtu}B"

[host.sink]
profile = "freebsd-14.3"
cc = "newreno"
mtu = "{mtu}B"

[host.sink.knobs]
{acks}
{window}{path_and_flow}"#,
        head = head(trial, duration),
        mtu = mtu.get(),
        path_and_flow = path_and_flow(path, trial, ", only = \"data\""),
    )
}

/// Counts the bytes that the receiver's application reads after an instant.
struct ReadMeter {
    from: Instant,
    bytes: u64,
}

impl Recorder for ReadMeter {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
            && who.host == HostId(1)
            && at >= self.from
        {
            self.bytes += u64::from(bytes);
        }
    }
}

impl Observer for ReadMeter {}

/// Counts the QUIC packets that reach the receiver after an instant.
struct PacketMeter {
    from: Instant,
    /// The sender's packets in flight, which arrive in order.
    in_flight: VecDeque<(PacketNumber, u32)>,
    bytes: u64,
}

impl Recorder for PacketMeter {
    const ON: bool = false;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { host: HostId(0), packet, size, .. } => {
                self.in_flight.push_back((packet, size - UDP_HEADERS.get() as u32));
            }
            PacketEvent::Received { host: HostId(1), packet, .. } => {
                while let Some((number, size)) = self.in_flight.pop_front() {
                    if number == packet {
                        self.bytes += u64::from(size) * u64::from(at >= self.from);
                        break;
                    }
                }
            }
            _ => {}
        }
    }
}

impl Observer for PacketMeter {}

#[cfg(test)]
mod tests {
    use units::Ratio;

    use super::*;

    fn path(num: u64, den: u64) -> Path {
        let loss = Ratio::new(num, den).unwrap();
        Path::new(Bytes(1_252), Duration::from_millis(20), loss).unwrap()
    }

    fn trial(pattern: Pattern) -> Trial {
        let profile = "freebsd-14.3".to_owned();
        Trial { profile, cc: None, pattern, ack_delay: None, seed: 1 }
    }

    #[test]
    fn a_loss_rate_is_written_exactly() {
        // 0.07 * 100 is not 7 in binary.
        assert_eq!(percent(&path(7, 100)), "7");
        assert_eq!(percent(&path(1, 100_000_000)), "0.000001");
        assert_eq!((pass(&path(2, 100)), pass(&path(9, 10))), (50, 1));
    }

    /// The window between losses is that of the formula, except for the sender's behaviour in
    /// recovery, which the formula does not model.
    #[test]
    fn a_run_comes_near_the_formula() {
        let path = path(1, 1_000);
        let expected = theory::mathis::estimate(&path, theory::mathis::Constant::Periodic).rate_bps;
        let measured = measure(&path, expected, &trial(Pattern::Periodic)).unwrap();
        let share = measured.rate_bps / expected;
        assert!((0.85..1.0).contains(&share), "{share}");
        assert_eq!(measured.rtos, 0);
    }

    /// INET's sender in the setting of its document: 35.77 Mbit/s, 31.30 with delayed ACKs.
    #[test]
    fn quic_is_measured_by_its_packets() {
        let loss = Ratio::new(2, 100).unwrap();
        let path = Path::new(Bytes(1_252), Duration::from_millis(2), loss).unwrap();
        for (ack_delay, mbps) in [(None, 35.77), (Some(Duration::from_millis(25)), 31.30)] {
            let profile = "quic-inet-2025-02".to_owned();
            let trial = Trial { profile, ack_delay, ..trial(Pattern::Periodic) };
            let measured = measure(&path, mbps * 1e6, &trial).unwrap().rate_bps / 1e6;
            assert!((measured - mbps).abs() <= 0.02, "{measured}");
        }
    }

    #[test]
    fn errors_of_a_trial_are_reported() {
        let profile = "freebsd-99".to_owned();
        let errors = measure(&path(2, 100), 1e7, &Trial { profile, ..trial(Pattern::Random) });
        assert!(errors.unwrap_err()[0].to_string().contains("freebsd-99"));
    }
}
