//! The healthy world of a draw: hosts, path and applications without a fault.

use toml::{Table, Value};

use crate::draft::{DataDirection, Draft, ExchangeDraft, bytes, kbits, micros, table};
use crate::random::DrawRandom;

/// Payload of a full-sized segment.
pub(crate) const MSS: u64 = 1_448;
/// Largest transfer in bytes.
const LARGEST: u64 = 6_000_000;

/// What the applications of a healthy world do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// One transfer as fast as the path allows.
    Bulk,
    /// A few requests, each a transfer of the data after a short message.
    Requests,
    /// Many short requests: of the worlds with faults of applications and openings.
    Dialogue,
    /// Small messages at fixed intervals, as of speech or telemetry.
    Stream,
    /// Chunks with pauses, as of a video.
    Video,
    /// A few segments.
    Short,
    /// Short messages with long rests.
    Idle,
}

impl Workload {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Requests => "requests",
            Self::Dialogue => "dialogue",
            Self::Stream => "stream",
            Self::Video => "video",
            Self::Short => "short",
            Self::Idle => "idle",
        }
    }
}

/// The transport of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP, judged by captures.
    Tcp,
    /// QUIC, judged by the log of its sender.
    Quic,
}

/// The drawn values of a world.
#[derive(Debug, Clone)]
pub struct World {
    /// The transport.
    pub transport: Transport,
    /// Where the data flows.
    pub direction: DataDirection,
    /// What the applications do.
    pub workload: Workload,
    /// Profile of the sender and its congestion control.
    pub sender: (&'static str, &'static str),
    /// Profile of the receiver.
    pub receiver: &'static str,
    /// Rate of the bottleneck, kbit/s.
    pub rate: u64,
    /// Delay of one way, µs.
    pub delay: u64,
    /// Queue of the bottleneck, bytes.
    pub buffer: u64,
    /// Bytes of data of one transfer, request or chunk.
    pub size: u64,
    /// Number of transfers.
    pub count: u64,
    /// Segmentation and receive offload of both hosts.
    pub offload: bool,
    /// A handshake like that of TLS precedes the data.
    pub tls: bool,
    seed: u64,
}

/// Senders with their congestion control; those met most often more than once.
const SENDERS: [(&str, &str); 12] = [
    ("linux-6.18", "cubic"),
    ("linux-6.18", "cubic"),
    ("linux-6.18", "cubic"),
    ("linux-6.18", "reno"),
    ("linux-6.18", "bbr"),
    ("linux-6.12", "cubic"),
    ("linux-6.12", "reno"),
    ("linux-6.1", "cubic"),
    ("freebsd-14.3", "cubic"),
    ("freebsd-13.2", "newreno"),
    ("freebsd-main", "cubic"),
    ("freebsd-rack-14.3", "cubic"),
];
const RECEIVERS: [&str; 5] =
    ["linux-6.18", "linux-6.18", "linux-6.12", "freebsd-14.3", "freebsd-13.2"];

/// Senders of QUIC with their congestion control.
const QUIC_SENDERS: [(&str, &str); 8] = [
    ("quic-go-0.61", "cubic"),
    ("quiche-0.29", "cubic"),
    ("quinn-0.11", "cubic"),
    ("quinn-0.11", "newreno"),
    ("msquic-2.6", "cubic"),
    ("neqo-0.30", "cubic"),
    ("s2n-quic-1.88", "cubic"),
    ("quic-rfc9002", "newreno"),
];
const QUIC_RECEIVERS: [&str; 4] = ["quic-go-0.61", "quinn-0.11", "msquic-2.6", "quic-rfc9002"];

impl World {
    /// Draws the world of a draw with this workload.
    pub(crate) fn draw(
        transport: Transport,
        (seed, number): (u64, u64),
        workload: Workload,
        direction: DataDirection,
    ) -> Self {
        let mut random = DrawRandom::new(seed, number, "world");
        let rate = random.magnitude(2_000..=200_000);
        let delay = random.magnitude(1_000..=80_000);
        let bdp = rate * 2 * delay / 8_000;
        let buffer = (bdp * random.within(100..=200) / 100).max(30_000);
        // Time of the data at the rate of the path, ms.
        let busy = random.magnitude(500..=4_000);
        let bulk = (rate * busy / 8).clamp(100_000, LARGEST);
        let (size, count) = match workload {
            Workload::Bulk => (bulk, 1),
            Workload::Requests => {
                let count = random.within(2..=6);
                ((bulk / count).max(100_000), count)
            }
            Workload::Dialogue => {
                let count = random.magnitude(8..=40);
                ((bulk / count).clamp(2_000, 200_000), count)
            }
            Workload::Stream => (random.magnitude(100..=1_200), random.magnitude(20..=100)),
            Workload::Video => ((bulk / 4).clamp(50_000, 1_000_000), random.within(3..=6)),
            Workload::Short => (random.magnitude(100..=14_000), 1),
            Workload::Idle => (random.magnitude(50..=2_000), random.within(2..=5)),
        };
        let (sender, receiver) = match transport {
            Transport::Tcp => (random.pick(&SENDERS), random.pick(&RECEIVERS)),
            Transport::Quic => (random.pick(&QUIC_SENDERS), random.pick(&QUIC_RECEIVERS)),
        };
        Self {
            transport,
            direction,
            workload,
            sender,
            receiver,
            rate,
            delay,
            buffer,
            size,
            count,
            offload: random.once_in(2),
            tls: random.once_in(4),
            seed: random.within(1..=u64::MAX / 2),
        }
    }

    /// Bytes in flight that fill the path.
    pub(crate) fn bdp(&self) -> u64 {
        self.rate * 2 * self.delay / 8_000
    }

    /// Round trip of the empty path, µs.
    pub(crate) fn round_trip(&self) -> u64 {
        2 * self.delay
    }

    /// A step of the data, and one of the other side.
    pub(crate) fn step(&self, of_data: bool, size: u64, after: u64) -> Value {
        let is_server = of_data == (self.direction == DataDirection::Download);
        let side = if is_server { "server" } else { "client" };
        let mut step = Table::new();
        step.insert(side.into(), bytes(size.max(1)));
        if after > 0 {
            step.insert("after".into(), micros(after));
        }
        step.into()
    }

    /// The scenario without a fault.
    pub(crate) fn draft(&self) -> Draft {
        let host = |profile: &str, cc: Option<&str>| {
            let mut keys = Table::new();
            keys.insert("profile".into(), profile.into());
            keys.extend(cc.map(|cc| ("cc".to_owned(), Value::from(cc))));
            keys.insert("delay".into(), "50us".into());
            if self.offload && self.transport == Transport::Tcp {
                let merges = if profile.starts_with("linux") { "gro" } else { "lro" };
                keys.insert("tso".into(), true.into());
                keys.insert(merges.into(), true.into());
            }
            keys
        };
        let link = table([("rate", kbits(self.rate)), ("buffer", bytes(self.buffer))]);
        // In two parts, for a capture between the hosts.
        let near = self.delay / 3;
        let [near, far] = [near, self.delay - near].map(|delay| table([("delay", micros(delay))]));
        let mut draft = Draft {
            title: format!("a {} of {} kB", self.direction.name(), self.size * self.count / 1_000),
            seed: self.seed,
            direction: self.direction,
            is_quic: self.transport == Transport::Quic,
            sender: host(self.sender.0, Some(self.sender.1)),
            receiver: host(self.receiver, None),
            data_path: vec![table([("link", link)]), near.clone(), far.clone()],
            ack_path: vec![far, near],
            exchange: ExchangeDraft { count: 1, ..ExchangeDraft::default() },
            nodelay: true,
            shared: Table::new(),
            others: Vec::new(),
            other_hosts: Table::new(),
        };
        self.fill_exchange(&mut draft.exchange);
        draft
    }

    fn fill_exchange(&self, exchange: &mut ExchangeDraft) {
        let client =
            |size: u64, after: u64| self.step(self.direction == DataDirection::Upload, size, after);
        let server = |size: u64, after: u64| {
            self.step(self.direction == DataDirection::Download, size, after)
        };
        if self.tls {
            exchange.opening = vec![client(517, 0), server(3_500, 1_000), client(80, 500)];
        }
        // A download is asked for; an upload is confirmed.
        let transfer = |pause: u64| match self.direction {
            DataDirection::Upload => vec![client(self.size, pause), server(200, 200)],
            DataDirection::Download => vec![client(200, pause), server(self.size, 200)],
        };
        exchange.count = self.count;
        exchange.steps = match self.workload {
            Workload::Bulk | Workload::Short | Workload::Requests | Workload::Dialogue => {
                transfer(0)
            }
            // Far below the rate of the path.
            Workload::Stream => {
                vec![self.step(true, self.size, (self.size * 16_000 / self.rate).max(20_000))]
            }
            Workload::Video => transfer((self.size * 8_000 / self.rate).max(1_000_000)),
            Workload::Idle => transfer(3_000_000),
        };
        if self.workload == Workload::Stream && self.direction == DataDirection::Download {
            exchange.opening.push(client(200, 0));
        }
    }
}
