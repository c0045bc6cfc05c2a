//! The faults that are drawn: what each changes in a scenario, and the codes of findings that name it.

use toml::{Table, Value};

use crate::draft::{DataDirection, Draft, bytes, hundredths, kbits, micros, table};
use crate::random::DrawRandom;
use crate::world::{MSS, Workload, World};

/// A fault with its strength.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    /// Its strength, in the unit of its kind.
    strength: u64,
    /// A second quantity, of the kinds that have one.
    second: u64,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Independent losses; hundredths of a percent.
    RandomLoss,
    /// Losses in bursts of some packets; hundredths of a percent that a burst begins.
    BurstLoss,
    /// Short outages that return: bursts in time; their length in µs.
    BurstsInTime,
    /// A token bucket without a queue; kbit/s.
    Policer,
    /// A queue of a few packets.
    ShortQueue,
    /// A receive buffer that holds less than the path; bytes.
    SmallReceiveBuffer,
    /// A receiver that reads slowly; kbit/s.
    SlowReader,
    /// A send buffer that holds less than the path; bytes.
    SmallSendBuffer,
    /// A sender whose application writes slowly; µs between chunks.
    SlowWriter,
    /// The server waits before each response; µs.
    ServerThinks,
    /// The client waits before each request; µs.
    ClientThinks,
    /// Many requests one after another; their number.
    RoundTrips,
    /// A wait within each message; µs.
    WaitInRequest,
    /// A message in two writes, Nagle's algorithm and delayed acknowledgments.
    NagleDelayedAcks,
    /// Slow start again after each rest.
    IdleRestart,
    /// A window of the application above TCP; bytes.
    AppWindow,
    /// Packets that arrive late; µs.
    Reordering,
    /// An outage; its length in ms.
    Outage,
    /// The last packet of each message is lost.
    TailLoss,
    /// The first SYNs are lost; their number.
    SynLost,
    /// The first SYN-ACKs are lost; their number.
    SynAckLost,
    /// SYNs that ask for ECN are dropped.
    EcnSyns,
    /// The path of the ACKs is slow; kbit/s.
    SlowAckPath,
    /// ACKs are merged on the way; segments for each that passes.
    ThinnedAcks,
    /// An AQM marks far below the queue that the path needs.
    Marks,
    /// Other senders share the bottleneck; their number.
    CompetingTraffic,
    /// The server needs long for its part of the opening; µs.
    SlowOpening,
    /// The rate of the path falls; kbit/s.
    RateDrop,
}

use FaultKind as K;

/// All kinds.
pub(crate) const KINDS: [FaultKind; 28] = [
    K::RandomLoss,
    K::BurstLoss,
    K::BurstsInTime,
    K::Policer,
    K::ShortQueue,
    K::SmallReceiveBuffer,
    K::SlowReader,
    K::SmallSendBuffer,
    K::SlowWriter,
    K::ServerThinks,
    K::ClientThinks,
    K::RoundTrips,
    K::WaitInRequest,
    K::NagleDelayedAcks,
    K::IdleRestart,
    K::AppWindow,
    K::Reordering,
    K::Outage,
    K::TailLoss,
    K::SynLost,
    K::SynAckLost,
    K::EcnSyns,
    K::SlowAckPath,
    K::ThinnedAcks,
    K::Marks,
    K::CompetingTraffic,
    K::SlowOpening,
    K::RateDrop,
];

impl FaultKind {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandomLoss => "random-loss",
            Self::BurstLoss => "burst-loss",
            Self::BurstsInTime => "bursts-in-time",
            Self::Policer => "policer",
            Self::ShortQueue => "short-queue",
            Self::SmallReceiveBuffer => "receive-buffer",
            Self::SlowReader => "slow-reader",
            Self::SmallSendBuffer => "send-buffer",
            Self::SlowWriter => "slow-writer",
            Self::ServerThinks => "think-server",
            Self::ClientThinks => "think-client",
            Self::RoundTrips => "round-trips",
            Self::WaitInRequest => "in-request",
            Self::NagleDelayedAcks => "nagle",
            Self::IdleRestart => "idle-restart",
            Self::AppWindow => "app-window",
            Self::Reordering => "reordering",
            Self::Outage => "outage",
            Self::TailLoss => "tail-loss",
            Self::SynLost => "syn-lost",
            Self::SynAckLost => "syn-ack-lost",
            Self::EcnSyns => "syn-ecn",
            Self::SlowAckPath => "return-path",
            Self::ThinnedAcks => "thinned-acks",
            Self::Marks => "marks",
            Self::CompetingTraffic => "competing",
            Self::SlowOpening => "slow-opening",
            Self::RateDrop => "rate-drop",
        }
    }

    /// Where the fault is.
    pub const fn place(self) -> &'static str {
        match self {
            Self::SmallReceiveBuffer | Self::SlowReader => "receiver",
            Self::SmallSendBuffer | Self::SlowWriter => "sender",
            Self::ServerThinks | Self::SlowOpening => "server",
            Self::ClientThinks => "client",
            Self::RoundTrips | Self::WaitInRequest | Self::AppWindow => "application",
            Self::NagleDelayedAcks | Self::IdleRestart => "both hosts",
            Self::SynLost | Self::SynAckLost | Self::EcnSyns => "opening",
            Self::SlowAckPath | Self::ThinnedAcks => "path back",
            _ => "path there",
        }
    }

    /// The codes of which one as the connection's verdict is right: what `ackclock explain` says of each,
    /// and the labels of captures of the same faults.
    pub const fn codes(self) -> &'static [&'static str] {
        match self {
            Self::RandomLoss => &["CC201", "CC205"],
            Self::BurstLoss | Self::BurstsInTime | Self::Policer => &["CC201", "CC202"],
            Self::ShortQueue => &["CC202", "CC103"],
            Self::SmallReceiveBuffer => &["CC401"],
            Self::SlowReader => &["CC403"],
            Self::SmallSendBuffer => &["CC503", "CC501"],
            Self::SlowWriter | Self::RoundTrips | Self::AppWindow => &["CC501"],
            Self::ServerThinks | Self::SlowOpening => &["CC505"],
            Self::ClientThinks => &["CC506"],
            Self::WaitInRequest => &["CC506", "CC505", "CC501"],
            Self::NagleDelayedAcks => &["CC504"],
            Self::IdleRestart => &["CC502"],
            Self::Reordering => &["CC301", "CC302"],
            Self::Outage => &["CC204"],
            Self::TailLoss => &["CC203", "CC204"],
            Self::SynLost | Self::SynAckLost | Self::EcnSyns => &["CC002", "CC204"],
            Self::SlowAckPath => &["CC601", "CC602", "CC402"],
            Self::ThinnedAcks => &["CC402", "CC101"],
            Self::Marks => &["CC206"],
            // From the capture of one flow they look alike: what it gets is less than the path carried.
            Self::CompetingTraffic | Self::RateDrop => &["CC602", "CC603", "CC601", "CC202"],
        }
    }

    /// The same of the log of a QUIC sender; `None` for faults that are not drawn there.
    pub const fn quic_codes(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::RandomLoss | Self::BurstLoss | Self::BurstsInTime | Self::Policer => &["CC811"],
            Self::ShortQueue => &["CC811", "CC834"],
            Self::SmallReceiveBuffer | Self::SlowReader => &["CC821", "CC822"],
            Self::SlowWriter
            | Self::ServerThinks
            | Self::ClientThinks
            | Self::RoundTrips
            | Self::WaitInRequest
            | Self::AppWindow => &["CC831"],
            Self::Reordering => &["CC812"],
            Self::Outage => &["CC813", "CC814"],
            Self::CompetingTraffic | Self::RateDrop => &["CC837", "CC835", "CC811"],
            Self::SlowAckPath | Self::ThinnedAcks => &["CC841", "CC836"],
            _ => return None,
        })
    }

    /// What the applications do in worlds with this fault.
    pub(crate) const fn workload(self) -> Workload {
        match self {
            Self::ServerThinks
            | Self::ClientThinks
            | Self::RoundTrips
            | Self::WaitInRequest
            | Self::NagleDelayedAcks
            | Self::IdleRestart
            | Self::TailLoss
            | Self::SynLost
            | Self::SynAckLost
            | Self::EcnSyns
            | Self::SlowOpening => Workload::Dialogue,
            _ => Workload::Bulk,
        }
    }

    /// May it be drawn beside another?
    pub(crate) const fn combines(self) -> bool {
        matches!(
            self,
            Self::RandomLoss
                | Self::ShortQueue
                | Self::SmallReceiveBuffer
                | Self::SmallSendBuffer
                | Self::SlowReader
                | Self::Outage
                | Self::Reordering
                | Self::SlowAckPath
        )
    }
}

impl Fault {
    /// Draws the strength of a fault of this kind for a world.
    pub(crate) fn draw(kind: FaultKind, world: &World, random: &mut DrawRandom) -> Self {
        let round_trip = world.round_trip();
        let bdp = world.bdp().max(8 * MSS);
        let part = |random: &mut DrawRandom| bdp * random.within(10..=60) / 100;
        let (strength, second) = match kind {
            K::RandomLoss => (random.magnitude(10..=300), 0),
            K::BurstLoss => (random.magnitude(10..=100), random.within(30..=70)),
            K::BurstsInTime => {
                (random.magnitude(2_000..=40_000), random.magnitude(200_000..=1_000_000))
            }
            K::Policer => {
                (world.rate * random.within(10..=70) / 100, random.magnitude(6_000..=60_000))
            }
            K::ShortQueue => ((bdp * random.within(2..=15) / 100 / 1_500).max(3), 0),
            K::SmallReceiveBuffer | K::SmallSendBuffer => (part(random).max(6 * MSS), 0),
            K::SlowReader => {
                (world.rate * random.within(10..=70) / 100, random.magnitude(1_000..=50_000))
            }
            K::SlowWriter => {
                let chunk = random.magnitude(2_000..=50_000);
                // Between a tenth and seven tenths of the rate.
                (chunk * 8_000 / (world.rate * random.within(10..=70) / 100).max(1), chunk)
            }
            // Below the rests of healthy players and idle connections, which are longer.
            K::ServerThinks | K::ClientThinks | K::WaitInRequest => {
                (random.magnitude(40_000..=500_000), 0)
            }
            K::RoundTrips => (random.magnitude(30..=200), random.magnitude(100..=4_000)),
            K::NagleDelayedAcks => (random.within(20..=600), 0),
            K::IdleRestart => ((2 * round_trip).max(random.magnitude(300_000..=800_000)), 0),
            K::AppWindow => (part(random).max(2 * MSS), 0),
            K::Reordering => {
                (round_trip * random.within(10..=60) / 100, random.magnitude(50..=500))
            }
            K::Outage => (random.magnitude(300..=3_000), random.within(1..=3)),
            K::TailLoss => (1, 0),
            K::SynLost | K::SynAckLost => (random.within(1..=2), 0),
            K::EcnSyns => (1, 0),
            K::SlowAckPath => (world.rate * random.within(2..=10) / 1_000, 0),
            K::ThinnedAcks => (random.magnitude(8..=64), round_trip.clamp(4_000, 40_000)),
            K::Marks => (random.magnitude(50..=500), 0),
            K::CompetingTraffic => (random.within(1..=3), 0),
            K::SlowOpening => (random.magnitude(200_000..=1_500_000), 0),
            K::RateDrop => (world.rate * random.within(10..=40) / 100, random.within(20..=60)),
        };
        Self { kind, strength: strength.max(1), second }
    }

    /// The waits of the client that a restart after idle needs.
    pub(crate) fn rests(&self) -> Option<Self> {
        let rests = Self { kind: K::ClientThinks, strength: self.strength, second: 0 };
        (self.kind == K::IdleRestart).then_some(rests)
    }

    /// Its kind.
    pub const fn kind(&self) -> FaultKind {
        self.kind
    }

    /// Name and strength, for reports.
    pub fn describe(&self) -> String {
        let Self { kind, strength, second } = self;
        match kind {
            K::RandomLoss => format!("random loss of {}.{:02} %", strength / 100, strength % 100),
            K::Policer | K::SlowReader | K::SlowAckPath | K::RateDrop => {
                format!("{} of {strength} kbit/s", kind.name())
            }
            K::SmallReceiveBuffer | K::SmallSendBuffer | K::AppWindow => {
                format!("{} of {strength} B", kind.name())
            }
            K::ServerThinks
            | K::ClientThinks
            | K::WaitInRequest
            | K::SlowOpening
            | K::IdleRestart => {
                format!("{} of {} ms", kind.name(), strength / 1_000)
            }
            K::SlowWriter => format!("{second} B written each {} ms", strength / 1_000),
            K::Outage => format!("{} of {strength} ms", kind.name()),
            _ => format!("{} of {strength}", kind.name()),
        }
    }

    /// Puts the fault into a scenario.
    pub(crate) fn apply(&self, world: &World, draft: &mut Draft) {
        let Self { strength, second, .. } = *self;
        let first = 0;
        let loss = |rule: Value| table([("loss", rule)]);
        let only = |mut element: Value, class: &str| {
            if let Value::Table(keys) = &mut element {
                keys.insert("only".into(), class.into());
            }
            element
        };
        match self.kind {
            K::RandomLoss => draft.data_path.insert(first, loss(hundredths(strength))),
            K::BurstLoss => draft.data_path.insert(first, bursts(strength, second)),
            K::BurstsInTime => {
                let outage = table([
                    ("from", micros(second / 2)),
                    ("until", micros(second / 2 + strength)),
                    ("period", micros(second)),
                ]);
                draft.data_path.insert(first, table([("outage", outage)]));
            }
            K::Policer => {
                let policer =
                    table([("rate", kbits(strength)), ("burst", bytes(second.max(3_000)))]);
                draft.data_path.insert(first, table([("policer", policer)]));
            }
            K::ShortQueue => {
                if let Some(link) = draft.link() {
                    link.insert("buffer".into(), format!("{strength}p").into());
                }
            }
            K::SmallReceiveBuffer => receive_buffer(draft.is_quic, &mut draft.receiver, strength),
            K::SmallSendBuffer => send_buffer(&mut draft.sender, strength),
            K::SlowReader => {
                let every = second.max(strength_interval(strength));
                draft.exchange.reads =
                    Some(table([("rate", kbits(strength)), ("every", micros(every))]));
            }
            K::SlowWriter => {
                let count = (world.size / second.max(1)).max(1);
                let write = world.step(true, second, strength);
                if world.direction == DataDirection::Download {
                    draft.exchange.opening.extend(draft.exchange.steps.first().cloned());
                }
                (draft.exchange.steps, draft.exchange.count) = (vec![write], count);
            }
            K::ServerThinks => wait(&mut draft.exchange.steps, "server", strength),
            K::ClientThinks => wait(&mut draft.exchange.steps, "client", strength),
            K::RoundTrips => {
                // The same bytes in many requests; without the fault they are one.
                draft.exchange.steps = match world.direction {
                    DataDirection::Upload => {
                        vec![world.step(true, second, 0), world.step(false, 100, 100)]
                    }
                    DataDirection::Download => {
                        vec![world.step(false, 100, 0), world.step(true, second, 100)]
                    }
                };
                draft.exchange.count = strength;
            }
            K::WaitInRequest => {
                // The head of each message, then the wait, then the rest.
                let data = world.step(true, world.size, strength);
                let head = world.step(true, 300, 0);
                let steps = draft.exchange.steps.iter().flat_map(|step| {
                    let is_data = step.get(side(world, true)).is_some();
                    if is_data { vec![head.clone(), data.clone()] } else { vec![step.clone()] }
                });
                draft.exchange.steps = steps.collect();
            }
            K::NagleDelayedAcks => {
                draft.nodelay = false;
                // The receiver acknowledges the first write late, and the second waits for that.
                let steps = draft.exchange.steps.iter().flat_map(|step| {
                    let is_data = step.get(side(world, true)).is_some();
                    let parts = vec![world.step(true, 200, 0), world.step(true, strength, 0)];
                    if is_data { parts } else { vec![step.clone()] }
                });
                draft.exchange.steps = steps.collect();
            }
            // The rests are a fault of their own, drawn with it.
            K::IdleRestart => {}
            K::AppWindow => {
                for step in &mut draft.exchange.steps {
                    if let Value::Table(keys) = step
                        && keys.contains_key(side(world, true))
                    {
                        keys.insert("window".into(), bytes(strength));
                    }
                }
            }
            K::Reordering => {
                let late =
                    table([("fraction", hundredths(second)), ("by", micros(strength.max(100)))]);
                draft.data_path.push(table([("reorder", late)]));
            }
            K::Outage => {
                let from = world.size * 8_000 / world.rate * second / 8;
                let (from, until) = (micros(from), micros(from + strength * 1_000));
                let outage = table([("from", from), ("until", until)]);
                draft.data_path.insert(first, table([("outage", outage)]));
            }
            K::TailLoss => {
                let tail = (0..world.count).map(|n| {
                    let end = (n + 1) * world.size;
                    let rule = table([("bytes", format!("{}B..{end}B", end - 1).into())]);
                    loss(rule)
                });
                let losses: Vec<Value> = tail.collect();
                draft.data_path.splice(0..0, losses);
            }
            K::SynLost => {
                let rule = table([("packets", numbers(strength))]);
                draft.upstream().insert(first, only(loss(rule), "syns"));
            }
            K::SynAckLost => {
                let rule = table([("packets", numbers(strength))]);
                draft.downstream().insert(first, only(loss(rule), "syn-acks"));
            }
            K::EcnSyns => {
                ask_for_ecn(draft);
                draft.upstream().insert(first, only(loss("100%".into()), "ecn-syns"));
            }
            K::SlowAckPath => {
                let link = table([("rate", kbits(strength.max(20))), ("buffer", "100p".into())]);
                draft.ack_path.insert(first, table([("link", link)]));
            }
            K::ThinnedAcks => {
                let thin = table([
                    ("segments", Value::Integer(strength as i64)),
                    ("timeout", micros(second)),
                ]);
                draft.ack_path.insert(first, table([("thin", thin)]));
            }
            K::Marks => {
                ask_for_ecn(draft);
                let target = (world.round_trip() * strength / 100_000).clamp(50, 5_000);
                let marks = table([
                    ("target", micros(target)),
                    ("interval", micros(world.round_trip().max(1_000))),
                    ("ecn", true.into()),
                ]);
                if let Some(link) = draft.link() {
                    link.insert("queue".into(), table([("codel", marks)]));
                }
            }
            K::CompetingTraffic => compete(draft, strength, 4 * world.size),
            K::SlowOpening => {
                let [hello, answer] = [("client", 517_u64, 0), ("server", 3_500, strength)]
                    .map(|(by, size, after)| table([(by, bytes(size)), ("after", micros(after))]));
                draft.exchange.opening = vec![hello, answer];
            }
            K::RateDrop => {
                let at = world.size * 8_000 / world.rate * second / 100;
                let steps: Vec<Value> = vec![
                    vec![Value::from("0s"), kbits(world.rate)].into(),
                    vec![micros(at.max(1)), kbits(strength)].into(),
                ];
                if let Some(link) = draft.link() {
                    link.insert("rate".into(), table([("at", steps.into())]));
                }
            }
        }
    }

    /// What the scenario without this fault has in its place, beyond leaving it out: waits of the
    /// applications that are no part of the fault.
    pub(crate) fn apply_healthy(&self, world: &World, draft: &mut Draft) {
        match self.kind {
            K::IdleRestart => {
                for host in [&mut draft.sender, &mut draft.receiver] {
                    if Draft::is_linux(host) {
                        Draft::set_knob(host, "net.ipv4.tcp_slow_start_after_idle", 0.into());
                    }
                }
            }
            K::RoundTrips => {
                let sum = self.second * self.strength;
                draft.exchange.steps = match world.direction {
                    DataDirection::Upload => {
                        vec![world.step(true, sum, 0), world.step(false, 100 * self.strength, 100)]
                    }
                    DataDirection::Download => {
                        vec![world.step(false, 100 * self.strength, 0), world.step(true, sum, 100)]
                    }
                };
                draft.exchange.count = 1;
            }
            K::NagleDelayedAcks => {
                self.apply(world, draft);
                draft.nodelay = true;
            }
            K::SlowOpening => {
                let hello = [("client", 517_u64, 0), ("server", 3_500, 1_000)];
                draft.exchange.opening = hello
                    .map(|(by, size, after)| table([(by, bytes(size)), ("after", micros(after))]))
                    .to_vec();
            }
            K::EcnSyns | K::Marks => ask_for_ecn(draft),
            _ => {}
        }
    }
}

/// Interval in µs that holds at least a segment at this rate.
const fn strength_interval(kbits: u64) -> u64 {
    MSS * 8_000 / if kbits == 0 { 1 } else { kbits }
}

/// The key of the side of a step that sends the data, or the other.
fn side(world: &World, of_data: bool) -> &'static str {
    let is_server = of_data == (world.direction == DataDirection::Download);
    if is_server { "server" } else { "client" }
}

/// Losses in bursts that begin with this probability and end with that (percent).
fn bursts(begins: u64, ends: u64) -> Value {
    let channel = table([("p", hundredths(begins)), ("r", format!("{ends}%").into())]);
    table([("loss", table([("gilbert_elliott", channel)]))])
}

fn numbers(count: u64) -> Value {
    (1..=count).map(|n| Value::Integer(n as i64)).collect::<Vec<_>>().into()
}

/// A side waits before each of its steps.
fn wait(steps: &mut [Value], side: &str, after: u64) {
    for step in steps {
        if let Value::Table(keys) = step
            && keys.contains_key(side)
        {
            keys.insert("after".into(), micros(after));
        }
    }
}

/// Limits the receive buffer as an administrator does, of QUIC its flow control.
pub(crate) fn receive_buffer(is_quic: bool, host: &mut Table, size: u64) {
    if is_quic {
        for limit in ["initial_max_data", "initial_max_stream_data"] {
            Draft::set_knob(host, limit, bytes(size));
        }
    } else if Draft::is_linux(host) {
        let sizes = [4_096, size, size].map(|n| bytes(n.max(4_096)));
        Draft::set_knob(host, "net.ipv4.tcp_rmem", sizes.to_vec().into());
    } else {
        Draft::set_knob(host, "net.inet.tcp.recvspace", bytes(size));
        Draft::set_knob(host, "net.inet.tcp.recvbuf_auto", 0.into());
    }
}

/// Limits the send buffer as an administrator does.
pub(crate) fn send_buffer(host: &mut Table, size: u64) {
    if Draft::is_linux(host) {
        let sizes = [4_096, size, size].map(|n| bytes(n.max(4_096)));
        Draft::set_knob(host, "net.ipv4.tcp_wmem", sizes.to_vec().into());
    } else {
        Draft::set_knob(host, "net.inet.tcp.sendspace", bytes(size));
        Draft::set_knob(host, "net.inet.tcp.sendbuf_auto", 0.into());
    }
}

/// Both hosts ask for ECN.
fn ask_for_ecn(draft: &mut Draft) {
    for host in [&mut draft.sender, &mut draft.receiver] {
        let knob = match Draft::is_linux(host) {
            true => "net.ipv4.tcp_ecn",
            false => "net.inet.tcp.ecn.enable",
        };
        Draft::set_knob(host, knob, 1.into());
    }
}

/// Other hosts send through the same bottleneck.
fn compete(draft: &mut Draft, senders: u64, size: u64) {
    let is_quic = draft.is_quic;
    let Some(position) = draft.data_path.iter().position(|element| element.get("link").is_some())
    else {
        return;
    };
    let link =
        core::mem::replace(&mut draft.data_path[position], table([("shared", "line".into())]));
    draft.shared.insert("line".into(), link);
    let name = if is_quic { "quic-rfc9002" } else { "linux-6.18" };
    let profile = || table([("profile", name.into())]);
    let mut source = profile();
    if let Value::Table(keys) = &mut source {
        keys.insert("count".into(), Value::Integer(senders as i64));
    }
    draft.other_hosts.insert("source".into(), source);
    draft.other_hosts.insert("sink".into(), profile());
    draft.others.push((
        "path",
        table([
            ("from", "source".into()),
            ("to", "sink".into()),
            (
                "forward",
                vec![table([("shared", "line".into())]), table([("delay", "5ms".into())])].into(),
            ),
            ("return", vec![table([("delay", "5ms".into())])].into()),
        ]),
    ));
    draft.others.push((
        "flow",
        table([
            ("name", "beside".into()),
            ("from", "source".into()),
            ("to", "sink".into()),
            ("bulk", bytes(size)),
        ]),
    ));
}
