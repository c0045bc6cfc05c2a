//! Converts a recorded transfer to a scenario: its path, applications, and hosts with our Linux
//! TCP.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path as FrameLocation;

use net::link::QueueLimit;
use net::offload::GroParams;
use packet::IpVersion;
use serde::Deserialize;
use sim::scenario::{
    App, ByteRange, Close, ElementSpec, FlowSpec, HostSpec, Offload, OutageMode, PacketClass,
    PathSpec, ReadPattern, ReceiveOffloadSpec, Scenario, SelectionRule, StackSpec, TcpStack,
    reverse,
};
use tcp::profile::{BufferGrowth, ReceiveBufferRule, TcpProfile};
use units::{Bytes, Duration, Offset, Rate};

/// Delay from the arrival of a packet to the application's read: in the recordings' receiver rows
/// (first `D` to first `S`), the medians of the scenarios are 38 to 94 us.
const READER: Duration = Duration::from_micros(50);

/// Bytes per write of the recorded application: short packets within a transfer (a2, b1) end at a
/// multiple of 64 KiB.
const WRITE: NonZeroU64 = NonZeroU64::new(64 << 10).unwrap();

/// Ground truth of a transfer, as far as it is used (`scenario.json`).
#[derive(Debug, Deserialize)]
pub(super) struct Truth {
    emulator_arguments: Emulator,
    receiver_arguments: RecordedReceiver,
    flow_arguments: Vec<RecordedSender>,
    pub(super) flows: Vec<MeasuredFlow>,
    #[serde(default)]
    pub(super) kernel_counters_sender: Counters,
}

#[derive(Debug, Deserialize)]
struct Emulator {
    rate: u64,
    owd_us: u64,
    qbytes: u64,
    #[serde(default)]
    loss: String,
    #[serde(default)]
    reorder: String,
    #[serde(default)]
    gro: String,
    #[serde(default)]
    ackthin: String,
    #[serde(default)]
    blackout_us: String,
    #[serde(default)]
    hold_us: String,
}

#[derive(Debug, Deserialize)]
struct RecordedReceiver {
    rcvbuf: Option<u64>,
    #[serde(default)]
    slow: String,
}

#[derive(Debug, Deserialize)]
struct RecordedSender {
    cc: String,
    bytes: u64,
    #[serde(default)]
    app: String,
    #[serde(default)]
    nodelay: u8,
}

/// Results of a flow.
#[derive(Debug, Deserialize)]
pub(super) struct MeasuredFlow {
    /// Measured from the first byte read to the last.
    pub(super) goodput_bps: u64,
    pub(super) retransmitted_packets: u64,
}

/// The sender's counters of a run, summed over its flows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counters {
    #[serde(rename = "TCPSackRecovery")]
    pub(super) recoveries: u64,
    #[serde(rename = "TCPTimeouts")]
    pub(super) timeouts: u64,
    #[serde(rename = "TCPFullUndo")]
    full_undo: u64,
    #[serde(rename = "TCPPartialUndo")]
    partial_undo: u64,
    #[serde(rename = "TCPDSACKUndo")]
    dsack_undo: u64,
    #[serde(rename = "TCPLossUndo")]
    loss_undo: u64,
    #[serde(rename = "TCPHystartTrainCwnd")]
    train: u64,
    #[serde(rename = "TCPHystartDelayCwnd")]
    delay: u64,
}

impl Counters {
    /// Returns the number of undone recoveries and timeouts.
    pub(super) fn spurious(&self) -> u64 {
        self.full_undo + self.partial_undo + self.dsack_undo + self.loss_undo
    }

    /// Returns the window at which HyStart ended slow start; 0 if it did not.
    pub(super) fn hystart_exit(&self) -> u64 {
        self.train + self.delay
    }
}

impl Truth {
    /// Reads `scenario.json`.
    pub(super) fn read(transfer: &FrameLocation) -> Result<Self, String> {
        let file = transfer.join("scenario.json");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Returns the configured round-trip time without queueing.
    pub(super) fn base_rtt(&self) -> Duration {
        Duration::from_micros(2 * self.emulator_arguments.owd_us)
    }

    /// Returns whether the path has a finite queue.
    pub(super) const fn queues(&self) -> bool {
        self.emulator_arguments.qbytes > 0
    }

    /// Builds the scenario with base round-trip time `rtt`, in which the first SYN is sent `tick`
    /// into a jiffy; both hosts were one machine.
    ///
    /// # Errors
    /// The unsupported part of the scenario.
    pub(super) fn scenario(&self, rtt: Duration, tick: Duration) -> Result<Scenario, String> {
        let emulator = &self.emulator_arguments;
        let rate = Rate::from_bits_per_second(emulator.rate).ok_or("a rate of zero")?;
        let way = Duration::from_nanos(rtt.saturating_sub(READER).as_nanos() / 2);
        let mut forward = losses(&emulator.loss)?;
        if let Some((from, until)) = pair(&emulator.blackout_us)? {
            forward.push(outage(from, until, OutageMode::Drop));
        }
        let limit = if self.queues() { emulator.qbytes } else { u64::MAX };
        forward.push(ElementSpec::Link { rate, limit: QueueLimit::Bytes(Bytes(limit)) });
        if let Some((from, until)) = pair(&emulator.hold_us)? {
            forward.push(outage(from, until, OutageMode::Hold));
        }
        forward.extend(reordering(&emulator.reorder)?);
        forward.push(ElementSpec::Delay(way));
        let mut back = Vec::new();
        if let Some((segments, micros)) = pair(&emulator.ackthin)? {
            back.push(ElementSpec::Thin {
                bytes: Bytes(segments * 1_448),
                timeout: Duration::from_micros(micros),
            });
        }
        back.push(ElementSpec::Delay(way));
        let paths = vec![PathSpec { from: 0, to: 1, forward, reverse: back }];
        let flows = self.flow_arguments.iter().enumerate();
        Ok(Scenario {
            title: String::new(),
            seed: 1,
            duration: Duration::from_secs(60),
            hosts: self.hosts(tick)?,
            paths,
            shared: Vec::new(),
            flows: flows.map(|(n, flow)| self.flow(n, flow)).collect::<Result<_, _>>()?,
            groups: Vec::new(),
            taps: Vec::new(),
        })
    }

    fn hosts(&self, tick: Duration) -> Result<Vec<HostSpec>, String> {
        let profile = TcpProfile::named("linux-6.18").ok_or("no profile")?;
        let host = |name: &str, cc, profile, offload, delay| HostSpec {
            name: name.to_owned(),
            stack: StackSpec::Tcp(TcpStack { clock_phase: tick, ..TcpStack::new(profile, cc) }),
            offload,
            delay,
        };
        let mut receiver = profile.clone();
        if let Some(rcvbuf) = self.receiver_arguments.rcvbuf {
            // SO_RCVBUF is doubled and fixed; half of it, as payload, determines the window scale.
            let (size, none) = (Bytes(2 * rcvbuf), Bytes(0));
            receiver.receive_buffer = ReceiveBufferRule::Linux {
                rmem: [none, size, Bytes(rcvbuf)],
                auto: false,
                rmem_max: none,
                growth: BufferGrowth::RcvbufGrow,
                truesize: none,
            };
        }
        let cc = self.flow_arguments.first().map_or("cubic", |flow| flow.cc.as_str());
        let cc =
            cc::registry::find(cc, profile.cubic).map_err(|_| format!("{cc} is not modelled"))?;
        // The kernel passes down bursts regardless of the device, and segments them there (GSO).
        let sending = Offload { tso: true, ..Offload::default() };
        let receiving = merging(&self.emulator_arguments.gro)?;
        Ok(vec![
            host("sender", cc, profile, sending, Duration::ZERO),
            host("receiver", cc, receiver, receiving, READER),
        ])
    }

    fn flow(&self, number: usize, flow: &RecordedSender) -> Result<FlowSpec, String> {
        let bytes = Some(Bytes(flow.bytes));
        let app = match pair(&flow.app)? {
            Some((chunk, every)) => App::Paced {
                chunk: Bytes(chunk),
                every: Duration::from_micros(every),
                bytes,
                blocking: true,
            },
            None => App::Bulk { bytes, write: Some(WRITE) },
        };
        let slow = pair(&self.receiver_arguments.slow)?;
        Ok(FlowSpec {
            name: format!("flow {number}"),
            path: 0,
            from: 0,
            to: 1,
            start: Duration::ZERO,
            app,
            ip: IpVersion::V4,
            nodelay: flow.nodelay != 0,
            reads: slow.map(|(chunk, every)| ReadPattern {
                chunk: Bytes(chunk),
                every: Duration::from_micros(every),
            }),
            close: Close::Fin,
            keepalive: None,
        })
    }
}

const fn outage(from: u64, until: u64, during: OutageMode) -> ElementSpec {
    let (from, until) = (Duration::from_micros(from), Duration::from_micros(until));
    ElementSpec::Outage { from, until, during, period: None }
}

/// Parses the first two numbers separated by colons; the caller handles the rest.
fn pair(text: &str) -> Result<Option<(u64, u64)>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut parts = text.split(':').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(first)), Some(Ok(second))) => Ok(Some((first, second))),
        _ => Err(format!("{text:?} is not understood")),
    }
}

fn merging(gro: &str) -> Result<Offload, String> {
    let Some((packets, micros)) = pair(gro)? else { return Ok(Offload::default()) };
    let params = GroParams {
        max_packets: packets as u32,
        ends_at_push: !gro.contains("nopsh"),
        same_timestamps: !gro.contains("tsloose"),
        ..GroParams::LINUX
    };
    let flush = Duration::from_micros(micros);
    Ok(Offload { receive: ReceiveOffloadSpec::Gro(params), flush, ..Offload::default() })
}

fn reordering(rule: &str) -> Result<Option<ElementSpec>, String> {
    let wrong = || format!("{rule:?} is not understood");
    let Some((kind, rest)) = rule.split_once(':') else { return Ok(None) };
    let (n, micros) = pair(rest)?.ok_or_else(wrong)?;
    let span = Duration::from_micros(micros);
    match kind {
        "rev" => Ok(Some(ElementSpec::Reverse(reverse::ReverseParams {
            group: NonZeroU32::new(n as u32).ok_or_else(wrong)?,
            gap: Duration::from_micros(1),
            timeout: span,
            class: PacketClass::Data,
        }))),
        "delay" => {
            let rule = SelectionRule::Every(NonZeroU64::new(n).ok_or_else(wrong)?);
            Ok(Some(ElementSpec::Late { rule, by: span, only: PacketClass::Data }))
        }
        _ => Err(wrong()),
    }
}

fn losses(rules: &str) -> Result<Vec<ElementSpec>, String> {
    let rules = rules.split(';').filter(|rule| !rule.is_empty());
    let element = |rule| ElementSpec::Loss { rule, only: PacketClass::Data };
    rules.map(|text| loss(text).map(element)).collect()
}

fn loss(text: &str) -> Result<SelectionRule, String> {
    let wrong = || format!("{text:?} is not understood");
    let parts: Vec<&str> = text.split(':').collect();
    let number = |at: usize| -> Result<u64, String> {
        parts.get(at).and_then(|part| part.parse().ok()).ok_or_else(wrong)
    };
    match parts.first().copied() {
        Some("periodic") => NonZeroU64::new(number(1)?).map(SelectionRule::Every).ok_or_else(wrong),
        Some("list") => number(1).map(|n| SelectionRule::Listed(vec![n])),
        Some("bern") => {
            let share: f64 = parts.get(1).and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
            Ok(SelectionRule::Listed(drawn(share, number(2)?)))
        }
        Some("seq") => Ok(SelectionRule::Bytes(ByteRange {
            from: Offset(number(1)?),
            until: Offset(number(2)?),
            times: number(3)? as u32,
        })),
        _ => Err(wrong()),
    }
}

/// Returns the packets that the emulator's rule `bern:p:seed` drops: those whose SplitMix64 draw
/// has upper 53 bits below `share` of their range.
fn drawn(share: f64, seed: u64) -> Vec<u64> {
    /// More packets than any transfer sends.
    const PACKETS: u64 = 100_000;
    let mut state = seed;
    let mut below = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let upper = (z ^ (z >> 31)) >> 11;
        upper as f64 / 9_007_199_254_740_992.0 < share
    };
    (1..=PACKETS).filter(|_| below()).collect()
}
