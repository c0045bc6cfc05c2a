//! One direction of a connection: its data and the ACKs for them.
//!
//! The state is that of the data sender. At a capture point away from the sender, an ACK takes
//! effect when it reaches the sender: when data echo its timestamp, or else after the round-trip
//! time between the capture point and the sender ([`RoundTrip::recent_rtt_to_sender`]).
//!
//! Memory is bounded: the outstanding data ([`Outstanding`]), ACKs that have not reached the
//! sender, at most 8192 retransmissions, 16384 episodes, 4096 rounds.

mod acks;
mod data;
mod retransmissions;
mod window;

use std::collections::VecDeque;

use packet::{Dir, SackBlocks};

use crate::capture_point::CapturePoint;
use crate::coverage::Coverage;
use crate::dispersion::Dispersion;
use crate::episodes::RecoveryEpisode;
use crate::ip_ids::IpIdCounter;
use crate::outstanding::Outstanding;
use crate::ranges::StreamRanges;
use crate::reordering::ReorderingStats;
use crate::round_trip::RoundTrip;
use crate::rounds::{RoundLog, TimeUse};
use crate::sender_events::{SenderEvent, SenderEventKind, SenderEventLog};
use crate::stalls::AckStalls;
use crate::transmissions::{OpenRetransmissions, Transmissions};

use retransmissions::MAX_RTO;

/// Stream offset of the first byte: far enough from zero that earlier bytes have offsets too, when
/// a capture begins in the middle.
pub(crate) const ORIGIN: u64 = 1 << 32;

/// An ACK that passed the capture point towards the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapturedAck {
    pub(crate) at: u64,
    pub(crate) frame: u64,
    pub(crate) number: u32,
    /// Advertised window in bytes, and whether the window scale is known.
    pub(crate) window: u64,
    pub(crate) scaled: bool,
    pub(crate) stamp: Option<u32>,
    pub(crate) echo: Option<u32>,
    pub(crate) sack: SackBlocks,
    /// The segment carries no data.
    pub(crate) pure: bool,
    /// The segment is a FIN: what it says about the window concerns no sender that waits.
    pub(crate) fin: bool,
    /// The ECE flag (RFC 3168) is set.
    pub(crate) ece: bool,
}

/// The state of the connection when the first data of a direction are captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartConditions {
    pub(crate) dir: Dir,
    pub(crate) point: CapturePoint,
    /// Round-trip times from the capture point to the receiver and to the sender.
    pub(crate) rtt_to_receiver: Option<u64>,
    pub(crate) rtt_to_sender: Option<u64>,
    /// Segment size, if the handshake was captured.
    pub(crate) mss: Option<u32>,
    /// Initial sequence number, if the SYN was captured.
    pub(crate) isn: Option<u32>,
    /// Time of the first packet of the connection.
    pub(crate) first: u64,
    /// Time from which the sender could send data.
    pub(crate) established_at: Option<u64>,
    /// Limit of the recorded sender events.
    pub(crate) turns: usize,
}

/// The part of an ACK that a sender event records.
#[derive(Debug, Clone, Copy, Default)]
struct AckSummary {
    acked: u64,
    delivered: u64,
    late: u64,
    rtt: u64,
}

/// The recovery in progress.
#[derive(Debug, Clone)]
pub(crate) struct EpisodeState {
    /// A recovery is in progress.
    open: bool,
    /// Offset whose acknowledgment ends it.
    recover: u64,
    /// A timer has expired and no ACK has arrived since.
    in_timeout: bool,
    /// Time of the last expiry of the retransmission timer.
    last_rto: u64,
}

/// The round trip that is being accounted for.
#[derive(Debug, Clone)]
pub(crate) struct OpenRound {
    /// It ends when the ACKs reach this offset.
    mark: u64,
    /// They have.
    over: bool,
    /// The time up to here is accounted for.
    since: u64,
}

/// The last packets of both sides.
#[derive(Debug, Clone)]
pub(crate) struct LastPackets {
    /// Time of the last data.
    sent: u64,
    /// Time of the last ACK.
    ack: u64,
    /// An ACK was captured.
    pub(crate) answered: bool,
    /// The last ACK carries no data.
    ack_pure: bool,
    /// The last data has PSH.
    push: bool,
    /// The last data is less than a segment.
    short: bool,
    /// Time of the last delivery that an ACK showed.
    pub(crate) delivery: u64,
    /// Number of the last frame.
    pub(crate) frame: u64,
}

/// Explicit congestion notification.
#[derive(Debug, Clone)]
pub(crate) struct EcnEchoes {
    /// Segments with ECE.
    pub(crate) echoes: u64,
    /// Packets of data that were marked.
    pub(crate) marked: u64,
    /// The sender received an ECE that it has not answered with CWR.
    pending: bool,
    /// The data in flight at the last ECE that began a round end at this offset.
    recover: u64,
}

/// Data acknowledged that the capture does not have.
#[derive(Debug, Clone)]
pub(crate) struct UnseenData {
    /// Bytes.
    pub(crate) bytes: u64,
    /// The latest ranges.
    ranges: StreamRanges,
    /// Time of the last ACK that covered some.
    at: u64,
}

/// Timestamps of new data.
#[derive(Debug, Clone)]
pub(crate) struct DataStamps {
    /// The first, and its time.
    first: (u32, u64),
    /// The last.
    last: u32,
    /// Its time.
    last_at: u64,
}

/// The highest ACK that passed the capture point.
#[derive(Debug, Clone)]
pub(crate) struct AckedHere {
    /// Its offset.
    to: u64,
    /// When it did so first.
    since: u64,
    /// Time of the latest ACK.
    at: u64,
}

/// Pauses of the application.
#[derive(Debug, Clone)]
pub(crate) struct Pauses {
    /// How many.
    pub(crate) count: u64,
    /// The longest: its length, and the frame that ends it.
    pub(crate) longest: (u64, u64),
}

/// What is missing before the current packet.
#[derive(Debug, Clone)]
pub(crate) struct MissingBefore {
    /// IPv4 identifications of the sender.
    ids: IpIdCounter,
    /// Packets that they show to be missing.
    packets: Option<u16>,
    /// The current data leave a gap below them.
    in_stream: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct HalfConnection {
    pub(crate) begin: StartConditions,
    pub(crate) mss: u64,
    first_seq: u32,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// Right edge of the advertised window.
    edge: u64,
    pub(crate) window: u64,
    pub(crate) window_max: u64,
    pub(crate) window_min: u64,
    out: Outstanding,
    sacked: StreamRanges,
    /// Highest byte delivered (cumulative ACK or SACK).
    fack: u64,
    line: VecDeque<CapturedAck>,
    pub(crate) rtt: RoundTrip,
    pub(crate) delivered: u64,
    pub(crate) dispersion: Dispersion,
    pub(crate) coverage: Coverage,
    pub(crate) reordering: ReorderingStats,
    pub(crate) counts: Transmissions,
    open: OpenRetransmissions,
    pub(crate) episodes: Vec<RecoveryEpisode>,
    /// Episodes beyond [`KEPT`](crate::episodes::KEPT).
    pub(crate) more_episodes: u64,
    pub(crate) rounds: RoundLog,
    pub(crate) turns: SenderEventLog,
    rwnd_limited: bool,
    /// Time at which the last outstanding byte was acknowledged.
    all_acked_at: Option<u64>,
    begun: bool,
    pub(crate) first_data: Option<(u64, u64)>,
    pub(crate) zero_windows: u64,
    closure: window::WindowClosure,
    largest: u32,
    start: u64,
    fin: Option<u64>,
    /// An idle time that may have been a retransmission timeout: its length and its end.
    suspected_timeout: Option<(u64, u64)>,
    /// Distinct bytes of the stream that were captured.
    pub(crate) captured: u64,
    /// Time of the first data of the receiver since the last data of the sender: a request.
    request_at: Option<u64>,
    /// Delayed ACKs that the sender waited for: see [`stalls`](crate::stalls).
    pub(crate) stalls: AckStalls,
    /// Arrival of data that the path had delayed (delay spike).
    delay_spike_at: Option<u64>,
    episode: EpisodeState,
    round: OpenRound,
    pub(crate) last: LastPackets,
    pub(crate) ecn: EcnEchoes,
    pub(crate) unseen: UnseenData,
    stamps: DataStamps,
    here: AckedHere,
    pub(crate) pauses: Pauses,
    gap: MissingBefore,
}

impl HalfConnection {
    pub(crate) fn new(begin: StartConditions, first_seq: u32) -> Self {
        let mut rtt = RoundTrip::default();
        rtt.opening(begin.rtt_to_receiver, begin.rtt_to_sender);
        Self {
            begin,
            mss: u64::from(begin.mss.unwrap_or(1_448)),
            first_seq: begin.isn.map_or(first_seq, |isn| isn.wrapping_add(1)),
            una: ORIGIN,
            nxt: ORIGIN,
            edge: u64::MAX,
            window: 0,
            window_max: 0,
            window_min: u64::MAX,
            out: Outstanding::default(),
            sacked: StreamRanges::default(),
            fack: ORIGIN,
            line: VecDeque::new(),
            rtt,
            delivered: 0,
            dispersion: Dispersion::default(),
            coverage: Coverage::default(),
            reordering: ReorderingStats::default(),
            counts: Transmissions::default(),
            open: OpenRetransmissions::default(),
            episodes: Vec::new(),
            more_episodes: 0,
            rounds: RoundLog::new(begin.first),
            turns: SenderEventLog::new(begin.turns),
            rwnd_limited: false,
            all_acked_at: None,
            begun: false,
            first_data: None,
            zero_windows: 0,
            closure: window::WindowClosure::default(),
            largest: 0,
            start: ORIGIN,
            fin: None,
            suspected_timeout: None,
            delay_spike_at: None,
            captured: 0,
            request_at: None,
            stalls: AckStalls::default(),
            episode: EpisodeState { open: false, recover: 0, in_timeout: false, last_rto: 0 },
            round: OpenRound { mark: ORIGIN, over: false, since: begin.first },
            last: LastPackets {
                sent: begin.first,
                ack: begin.first,
                answered: false,
                ack_pure: true,
                push: true,
                short: false,
                delivery: 0,
                frame: 0,
            },
            ecn: EcnEchoes { echoes: 0, marked: 0, pending: false, recover: ORIGIN },
            unseen: UnseenData { bytes: 0, ranges: StreamRanges::default(), at: 0 },
            stamps: DataStamps { first: (0, 0), last: 0, last_at: 0 },
            here: AckedHere { to: ORIGIN, since: begin.first, at: begin.first },
            pauses: Pauses { count: 0, longest: (0, 0) },
            gap: MissingBefore { ids: IpIdCounter::default(), packets: None, in_stream: false },
        }
    }

    /// Stream offset of a sequence number, the one nearest to `near`.
    fn place(&self, seq: u32, near: u64) -> u64 {
        let of_near = self.first_seq.wrapping_add((near.wrapping_sub(ORIGIN)) as u32);
        near.saturating_add_signed(i64::from(seq.wrapping_sub(of_near) as i32))
    }

    /// Whether this ACK number covers all data captured.
    pub(crate) fn is_wholly_acked_by(&self, ack: u32) -> bool {
        self.place(ack, self.una) >= self.nxt
    }

    /// Time at which an ACK of all data captured so far passed the capture point; `None` if none did.
    pub(crate) fn all_acked_here(&self) -> Option<u64> {
        (self.here.to >= self.nxt).then_some(self.here.since)
    }

    /// Packets that this host sent before the last one and that the capture does not have, if it numbers
    /// its packets.
    pub(crate) fn is_preceded_by_missing(&self) -> bool {
        self.gap.packets.is_some_and(|packets| packets > 0)
    }

    /// Time at which the sender received the ACK of all its data; `None` if some are outstanding.
    pub(crate) const fn all_acked(&self) -> Option<u64> {
        self.all_acked_at
    }

    /// Bytes in flight as the sender counts them: without those reported by SACK.
    fn flight(&self) -> u64 {
        (self.nxt - self.una).saturating_sub(self.sacked.bytes())
    }

    /// Time within which a host answers an ACK: an eighth of the round-trip time, clamped to the
    /// time a kernel and its NIC take (0.2 to 2 ms).
    fn reaction(&self) -> u64 {
        (self.rtt.min.unwrap_or(0) / 8).clamp(200_000, 2_000_000)
    }

    pub(crate) fn smoothed(&self) -> u64 {
        self.rtt.smoothed.or(self.rtt.min).unwrap_or(0)
    }

    /// Lower bound of a retransmission timeout: the smoothed round-trip time plus the least that
    /// Linux (`TCP_RTO_MIN`, 200 ms) and FreeBSD (`tcp_rexmit_slop`) add.
    fn timeout(&self) -> u64 {
        self.smoothed() + 200_000_000
    }

    fn spend(&mut self, what: TimeUse, until: u64) {
        // No timer runs for so long, and none lets a sender wait so long for an ACK.
        let is_rest = until.saturating_sub(self.round.since) > MAX_RTO;
        let what = match what {
            TimeUse::Timeout | TimeUse::Recovery | TimeUse::Window if is_rest => TimeUse::Idle,
            _ => what,
        };
        self.rounds.spend(what, until.saturating_sub(self.round.since));
        self.round.since = self.round.since.max(until);
    }

    /// Records an event at the sender, with all data before `una` acknowledged.
    fn turn(&mut self, at: u64, what: SenderEventKind, una: u64, news: AckSummary) {
        self.turns.push(SenderEvent {
            at,
            what,
            una: una.saturating_sub(self.start) + 1,
            nxt: self.nxt.saturating_sub(self.start) + 1,
            acked: news.acked,
            delivered: news.delivered,
            late: news.late,
            rtt: news.rtt,
            window: self.window,
            flight: self.flight(),
        });
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss).max(1)
    }

    /// Ends the analysis at `at`, the end of the capture.
    pub(crate) fn finish(&mut self, at: u64) {
        while let Some(ack) = self.line.pop_front() {
            let when = (ack.at + self.rtt.recent_rtt_to_sender()).min(at).max(self.round.since);
            self.on_ack_received(when, &ack);
        }
        if let Some(all_acked_at) = self.all_acked_at {
            self.spend_closed_window(at);
            self.rounds.now.final_wait += self.final_wait(all_acked_at);
            self.spend(TimeUse::Window, all_acked_at);
            self.spend(TimeUse::Idle, at);
        } else {
            let what = if self.episode.in_timeout {
                TimeUse::Timeout
            } else if self.episode.open {
                TimeUse::Recovery
            } else if self.begun {
                TimeUse::Window
            } else {
                TimeUse::Idle
            };
            self.spend(what, at);
        }
        if let Some(episode) = self.episodes.last_mut()
            && !episode.over
        {
            episode.end = at;
        }
    }
}
