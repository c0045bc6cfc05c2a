//! Analyses one connection packet by packet.

mod opening;
mod tally;

use packet::wire::Endpoints;
use packet::{Dir, Flags, SackBlocks, Segment, SynOptions};
use units::{Duration, Instant, SeqNum};

use crate::analysis::Analysis;
use crate::capture_point::CaptureDistances;
use crate::connection_events::{ConnectionEvents, IcmpNotice};
use crate::exchange::{ExchangeLog, ExchangeStart};
use crate::flow::FlowAnalysis;
use crate::half_connection::{CapturedAck, FrameTime, HalfConnection, StartConditions};
use crate::socket::SocketSample;
use crate::state::KernelStateSummary;
use crate::{CapturedPacket, StateSample};

pub(crate) use opening::Syn;

use opening::ConnectionOpening;
use tally::PacketTally;

/// Latest valid time: ten years, small enough to multiply durations by twenty.
const MAX_TIME: Instant = Instant::from_nanos(10 * 365 * 86_400 * 1_000_000_000);

/// Packets collected to estimate the capture point of a connection without a handshake.
const MAX_WAITING: usize = 256;

/// Most data that a host has sent before the capture has its first.
const MAX_CLAIM: u32 = 16 << 20;

/// Settings of the analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnalysisSettings {
    /// Most packets in [`Analysis::packets`], for graphs and replayed senders.
    pub packets: usize,
    /// Most [events](crate::sender_events) recorded for each sender.
    pub turns: usize,
}

/// Contents of a captured SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedSyn {
    /// TCP options.
    pub options: SynOptions,
    /// Flags of the header.
    pub flags: Flags,
    /// Window field.
    pub window: u16,
    /// The timestamps option.
    pub timestamps: bool,
    /// Bytes of data that it carries.
    pub data: u32,
    /// All its options were captured.
    pub is_complete: bool,
}

/// Analyses the packets of a connection.
///
/// Packets are pushed in the order of the capture; the first may be any, not only a SYN.
///
/// Memory is bounded: the data in flight, 8192 retransmissions, 16384 recovery episodes, 4096
/// rounds, 256 packets until the capture point is known, and the packets of
/// [`AnalysisSettings::packets`].
#[derive(Debug, Clone)]
pub struct ConnectionAnalyzer {
    ends: Endpoints,
    stream: u32,
    settings: AnalysisSettings,
    first: Option<FrameTime>,
    last: FrameTime,
    tally: PacketTally,
    opening: ConnectionOpening,
    distances: Option<CaptureDistances>,
    waiting: Vec<CapturedPacket>,
    halves: [Option<Box<HalfConnection>>; 2],
    /// Where the sequence numbers of each host's packets before its first data say that it is, and since when.
    claimed: [Option<(SeqNum, Instant)>; 2],
    /// The last timestamp of each host before the first data of the other, and when it was first captured.
    stamps: [Option<(u32, Instant)>; 2],
    states: KernelStateSummary,
    events: ConnectionEvents,
    exchange: ExchangeLog,
    after_previous: Option<Duration>,
    packets: Vec<CapturedPacket>,
}

impl ConnectionAnalyzer {
    /// A connection from `ends.src` (the host that opened it, or was seen first) to `ends.dst`.
    /// `stream` is its index in the file, from 0, as Wireshark counts (`tcp.stream`).
    pub fn new(ends: Endpoints, stream: u32, settings: AnalysisSettings) -> Self {
        Self {
            ends,
            stream,
            settings,
            first: None,
            last: FrameTime { at: Instant::ZERO, frame: 0 },
            tally: PacketTally::default(),
            opening: ConnectionOpening::default(),
            distances: None,
            waiting: Vec::new(),
            halves: [None, None],
            claimed: [None, None],
            stamps: [None, None],
            states: KernelStateSummary::default(),
            events: ConnectionEvents::default(),
            exchange: ExchangeLog::default(),
            after_previous: None,
            packets: Vec::new(),
        }
    }

    /// The hosts that it was created with.
    pub const fn ends(&self) -> Endpoints {
        self.ends
    }

    /// The stream index.
    pub(crate) const fn stream(&self) -> u32 {
        self.stream
    }

    /// Sets the stream index.
    pub(crate) const fn set_stream(&mut self, stream: u32) {
        self.stream = stream;
    }

    /// Times of the first and the last packet; `None` without one.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        self.first.map(|first| (first.at, self.last.at))
    }

    /// The last SYN of each host, by [`Dir`]: MSS option, and whether it has timestamps.
    pub fn syns(&self) -> [Option<(u16, bool)>; 2] {
        self.opening.syn.map(|syn| syn.map(|syn| (syn.options.mss, syn.stamps)))
    }

    /// Processes the next packet.
    pub fn push(&mut self, packet: &CapturedPacket) {
        // Captures of several NIC queues have packets slightly out of order; time must not run
        // backwards.
        let at = packet.at.min(MAX_TIME).max(self.last.at);
        let packet = &CapturedPacket { at, ..*packet };
        self.tally.push(packet);
        if self.packets.len() < self.settings.packets {
            self.packets.push(*packet);
        }
        self.events.push(packet);
        self.last = FrameTime { at, frame: packet.frame };
        self.first.get_or_insert(self.last);
        let segment = &packet.segment;
        if segment.flags.has(Flags::SYN) {
            let data = self.opening.push(packet);
            if self.distances.is_none() {
                self.waiting.extend(data);
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            return self.exchange.closing(at);
        }
        if segment.flags.has(Flags::FIN) {
            self.exchange.closing(at);
        }
        if self.distances.is_none() {
            if let Some(distances) = self.opening.distances(packet) {
                self.distances = Some(distances);
                self.process_waiting();
            } else {
                self.waiting.push(*packet);
                if self.waiting.len() >= MAX_WAITING {
                    self.settle();
                }
                return;
            }
        }
        self.process(packet);
    }

    /// Adds a sample of a kernel's log; samples are in order of time, in any order relative to the
    /// packets.
    pub fn push_state(&mut self, sample: &StateSample) {
        self.states.push(sample);
    }

    /// Adds the first and the last account that the kernel of host `of` gave of its socket.
    pub fn push_socket(&mut self, of: Dir, samples: [SocketSample; 2]) {
        self.states.sockets[of as usize] = Some(Box::new(samples));
    }

    /// Adds an ICMP error about a packet of the connection.
    pub fn push_icmp(&mut self, notice: IcmpNotice) {
        self.events.push_icmp(notice);
    }

    /// Sets the time since the end of an earlier connection between the same ports.
    pub(crate) const fn set_previous(&mut self, gap: Duration) {
        self.after_previous = Some(gap);
    }

    /// Whether there are packets other than SYNs and resets.
    pub(crate) fn has_been_open(&self) -> bool {
        self.events.others.iter().any(|others| others.count > 0)
    }

    /// Estimates the capture point from the waiting packets, then processes them.
    fn settle(&mut self) {
        self.distances = Some(CaptureDistances::estimate(&self.waiting));
        self.process_waiting();
    }

    fn process_waiting(&mut self) {
        for packet in core::mem::take(&mut self.waiting) {
            self.process(&packet);
        }
    }

    fn process(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let dir = segment.dir;
        if segment.payload > 0 && self.halves[dir as usize].is_none() {
            self.halves[dir as usize] =
                Some(Box::new(HalfConnection::new(self.begin(packet), segment.seq)));
        }
        if segment.payload == 0 && self.halves[dir as usize].is_none() {
            self.claim(segment, packet.at);
        }
        self.first_stamp(segment, packet.at);
        let start = self.start();
        let (forward, reverse) = self.halves.split_at_mut(1);
        let (own, peer) = match dir {
            Dir::Forward => (&mut forward[0], &reverse[0]),
            Dir::Reverse => (&mut reverse[0], &forward[0]),
        };
        if let Some(half) = own {
            half.data(packet);
            if segment.payload > 0 {
                let start = ExchangeStart {
                    at: start,
                    opened: self.opening.opened,
                    distances: self.distances.unwrap_or_default(),
                };
                self.exchange.data(packet, half, peer.as_deref(), start);
            }
        }
        if let Some(half) = &mut self.halves[dir.reversed() as usize]
            && segment.flags.has(Flags::ACK)
        {
            let scale = self.opening.window_scale(dir);
            let mut sack = SackBlocks::EMPTY;
            for block in segment.sack_blocks() {
                sack.push(*block);
            }
            half.ecn.echoes += u64::from(segment.flags.has(Flags::ECE));
            half.ack(CapturedAck {
                at: packet.at,
                frame: packet.frame,
                number: segment.ack,
                window: u64::from(segment.window) << scale.unwrap_or(0),
                scaled: scale.is_some(),
                stamp: segment.timestamps.map(|stamps| stamps.val),
                echo: segment.timestamps.map(|stamps| stamps.ecr),
                sack,
                pure: segment.payload == 0,
                fin: segment.flags.has(Flags::FIN),
                ece: segment.flags.has(Flags::ECE),
                options_cut: packet.options_cut,
            });
        }
    }

    /// Keeps the timestamp of a packet before the first data of the other host, and when it was first captured.
    fn first_stamp(&mut self, segment: &Segment, at: Instant) {
        let peer = segment.dir.reversed() as usize;
        let (None, Some(stamps)) = (&self.halves[peer], segment.timestamps) else { return };
        let kept = &mut self.stamps[segment.dir as usize];
        if kept.is_none_or(|(stamp, _)| stamp != stamps.val) {
            *kept = Some((stamps.val, at));
        }
    }

    /// How long before `packet` the other host sent what it echoes, if that was its last timestamp.
    fn echoed_by(&self, packet: &CapturedPacket) -> Option<Duration> {
        let (stamp, at) = self.stamps[packet.segment.dir.reversed() as usize]?;
        let echoes = packet.segment.timestamps.is_some_and(|stamps| stamps.ecr == stamp);
        echoes.then(|| packet.at.since(at))
    }

    /// Takes the sequence number of a packet without data before the first data of its host: one beyond the SYN says that
    /// the host has sent some.
    fn claim(&mut self, segment: &Segment, at: Instant) {
        let Some(syn) = self.opening.syn[segment.dir as usize] else { return };
        let ahead = segment.seq.0.wrapping_sub(syn.seq.0.wrapping_add(1));
        let is_sent = ahead > 0 && ahead < MAX_CLAIM && !segment.flags.has(Flags::FIN);
        let claimed = &mut self.claimed[segment.dir as usize];
        if is_sent && segment.flags.has(Flags::ACK) {
            let since = claimed.map_or(at, |(_, since)| since);
            *claimed = Some((segment.seq, since));
        }
    }

    /// Time of the first packet.
    fn start(&self) -> Instant {
        self.first.map_or(Instant::ZERO, |first| first.at)
    }

    /// The conditions when `packet` has the first data of its direction.
    fn begin(&self, packet: &CapturedPacket) -> StartConditions {
        let dir = packet.segment.dir;
        let distances = self.distances.unwrap_or_default();
        let opened = self.opening.opened;
        let established_at = opened.map(|at| {
            // The server receives the last ACK of the handshake later.
            if dir == Dir::Reverse {
                at + distances.rtt_to_sender(dir).unwrap_or_default()
            } else {
                at
            }
        });
        let asked = self.halves[dir.reversed() as usize]
            .as_deref()
            .map(|peer| peer.last.sent + distances.rtt_to_sender(dir).unwrap_or_default());
        StartConditions {
            dir,
            asked_at: asked,
            point: distances.point(dir),
            rtt_to_receiver: opened.and(distances.rtt_to_receiver(dir)),
            rtt_to_sender: opened.and(distances.rtt_to_sender(dir)),
            mss: self.opening.segment_size(),
            isn: self.opening.syn[dir as usize].map(|syn| syn.seq),
            first: self.start(),
            established_at,
            syn_repeated: self.opening.is_repeated(),
            echoed: self.echoed_by(packet),
            claimed: self.claimed[dir as usize],
            turns: self.settings.turns,
        }
    }

    /// Both hosts sent a FIN, or one an RST.
    pub(crate) const fn is_over(&self) -> bool {
        self.tally.is_reset || self.tally.is_closed()
    }

    /// Number of packets.
    pub(crate) const fn frames(&self) -> u64 {
        self.tally.frames
    }

    /// Entries of the logs that an analysis walks: its cost.
    pub(crate) fn entries(&self) -> usize {
        self.halves.iter().flatten().map(|half| half.entries()).sum()
    }

    /// The direction with more data; forward if neither has any.
    pub(crate) fn main_dir(&self) -> Dir {
        let [there, back] =
            [0, 1].map(|dir| self.halves[dir].as_ref().map_or(0, |half| half.bytes.all()));
        if back > there { Dir::Reverse } else { Dir::Forward }
    }

    /// Begin of the round that is `back` entries before the last of the main direction; the first packet's time
    /// without data.
    pub(crate) fn begin_of_last(&self, back: usize) -> Instant {
        let half = self.halves[self.main_dir() as usize].as_deref();
        half.map_or(self.start(), |half| half.rounds.log.begin_of_last(back))
    }

    /// The flow of the main direction since `since`, without what is older; `None` without data.
    pub(crate) fn main_since(&self, since: Instant) -> Option<FlowAnalysis> {
        let half = self.halves[self.main_dir() as usize].as_deref()?;
        Some(FlowAnalysis::since(since, half, &self.opening.syn, (self.start(), self.last.at)))
    }

    /// The analysis of the packets so far, without those kept for graphs.
    pub fn so_far(&self) -> Analysis {
        Self { packets: Vec::new(), ..self.clone() }.finish()
    }

    /// Ends the analysis at the end of the capture.
    pub fn finish(mut self) -> Analysis {
        if !self.waiting.is_empty() {
            self.settle();
        }
        let (start, end) = (self.start(), self.last.at);
        let ConnectionOpening { syn, opened, syns, .. } = self.opening;
        let tally = self.tally;
        self.halves.iter_mut().flatten().for_each(|half| half.finish(end));
        let exchange = self
            .exchange
            .finish(&self.halves, self.distances.unwrap_or_default(), end)
            .map(Box::new);
        let flows = self
            .halves
            .map(|half| half.map(|half| Box::new(FlowAnalysis::new(*half, &syn, start, end))));
        Analysis {
            ends: self.ends,
            stream: self.stream,
            frames: tally.frames,
            first: start,
            last: end,
            first_frame: self.first.map_or(0, |first| first.frame),
            last_frame: self.last.frame,
            opened: opened.is_some(),
            observed_syns: syn.map(|syn| syn.map(Syn::observed)),
            syns,
            reset: tally.is_reset,
            closed: tally.is_closed(),
            seen: tally.seen,
            bare_acks: tally.bare_acks,
            of_filtered_capture: false,
            cut: tally.cut,
            options_cut: tally.options_cut,
            flows,
            distances: self.distances.unwrap_or_default(),
            events: self.events,
            exchange: exchange.filter(|_| !tally.seen.contains(&0)),
            after_previous: self.after_previous,
            silent_after: Duration::ZERO,
            states: self.states,
            packets: self.packets,
        }
    }
}
