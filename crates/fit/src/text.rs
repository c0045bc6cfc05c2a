//! Writes a fit as a scenario file.

use net::selection::PacketClass;
use scenario::document::{
    ByName, ElementTable, FlowTable, GilbertElliottTable, GroTable, HostTable, LinkTable, Located,
    LroTable, OutageTable, PacedTable, PacketRule, PathTable, RawValue, ReadsTable, ReceiveOffload,
    ReorderTable, RuleTable, ScenarioFile, TransferSize, given, named, tables,
};
use scenario::units_text::{BufferSize, share};
use units::{Bytes, Duration, Rate};

pub(crate) use crate::fitted::MTU;
use crate::fitted::ReorderingFit;
use crate::{Basis, LossEstimate, PathFit, WritePattern};

/// Assumed rate of a path whose bottleneck was never seen busy, in bit/s.
const FAST: u64 = 10_000_000_000;
/// A queue that never fills.
const ROOMY: Bytes = Bytes(1_000_000_000);
/// Full-sized segments that fit into an aggregate of 64 KiB.
const MOST_MERGED: u64 = 45;
/// Default limits of send buffer autotuning: `net.ipv4.tcp_wmem` and `net.inet.tcp.sendbuf_max`.
const LINUX_ROOM: u64 = 4 << 20;
const FREEBSD_ROOM: u64 = 2 << 20;
/// Ratio of a Linux receive buffer to its advertised window: `scaling_ratio` of packets that were
/// not merged is 160 of 256.
const RMEM: (u64, u64) = (256, 160);

/// Limits of scenario files: a duration in ns, a rate in bit/s, a queue in bytes.
const LONGEST: u64 = 1_000_000_000_000_000;
const FASTEST: u64 = 100_000_000_000_000;
const DEEPEST: u64 = 1_000_000_000_000_000_000;
/// Range of the socket buffer knobs.
const BUFFERS: (u64, u64) = (4_096, 1 << 30);

/// How losses are reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossPattern {
    /// The same packets are lost.
    Same,
    /// The same loss rate at random: for a sender that sends other packets.
    Random,
}

impl PathFit {
    /// Returns the scenario with a sender of `profile` and, if given, congestion control `cc`.
    pub fn scenario(
        &self,
        profile: &str,
        cc: Option<&str>,
        chance: LossPattern,
        seed: u64,
    ) -> String {
        let document = FitDocument {
            source: "a capture",
            title: "fitted to a capture",
            bases: &self.bases,
            time: self.time,
            sender: self.sender(profile, cc),
            receiver: self.receiver(),
            path: self.path(chance),
            flow: transfer(self.bytes, self.writes, self.reads),
        };
        document.text(seed)
    }

    fn sender(&self, profile: &str, cc: Option<&str>) -> HostTable {
        HostTable {
            profile: given(profile),
            cc: cc.and_then(given),
            mtu: given(Bytes(self.mtu())),
            tso: self.bursts.then(|| true.into()),
            knobs: match self.send_buffer {
                Some(size) => small_send_buffer_knobs(profile, size),
                None => send_buffer_knobs(profile, self.flight),
            },
            ..HostTable::default()
        }
    }

    fn receiver(&self) -> HostTable {
        let profile = if self.receives_as_linux() { "linux-6.18" } else { "freebsd-14.3" };
        let linux = is_linux(profile);
        // The receive offload waits at most a fraction of the round trip.
        let wait = given(Duration::from_micros((self.rtt / 20_000).clamp(1, 1_000)));
        let gro = self.per_ack.filter(|_| linux).map(|segments| GroTable {
            max_packets: given(segments.min(MOST_MERGED)),
            flush: wait,
            ends_at_push: given(false),
            same_timestamps: given(false),
            ..GroTable::default()
        });
        let lro = self.per_ack.filter(|_| !linux);
        let lro = lro.map(|_| LroTable { flush: wait, ..LroTable::default() });
        HostTable {
            profile: given(profile),
            mtu: given(Bytes(self.mtu())),
            lro: lro.and_then(|limits| given(ReceiveOffload::Limits(limits))),
            gro: gro.and_then(|limits| given(ReceiveOffload::Limits(limits))),
            knobs: self.window.and_then(|window| receive_window_knobs(profile, window)),
            ..HostTable::default()
        }
    }

    fn path(&self, chance: LossPattern) -> PathTable {
        let outages = self.losses.outages.iter().map(|span| outage(*span, None));
        let held = self.held.map(|span| outage(span, Some(true)));
        let path = FittedPath {
            rtt: self.rtt,
            mtu: self.mtu(),
            rate: self.rate,
            buffer: self.buffer,
            losses: &self.losses,
            outages: outages.chain(held).collect(),
            late: self.late,
        };
        path.table(chance)
    }
}

/// Knobs of a host, by name.
type Knobs = Option<Located<ByName<RawValue>>>;

/// Returns the knobs of a TCP sender's buffer if the recorded flight exceeds the system's default
/// limit.
pub(crate) fn send_buffer_knobs(profile: &str, flight: u64) -> Knobs {
    let linux = is_linux(profile);
    if flight <= if linux { LINUX_ROOM } else { FREEBSD_ROOM } {
        return None;
    }
    let room = Bytes(flight.saturating_mul(2).min(BUFFERS.1));
    match linux {
        true => {
            let sizes = RawValue::from([Bytes(4 << 10), Bytes(16 << 10), room].to_vec());
            named([("net.ipv4.tcp_wmem", sizes)])
        }
        false => named([
            ("kern.ipc.maxsockbuf", RawValue::from(room)),
            ("net.inet.tcp.sendbuf_max", RawValue::from(room)),
        ]),
    }
}

/// Returns the knobs of a TCP sender whose buffer has this size.
fn small_send_buffer_knobs(profile: &str, size: u64) -> Knobs {
    let size = Bytes(size.clamp(BUFFERS.0, BUFFERS.1));
    match is_linux(profile) {
        true => {
            named([("net.ipv4.tcp_wmem", RawValue::from([Bytes(BUFFERS.0), size, size].to_vec()))])
        }
        false => named([
            ("net.inet.tcp.sendspace", RawValue::from(size)),
            ("net.inet.tcp.sendbuf_auto", RawValue::from(0)),
        ]),
    }
}

/// Returns the knobs of a TCP receiver that advertises at most `window` bytes.
pub(crate) fn receive_window_knobs(profile: &str, window: u64) -> Knobs {
    match is_linux(profile) {
        true => {
            let room = (window.saturating_mul(RMEM.0) / RMEM.1).clamp(BUFFERS.0, BUFFERS.1);
            let sizes = [4 << 10, room, room].map(Bytes).to_vec();
            named([("net.ipv4.tcp_rmem", RawValue::from(sizes))])
        }
        false => {
            let window = Bytes(window.clamp(BUFFERS.0, BUFFERS.1));
            named([
                ("net.inet.tcp.recvspace", RawValue::from(window)),
                ("net.inet.tcp.recvbuf_auto", RawValue::from(0)),
            ])
        }
    }
}

/// What a fit writes into a scenario file.
pub(crate) struct FitDocument<'a> {
    /// What it is fitted to.
    pub(crate) source: &'static str,
    pub(crate) title: &'static str,
    pub(crate) bases: &'a [Basis],
    /// Duration of the recorded transfer, in ns.
    pub(crate) time: u64,
    pub(crate) sender: HostTable,
    pub(crate) receiver: HostTable,
    pub(crate) path: PathTable,
    pub(crate) flow: FlowTable,
}

impl FitDocument<'_> {
    /// The scenario file.
    pub(crate) fn text(self, seed: u64) -> String {
        let bases = self.bases.iter().map(|basis| format!("  {}: {}", basis.what, basis.why));
        let first = format!("Fitted to {}. Basis of each figure:", self.source);
        let file = ScenarioFile {
            comment: [first].into_iter().chain(bases).collect(),
            title: given(self.title),
            seed: given(seed),
            duration: given(limit_of(self.time)),
            host: named([("sender", self.sender), ("receiver", self.receiver)]),
            path: tables([self.path]),
            flow: tables([self.flow]),
            ..ScenarioFile::default()
        };
        file.to_string()
    }
}

/// The path of a fit.
pub(crate) struct FittedPath<'a> {
    /// Shortest round trip, in ns. It includes the transmission time of a packet of `mtu` bytes.
    pub(crate) rtt: u64,
    pub(crate) mtu: u64,
    /// Rate of the bottleneck in bit/s, and its queue in bytes, if they are known.
    pub(crate) rate: Option<u64>,
    pub(crate) buffer: Option<u64>,
    pub(crate) losses: &'a LossEstimate,
    pub(crate) outages: Vec<ElementTable>,
    pub(crate) late: Option<ReorderingFit>,
}

impl FittedPath<'_> {
    pub(crate) fn table(self, chance: LossPattern) -> PathTable {
        let rate = self.rate.unwrap_or(FAST).clamp(1, FASTEST);
        let on_link = u128::from(self.mtu) * 8_000_000_000 / u128::from(rate);
        let on_link = u64::try_from(on_link).unwrap_or(u64::MAX);
        let one_way = (self.rtt.saturating_sub(on_link) / 2).min(LONGEST);
        let delay = || ElementTable {
            delay: given(Duration::from_nanos(one_way)),
            ..ElementTable::default()
        };
        let buffer = self.buffer.map_or(ROOMY, |bytes| Bytes(bytes.min(DEEPEST)));
        let link = LinkTable {
            rate: Rate::from_bits_per_second(rate).and_then(given),
            buffer: given(BufferSize::Size(buffer)),
            ..LinkTable::default()
        };
        let link = ElementTable { link: given(link), ..ElementTable::default() };
        let losses = loss(self.losses, chance).into_iter().chain(self.outages);
        let late = self.late.and_then(reordering);
        PathTable {
            from: given("sender"),
            to: given("receiver"),
            forward: tables(losses.chain([link]).chain(late).chain([delay()])),
            return_: tables([delay()]),
            ..PathTable::default()
        }
    }
}

/// Returns the longest duration of a run that reproduces `time` ns.
fn limit_of(time: u64) -> Duration {
    let limit = (time / 1_000_000_000 + 1) * 20 + 60;
    Duration::from_secs(limit.min(LONGEST / 1_000_000_000))
}

fn is_linux(profile: &str) -> bool {
    profile.starts_with("linux")
}

/// Returns a reader of at least one byte per read.
fn reads(rate: u64) -> ReadsTable {
    let (every, rate) = match rate {
        0..8_000 => (Duration::from_secs(1), rate.max(8)),
        _ => (Duration::from_millis(10), rate),
    };
    let rate = Rate::from_bits_per_second(rate.min(FASTEST)).and_then(given);
    ReadsTable { rate, every: given(every), ..ReadsTable::default() }
}

/// Returns an outage in whole microseconds, never empty.
pub(crate) fn outage((from, until): (u64, u64), hold: Option<bool>) -> ElementTable {
    let end = LONGEST - 1_000;
    let outage = OutageTable {
        from: given(Duration::from_micros(from.min(end) / 1_000)),
        until: given(Duration::from_micros(until.min(end) / 1_000 + 1)),
        hold: hold.and_then(given),
        ..OutageTable::default()
    };
    ElementTable { outage: given(outage), ..ElementTable::default() }
}

/// Returns lost packets as an element of a path.
fn loss(losses: &LossEstimate, chance: LossPattern) -> Option<ElementTable> {
    if losses.packets.is_empty() {
        return None;
    }
    let loss = match chance {
        LossPattern::Same => {
            let packets: Vec<u64> = losses.packets.iter().map(|(n, _)| *n).collect();
            let rule = RuleTable { packets: given(packets), ..RuleTable::default() };
            PacketRule::Rule(rule.into())
        }
        LossPattern::Random => {
            let part = |part: f64| share(&format!("{:.6}%", part.min(1.0) * 100.0)).ok();
            match losses.bursts() {
                None => PacketRule::Share(part(losses.rate())?),
                Some((begin, end)) => {
                    let (p, r) = (given(part(begin)?), given(part(end)?));
                    let channel = GilbertElliottTable { p, r, ..GilbertElliottTable::default() };
                    let gilbert_elliott = given(Box::new(channel));
                    let rule = RuleTable { gilbert_elliott, ..RuleTable::default() };
                    PacketRule::Rule(rule.into())
                }
            }
        }
    };
    Some(ElementTable { loss: given(loss), only: given(PacketClass::Data), ..Default::default() })
}

/// Returns reordering as an element of a path.
fn reordering(late: ReorderingFit) -> Option<ElementTable> {
    let reorder = match late {
        ReorderingFit::Reversed(group) => ReorderTable {
            reverse: given(group),
            gap: given(Duration::ZERO),
            timeout: given(Duration::from_micros(500)),
            ..ReorderTable::default()
        },
        ReorderingFit::Share(part, by) => ReorderTable {
            fraction: given(share(&format!("{:.4}%", part.min(1.0) * 100.0)).ok()?),
            by: given(Duration::from_micros(by.clamp(1_000, LONGEST) / 1_000)),
            ..ReorderTable::default()
        },
    };
    Some(ElementTable {
        reorder: given(reorder),
        only: given(PacketClass::Data),
        ..ElementTable::default()
    })
}

/// Returns the flow.
pub(crate) fn transfer(bytes: u64, writes: WritePattern, read_rate: Option<u64>) -> FlowTable {
    let bytes = TransferSize::Bytes(Bytes(bytes));
    let flow = FlowTable {
        name: given("transfer"),
        from: given("sender"),
        to: given("receiver"),
        reads: read_rate.and_then(|rate| given(reads(rate))),
        ..FlowTable::default()
    };
    match writes {
        WritePattern::Bulk => FlowTable { bulk: given(bytes), ..flow },
        WritePattern::Paced(chunk, every) => {
            let paced = PacedTable {
                chunk: given(Bytes(chunk)),
                every: given(Duration::from_micros(every.clamp(1_000, LONGEST) / 1_000)),
                bytes: given(bytes),
            };
            FlowTable { paced: given(paced), ..flow }
        }
    }
}
