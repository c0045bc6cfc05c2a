//! Analyses one connection packet by packet.

use packet::wire::Endpoints;
use packet::{Dir, Flags, Options, SackBlocks, SynOptions};
use units::{Instant, SeqNum};

use crate::analysis::Analysis;
use crate::capture_point::CaptureDistances;
use crate::connection_events::{ConnectionEvents, IcmpNotice};
use crate::exchange::{ExchangeLog, ExchangeStart};
use crate::flow::FlowAnalysis;
use crate::half_connection::{CapturedAck, HalfConnection, StartConditions};
use crate::socket::SocketSample;
use crate::state::KernelStateSummary;
use crate::{CapturedPacket, StateSample};

/// Latest valid time: ten years, small enough to multiply durations by twenty.
const MAX_TIME: Instant = Instant::from_nanos(10 * 365 * 86_400 * 1_000_000_000);

/// Packets collected to estimate the capture point of a connection without a handshake.
const MAX_WAITING: usize = 256;

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
    /// Window field.
    pub window: u16,
}

/// A captured SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syn {
    pub(crate) at: u64,
    pub(crate) seq: u32,
    pub(crate) options: SynOptions,
    pub(crate) window: u16,
    pub(crate) stamps: bool,
    /// All options were captured.
    pub(crate) complete: bool,
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
    first: Option<(u64, u64)>,
    last: (u64, u64),
    frames: u64,
    /// Packets whose payload was truncated by the capture.
    cut: u64,
    /// Packets whose TCP options were truncated by the capture.
    options_cut: u64,
    /// The last SYN of each direction.
    syn: [Option<Syn>; 2],
    opened: Option<u64>,
    syns: u32,
    /// Copies of the SYN-ACK.
    answers: u32,
    reset: Option<u64>,
    fins: u8,
    place: Option<CaptureDistances>,
    waiting: Vec<CapturedPacket>,
    /// Whether the SYN of each host carries data.
    has_syn_data: [bool; 2],
    halves: [Option<Box<HalfConnection>>; 2],
    /// Packets captured per direction.
    seen: [u64; 2],
    bare_acks: [u64; 2],
    states: KernelStateSummary,
    events: ConnectionEvents,
    exchange: ExchangeLog,
    after_previous: Option<u64>,
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
            last: (0, 0),
            frames: 0,
            cut: 0,
            options_cut: 0,
            syn: [None; 2],
            opened: None,
            syns: 0,
            answers: 0,
            reset: None,
            fins: 0,
            place: None,
            waiting: Vec::new(),
            has_syn_data: [false; 2],
            halves: [None, None],
            seen: [0; 2],
            bare_acks: [0; 2],
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

    /// Sets the stream index.
    pub(crate) const fn set_stream(&mut self, stream: u32) {
        self.stream = stream;
    }

    /// Times of the first and the last packet, in ns; `None` without one.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.first.map(|(first, _)| (first, self.last.0))
    }

    /// The last SYN of each host, by [`Dir`]: MSS option, and whether it has timestamps.
    pub fn syns(&self) -> [Option<(u16, bool)>; 2] {
        self.syn.map(|syn| syn.map(|syn| (syn.options.mss, syn.stamps)))
    }

    /// Processes the next packet.
    pub fn push(&mut self, packet: &CapturedPacket) {
        // Captures of several NIC queues have packets slightly out of order; time must not run
        // backwards.
        let at = packet.at.min(MAX_TIME).max(Instant::from_nanos(self.last.0));
        let packet = &CapturedPacket { at, ..*packet };
        self.frames += 1;
        if self.packets.len() < self.settings.packets {
            self.packets.push(*packet);
        }
        self.events.push(packet);
        let at = packet.at.as_nanos();
        if self.first.is_none() {
            self.first = Some((at, packet.frame));
        }
        self.last = (at.max(self.last.0), packet.frame);
        let segment = &packet.segment;
        self.seen[segment.dir as usize] += 1;
        let bare = segment.payload == 0 && segment.flags.has(Flags::ACK);
        let opens_or_ends =
            [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|&f| segment.flags.has(f));
        self.bare_acks[segment.dir as usize] += u64::from(bare && !opens_or_ends);
        self.cut += u64::from(segment.payload > 0 && packet.captured < segment.payload);
        self.options_cut += u64::from(packet.options_cut);
        if segment.flags.has(Flags::SYN) {
            return self.opening(packet, at);
        }
        if segment.flags.has(Flags::RST) {
            self.reset = Some(at);
            self.exchange.closing(at);
            return;
        }
        if segment.flags.has(Flags::FIN) {
            self.fins |= 1 << segment.dir as u8;
            self.exchange.closing(at);
        }
        if self.place.is_none() {
            if let Some(place) = self.handshake_distances(packet, at) {
                self.place = Some(place);
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

    /// Sets the time in ns since the end of an earlier connection between the same ports.
    pub(crate) const fn set_previous(&mut self, gap: u64) {
        self.after_previous = Some(gap);
    }

    /// Whether there are packets other than SYNs and resets.
    pub(crate) fn has_been_open(&self) -> bool {
        self.events.others.iter().any(|others| others.count > 0)
    }

    fn opening(&mut self, packet: &CapturedPacket, at: u64) {
        let segment = &packet.segment;
        let options = segment.syn_options().copied().unwrap_or_default();
        let syn = Syn {
            at,
            seq: segment.seq.0,
            options,
            window: segment.window,
            stamps: segment.timestamps.is_some(),
            complete: !packet.options_cut,
        };
        self.syns += u32::from(!segment.flags.has(Flags::ACK));
        self.answers += u32::from(segment.flags.has(Flags::ACK));
        let before = self.syn[segment.dir as usize].replace(syn);
        if self.place.is_none() {
            self.data_of_syn(packet, before.is_none_or(|before| before.seq != syn.seq));
        }
    }

    /// Distances from the capture point, if this packet ends the handshake.
    fn handshake_distances(
        &mut self,
        packet: &CapturedPacket,
        at: u64,
    ) -> Option<CaptureDistances> {
        let [Some(syn), Some(answer)] = &self.syn else { return None };
        if packet.segment.dir != Dir::Forward || !packet.segment.flags.has(Flags::ACK) {
            return None;
        }
        self.opened.get_or_insert(at);
        if self.answers > 1 {
            // Which copy this answers is unknown (Karn's algorithm, RFC 6298 section 3).
            return None;
        }
        Some(CaptureDistances {
            to_server: Some(answer.at.saturating_sub(syn.at)),
            to_client: Some(at.saturating_sub(answer.at)),
        })
    }

    /// Estimates the capture point from the waiting packets, then processes them.
    fn settle(&mut self) {
        self.place = Some(CaptureDistances::estimate(&self.waiting));
        self.process_waiting();
    }

    fn process_waiting(&mut self) {
        for packet in core::mem::take(&mut self.waiting) {
            self.process(&packet);
        }
    }

    /// Takes the data of a SYN (RFC 9293 section 3.4, RFC 7413) as a segment after it, and the
    /// answer to them as an ACK. A SYN repeated with its data repeats the handshake only.
    fn data_of_syn(&mut self, packet: &CapturedPacket, is_first: bool) {
        let mut segment = packet.segment;
        let answers = segment.flags.has(Flags::ACK) && self.has_syn_data[1 - segment.dir as usize];
        let carries = segment.payload > 0 && is_first;
        if !(carries || answers) {
            return;
        }
        if carries {
            self.has_syn_data[segment.dir as usize] = true;
        } else {
            segment.payload = 0;
        }
        // The window of a SYN is not scaled (RFC 7323 section 2.2).
        let shift = segment.syn_options().and_then(|syn| syn.window_scale).unwrap_or(0).min(14);
        segment.window >>= shift;
        segment.seq = SeqNum(segment.seq.0.wrapping_add(1));
        segment.flags = segment.flags.without(Flags::SYN);
        segment.options = Options::None;
        self.waiting.push(CapturedPacket { segment, ..*packet });
    }

    fn process(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let dir = segment.dir;
        if segment.payload > 0 && self.halves[dir as usize].is_none() {
            self.halves[dir as usize] =
                Some(Box::new(HalfConnection::new(self.begin(dir), segment.seq.0)));
        }
        let (forward, reverse) = self.halves.split_at_mut(1);
        let (own, peer) = match dir {
            Dir::Forward => (&mut forward[0], &reverse[0]),
            Dir::Reverse => (&mut reverse[0], &forward[0]),
        };
        if let Some(half) = own {
            half.data(packet);
            if segment.payload > 0 {
                let start = ExchangeStart {
                    at: self.first.map_or(0, |(at, _)| at),
                    opened: self.opened,
                    distances: self.place.unwrap_or_default(),
                };
                self.exchange.data(packet, half, peer.as_deref(), start);
            }
        }
        let syn = |dir: Dir| self.syn[dir as usize];
        if let Some(half) = &mut self.halves[dir.reversed() as usize]
            && segment.flags.has(Flags::ACK)
        {
            // Without all options of both the scale of the window is unknown.
            let both = syn(dir).zip(syn(dir.reversed()));
            let both = both.filter(|(mine, theirs)| mine.complete && theirs.complete);
            let shift = both.map_or(0, |(mine, theirs)| {
                match (mine.options.window_scale, theirs.options.window_scale) {
                    (Some(shift), Some(_)) => shift.min(14),
                    _ => 0,
                }
            });
            let mut sack = SackBlocks::EMPTY;
            for block in segment.sack_blocks() {
                sack.push(*block);
            }
            half.ecn.echoes += u64::from(segment.flags.has(Flags::ECE));
            half.ack(CapturedAck {
                at: packet.at.as_nanos(),
                frame: packet.frame,
                number: segment.ack.0,
                window: u64::from(segment.window) << shift,
                scaled: both.is_some(),
                stamp: segment.timestamps.map(|stamps| stamps.val),
                echo: segment.timestamps.map(|stamps| stamps.ecr),
                sack,
                pure: segment.payload == 0,
                fin: segment.flags.has(Flags::FIN),
                ece: segment.flags.has(Flags::ECE),
            });
        }
    }

    fn begin(&self, dir: Dir) -> StartConditions {
        let place = self.place.unwrap_or_default();
        let both = self.syn[0].zip(self.syn[1]);
        let both = both.filter(|(one, other)| one.complete && other.complete);
        let sizes = both.map(|(one, other)| {
            let mss = one.options.mss.min(other.options.mss);
            let stamps = one.stamps && other.stamps;
            // RFC 9293 section 3.7.1: 536 without the option. The option may have any value, even
            // less than the length of the timestamps.
            let mss = u32::from(if mss == 0 { 536 } else { mss });
            mss.saturating_sub(12 * u32::from(stamps)).max(1)
        });
        let open = self.opened.map(|at| {
            // The server receives the last ACK of the handshake later.
            if dir == Dir::Reverse { at + place.behind(dir).unwrap_or(0) } else { at }
        });
        StartConditions {
            dir,
            point: place.point(dir),
            rtt_to_receiver: self.opened.and(place.rtt_to_receiver(dir)),
            rtt_to_sender: self.opened.and(place.behind(dir)),
            mss: sizes,
            isn: self.syn[dir as usize].map(|syn| syn.seq),
            first: self.first.map_or(0, |(at, _)| at),
            established_at: open,
            turns: self.settings.turns,
        }
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
        let (end, _) = self.last;
        let start = self.first.map_or(0, |(at, _)| at);
        let syn = self.syn;
        self.halves.iter_mut().flatten().for_each(|half| half.finish(end));
        let exchange =
            self.exchange.finish(&self.halves, self.place.unwrap_or_default(), end).map(Box::new);
        let flows = self
            .halves
            .map(|half| half.map(|half| Box::new(FlowAnalysis::new(*half, &syn, start, end))));
        Analysis {
            ends: self.ends,
            stream: self.stream,
            frames: self.frames,
            first: Instant::from_nanos(start),
            last: Instant::from_nanos(end),
            first_frame: self.first.map_or(0, |(_, frame)| frame),
            last_frame: self.last.1,
            opened: self.opened.is_some(),
            observed_syns: syn
                .map(|syn| syn.map(|Syn { options, window, .. }| ObservedSyn { options, window })),
            syns: self.syns,
            reset: self.reset.is_some(),
            closed: self.fins == 3,
            seen: self.seen,
            bare_acks: self.bare_acks,
            of_filtered_capture: false,
            cut: self.cut,
            options_cut: self.options_cut,
            flows,
            distances: self.place.unwrap_or_default(),
            events: self.events,
            exchange: exchange.filter(|_| !self.seen.contains(&0)),
            after_previous: self.after_previous,
            silent_after: 0,
            states: self.states,
            packets: self.packets,
        }
    }
}
