//! Writes a fit as a scenario file.

use net::selection::PacketClass;
use packet::Dir;
use record::SynOffers;
use scenario::document::{
    ByName, CodelTable, Discipline, ElementTable, ExchangeStepTable, ExchangeTable, FlowTable,
    GilbertElliottTable, GroTable, HostTable, LinkTable, Located, LroTable, OutageTable,
    PacedTable, PacketRule, PathTable, PolicerTable, RawValue, ReadsTable, ReceiveOffload,
    ReorderTable, RuleTable, ScenarioFile, TransferSize, given, named, tables,
};
use scenario::units_text::{BufferSize, share};
use units::{Bytes, Duration, Rate};

use crate::beside::{BesideTables, SHARED_LINK, share_link};
pub(crate) use crate::fitted::MTU;
use crate::reordering::ReorderingFit;
use crate::{
    Basis, LossEstimate, Message, OpeningFit, PathFit, PolicerFit, WayBackFit, WritePattern,
};

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
pub(crate) const LONGEST: u64 = 1_000_000_000_000_000;
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
        let mut path = self.path(chance);
        let mut beside = Vec::new();
        let shared = match self.beside.is_empty() {
            true => None,
            false => share_link(&mut path),
        };
        if shared.is_some() {
            beside.extend((2..).zip(&self.beside).map(|(n, one)| one.tables(n, chance)));
        }
        let document = FitDocument {
            source: "a capture",
            title: "fitted to a capture",
            bases: &self.bases,
            time: self.time,
            sender: self.sender(profile, cc),
            receiver: self.receiver(),
            path,
            flow: self.flow(),
            shared,
            beside,
        };
        document.text(seed)
    }

    pub(crate) fn sender(&self, profile: &str, cc: Option<&str>) -> HostTable {
        HostTable {
            profile: given(profile),
            cc: cc.and_then(given),
            mtu: given(Bytes(self.mtu())),
            tso: self.bursts.then(|| true.into()),
            knobs: joined([
                match self.send_buffer {
                    Some(size) => small_send_buffer_knobs(profile, size),
                    None => send_buffer_knobs(profile, self.flight),
                },
                self.ecn_knobs(profile),
            ]),
            ..HostTable::default()
        }
    }

    /// Knobs of a host that uses ECN.
    fn ecn_knobs(&self, profile: &str) -> Knobs {
        let OpeningFit { ecn, only_ecn, .. } = self.opening;
        let knob = match is_linux(profile) {
            true => "net.ipv4.tcp_ecn",
            false => "net.inet.tcp.ecn.enable",
        };
        (ecn || only_ecn).then(|| named([(knob, RawValue::from(1))])).flatten()
    }

    /// The flow of the data, or the exchange of which they are a part.
    pub(crate) fn flow(&self) -> FlowTable {
        let Some(conversation) = &self.conversation else {
            return transfer(self.bytes, self.writes, self.reads);
        };
        let by_client = self.dir == Dir::Forward;
        let step = |one: &Message| {
            let bytes = given(Bytes(one.bytes));
            let (client, server) = if one.by_client { (bytes, None) } else { (None, bytes) };
            let after = Duration::from_micros(one.after.min(LONGEST) / 1_000);
            let window = conversation.window.filter(|_| one.by_client == by_client);
            ExchangeStepTable {
                client,
                server,
                after: (one.after >= 1_000).then(|| given(after)).flatten(),
                window: window.and_then(|window| given(Bytes(window))),
            }
        };
        let exchange = ExchangeTable {
            steps: tables(conversation.messages.iter().map(step)),
            ..ExchangeTable::default()
        };
        let (from, to) = if by_client { ("sender", "receiver") } else { ("receiver", "sender") };
        FlowTable {
            name: given("transfer"),
            from: given(from),
            to: given(to),
            nodelay: given(conversation.held == 0),
            exchange: given(exchange),
            ..FlowTable::default()
        }
    }

    pub(crate) fn receiver(&self) -> HostTable {
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
            knobs: joined([
                match self.receive_buffer {
                    Some(size) => receive_buffer_knobs(profile, size),
                    None => self.window.and_then(|window| receive_window_knobs(profile, window)),
                },
                self.ecn_knobs(profile),
            ]),
            ..HostTable::default()
        }
    }

    pub(crate) fn path(&self, chance: LossPattern) -> PathTable {
        let at_sender = |at: u64| at.saturating_add_signed(self.clock_offset());
        let span = |(from, until)| (at_sender(from), at_sender(until));
        let outages = self.losses.outages.iter().map(|one| outage(span(*one), None));
        let held = self.held.map(|one| outage(span(one), Some(true)));
        let path = FittedPath {
            rtt: self.rtt,
            rtt_packet: self.rtt_packet,
            rate: self.rate,
            buffer: self.buffer,
            losses: &self.losses,
            lost_data: self.loses_data.then_some(self.mss),
            outages: outages.chain(held).collect(),
            late: self.late,
            policer: self.policer,
            marks: self.marks,
        };
        let mut path = path.table(chance);
        // Without messages, the simulated client is the host that sends the data.
        let (upstream, downstream) = match (self.dir, &self.conversation) {
            (Dir::Reverse, Some(_)) => (&mut path.return_, &mut path.forward),
            _ => (&mut path.forward, &mut path.return_),
        };
        prepend(upstream, self.lost_syns());
        let until = self.opening.answers_lost_until.filter(|_| self.opening.lost > 0);
        prepend(downstream, until.map(|until| outage((0, until), None)));
        let back = self.way_back.map(|WayBackFit { rate, buffer, .. }| {
            let link = LinkTable {
                rate: Rate::from_bits_per_second(rate.clamp(1, FASTEST)).and_then(given),
                buffer: given(BufferSize::Size(Bytes(buffer.min(DEEPEST)))),
                ..LinkTable::default()
            };
            ElementTable { link: given(link), ..ElementTable::default() }
        });
        prepend(&mut path.return_, back);
        prepend(&mut path.return_, self.lost_requests());
        let OpeningFit { no_scaling, no_sack, .. } = self.opening;
        let absent = [(no_scaling, SynOffers::WINDOW_SCALE), (no_sack, SynOffers::SACK)];
        let absent: Vec<_> = absent.into_iter().filter(|one| one.0).map(|one| one.1).collect();
        if !absent.is_empty() {
            for route in [&mut path.forward, &mut path.return_] {
                let strip = ElementTable { strip: given(absent.clone()), ..Default::default() };
                prepend(route, Some(strip));
            }
        }
        path
    }

    /// What is added to a time of the capture, since its first packet, for that at which the packet leaves the simulated
    /// sender. The simulated client is the recorded one, or, without messages, the sender.
    fn clock_offset(&self) -> i64 {
        let [rtt, to_sender, first_data] = [self.rtt, self.to_sender, self.first_data]
            .map(|ns| i64::try_from(ns).unwrap_or(i64::MAX / 4));
        let is_client = self.dir == Dir::Forward;
        match (self.opened, is_client, &self.conversation) {
            (true, true, _) => 0,
            (true, false, Some(_)) => rtt / 2 - to_sender,
            (true, false, None) => -to_sender,
            (false, false, Some(_)) => rtt * 3 / 2 - first_data,
            (false, ..) => rtt - first_data,
        }
    }

    /// The element that loses data of the other direction.
    fn lost_requests(&self) -> Option<ElementTable> {
        let packets = Some(&self.requests_lost).filter(|lost| !lost.is_empty())?;
        let rule = RuleTable { packets: given(packets.clone()), ..Default::default() };
        let loss = given(PacketRule::Rule(rule.into()));
        Some(ElementTable { loss, only: given(PacketClass::Data), ..Default::default() })
    }

    /// The element that loses SYNs.
    fn lost_syns(&self) -> Option<ElementTable> {
        let OpeningFit { lost, only_ecn, answers_lost_until, .. } = self.opening;
        let (class, loss) = match (lost, only_ecn) {
            (0, _) => return None,
            _ if answers_lost_until.is_some() => return None,
            (_, true) => (PacketClass::EcnSyns, PacketRule::Share(share("100%").ok()?)),
            (_, false) => {
                let rule = RuleTable {
                    packets: given((1..=lost).collect::<Vec<_>>()),
                    ..Default::default()
                };
                (PacketClass::Syns, PacketRule::Rule(rule.into()))
            }
        };
        Some(ElementTable { loss: given(loss), only: given(class), ..Default::default() })
    }
}

/// Puts an element in front of a route.
fn prepend(route: &mut Option<Located<Vec<Located<ElementTable>>>>, first: Option<ElementTable>) {
    let Some(first) = first else { return };
    let rest = route.take().map(|rest| rest.value).unwrap_or_default();
    *route = given([vec![Located::from(first)], rest].concat());
}

/// All of these knobs.
fn joined(knobs: [Knobs; 2]) -> Knobs {
    let all: Vec<_> = knobs.into_iter().flatten().flat_map(|some| some.value).collect();
    (!all.is_empty()).then(|| given(all)).flatten()
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

/// Returns the knobs of a TCP receiver whose buffer has this size.
fn receive_buffer_knobs(profile: &str, size: u64) -> Knobs {
    let size = size.clamp(BUFFERS.0, BUFFERS.1);
    match is_linux(profile) {
        true => named([(
            "net.ipv4.tcp_rmem",
            RawValue::from([BUFFERS.0, size, size].map(Bytes).to_vec()),
        )]),
        false => receive_window_knobs(profile, size),
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
    /// The link that those beside it share.
    pub(crate) shared: Option<ElementTable>,
    pub(crate) beside: Vec<BesideTables>,
}

impl FitDocument<'_> {
    /// The scenario file.
    pub(crate) fn text(self, seed: u64) -> String {
        let bases = self.bases.iter().map(|basis| format!("  {}: {}", basis.what, basis.why));
        let (mut hosts, mut paths, mut flows) = (Vec::new(), Vec::new(), Vec::new());
        for BesideTables { hosts: pair, path, flow } in self.beside {
            hosts.extend(pair);
            paths.push(path);
            flows.push(flow);
        }
        let first = format!("Fitted to {}. Basis of each figure:", self.source);
        let file = ScenarioFile {
            comment: [first].into_iter().chain(bases).collect(),
            title: given(self.title),
            seed: given(seed),
            duration: given(limit_of(self.time)),
            host: {
                let own = [("sender", self.sender), ("receiver", self.receiver)];
                let own = own.map(|(name, host)| (name.to_owned(), host));
                named(own.into_iter().chain(hosts))
            },
            shared: self.shared.and_then(|link| named([(SHARED_LINK, link)])),
            path: tables([vec![self.path], paths].concat()),
            flow: tables([vec![self.flow], flows].concat()),
            ..ScenarioFile::default()
        };
        file.to_string()
    }
}

/// The path of a fit.
pub(crate) struct FittedPath<'a> {
    /// Shortest round trip, in ns. It includes the transmission time of a packet of this size in bytes.
    pub(crate) rtt: u64,
    pub(crate) rtt_packet: u64,
    /// Rate of the bottleneck in bit/s, and its queue in bytes, if they are known.
    pub(crate) rate: Option<u64>,
    pub(crate) buffer: Option<u64>,
    pub(crate) losses: &'a LossEstimate,
    /// Losses are those of data, in segments of this size.
    pub(crate) lost_data: Option<u64>,
    pub(crate) outages: Vec<ElementTable>,
    pub(crate) late: Option<ReorderingFit>,
    pub(crate) policer: Option<PolicerFit>,
    pub(crate) marks: Option<(u64, u64)>,
}

impl FittedPath<'_> {
    pub(crate) fn table(self, chance: LossPattern) -> PathTable {
        let rate = self.rate.unwrap_or(FAST).clamp(1, FASTEST);
        let on_link = u128::from(self.rtt_packet) * 8_000_000_000 / u128::from(rate);
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
            queue: self.marks.and_then(|(target, interval)| {
                let codel = CodelTable {
                    target: given(Duration::from_nanos(target.clamp(1, LONGEST))),
                    interval: given(Duration::from_nanos(interval.clamp(1, LONGEST))),
                    ecn: given(true),
                };
                given(Discipline::CoDel(codel))
            }),
            ..LinkTable::default()
        };
        let link = ElementTable { link: given(link), ..ElementTable::default() };
        let policer = self.policer.map(policer);
        let by_data = self.lost_data.filter(|_| chance == LossPattern::Same);
        let losses = by_data
            .and_then(|mss| self.losses.by_data(mss))
            .unwrap_or_else(|| loss(self.losses, chance).into_iter().collect());
        let losses = losses.into_iter().chain(self.outages).chain(policer);
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

/// Returns a policer as an element of a path.
fn policer(PolicerFit { rate, burst }: PolicerFit) -> ElementTable {
    let policer = PolicerTable {
        rate: Rate::from_bits_per_second(rate.clamp(1, FASTEST)).and_then(given),
        burst: given(Bytes(burst.clamp(1, DEEPEST))),
    };
    ElementTable { policer: given(policer), only: None, ..ElementTable::default() }
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
