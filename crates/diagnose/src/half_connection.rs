//! One direction of a connection: its data and the ACKs for them.
//!
//! The state is that of the data sender. At a capture point away from the sender, an ACK takes
//! effect when it reaches the sender: when data echo its timestamp, or else after the round-trip
//! time between the capture point and the sender ([`RoundTrip::recent_rtt_to_sender`]).
//!
//! Each part of the state owns its fields and their rules: the numbering of the stream, the
//! scoreboard, the peer's window, the recoveries, the account of time, idle times. The steps
//! `data`, `acks` and `retransmissions` pass values between them.
//!
//! Memory is bounded: the outstanding data ([`Scoreboard`]), ACKs that have not reached the
//! sender, at most 8192 retransmissions, 16384 episodes, 4096 rounds.

mod ack_queue;
mod acks;
mod activity;
mod counters;
mod data;
mod idle;
mod lost_flight;
mod numbering;
mod one_way;
mod recovery;
mod retransmissions;
mod round_clock;
mod scale;
mod scoreboard;
mod window;

use packet::Dir;
use units::{Duration, Instant, Offset, SeqNum};

use crate::capture_point::CapturePoint;
use crate::round_trip::RoundTrip;
use crate::rounds::{RoundLog, TimeUse};
use crate::sender_events::{SenderEvent, SenderEventKind, SenderEventLog};

pub(crate) use ack_queue::CapturedAck;

use ack_queue::AckQueue;
use activity::{DataStamps, LastPackets, StreamProgress};
use counters::{
    CapturedBytes, Deliveries, EcnEchoes, MissingBefore, SegmentSize, TransferCounters,
};
use idle::IdleTimes;
use lost_flight::LostFlight;
use numbering::StreamNumbering;
use one_way::OneWayDelay;
use recovery::RecoveryLog;
use round_clock::RoundClock;
use scoreboard::Scoreboard;
use window::PeerWindow;

/// Stream offset of the first byte: far enough from zero that earlier bytes have offsets too, when
/// a capture begins in the middle.
pub(crate) const ORIGIN: Offset = Offset(1 << 32);

/// Longest retransmission timeout (Linux `TCP_RTO_MAX`, 120 s; FreeBSD 64 s), and a round trip.
/// A longer silence is a rest, a capture that paused, or a clock that was set.
const MAX_RTO: Duration = Duration::from_secs(125);

/// What a retransmission timeout adds to the smoothed round-trip time at least: Linux
/// `TCP_RTO_MIN`, FreeBSD `tcp_rexmit_slop`.
const RTO_SLOP: Duration = Duration::from_millis(200);

/// Time and number of a captured packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameTime {
    pub(crate) at: Instant,
    pub(crate) frame: u64,
}

/// The state of the connection when the first data of a direction are captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartConditions {
    /// When the sender had the last data of its peer before its own first; `None` without any.
    pub(crate) asked_at: Option<Instant>,
    pub(crate) dir: Dir,
    pub(crate) point: CapturePoint,
    /// Round-trip times from the capture point to the receiver and to the sender.
    pub(crate) rtt_to_receiver: Option<Duration>,
    pub(crate) rtt_to_sender: Option<Duration>,
    /// Segment size, if the handshake was captured.
    pub(crate) mss: Option<u32>,
    /// Initial sequence number, if the SYN was captured.
    pub(crate) isn: Option<SeqNum>,
    /// Time of the first packet of the connection.
    pub(crate) first: Instant,
    /// Time from which the sender could send data.
    pub(crate) established_at: Option<Instant>,
    /// A SYN, or its answer, was sent more than once.
    pub(crate) syn_repeated: bool,
    /// How long before its first data the peer had sent the packet that they echo; `None` if it is unknown.
    pub(crate) echoed: Option<Duration>,
    /// Where the sequence numbers of packets before the first data said that the sender was, and since when.
    pub(crate) claimed: Option<(SeqNum, Instant)>,
    /// Limit of the recorded sender events.
    pub(crate) turns: usize,
}

/// The part of an ACK that a sender event records.
#[derive(Debug, Clone, Copy, Default)]
struct AckSummary {
    acked: u64,
    delivered: u64,
    late: u64,
    rtt: Duration,
}

/// One direction of a connection.
#[derive(Debug, Clone)]
pub(crate) struct HalfConnection {
    pub(crate) begin: StartConditions,
    pub(crate) progress: StreamProgress,
    numbers: StreamNumbering,
    pub(crate) segment: SegmentSize,
    board: Scoreboard,
    pub(crate) window: PeerWindow,
    acks: AckQueue,
    pub(crate) rtt: RoundTrip,
    pub(crate) bytes: CapturedBytes,
    pub(crate) deliveries: Deliveries,
    pub(crate) counters: TransferCounters,
    pub(crate) ecn: EcnEchoes,
    pub(crate) recovery: RecoveryLog,
    pub(crate) rounds: RoundClock,
    pub(crate) events: SenderEventLog,
    pub(crate) last: LastPackets,
    pub(crate) idle: IdleTimes,
    stamps: DataStamps,
    /// Delays of the ACKs between the receiver and the capture point, and of the data between the sender and it.
    ways: [OneWayDelay; 2],
    missing: MissingBefore,
    lost_flight: LostFlight,
}

impl HalfConnection {
    pub(crate) fn new(begin: StartConditions, first_seq: SeqNum) -> Self {
        let mut rtt = RoundTrip::default();
        rtt.opening(begin.rtt_to_receiver, begin.rtt_to_sender);
        let is_away = matches!(begin.point, CapturePoint::Receiver | CapturePoint::Middle);
        let is_unknown = begin.rtt_to_sender.is_none() && is_away;
        if let Some(took) = begin.echoed.filter(|_| is_unknown) {
            rtt.bound_by_first_data(took);
        }
        let numbers = StreamNumbering::new(&begin, first_seq);
        let mut lost_flight = LostFlight::default();
        if let Some((seq, since)) = begin.claimed {
            lost_flight.claim(numbers.offset(seq, ORIGIN), since);
        }
        Self {
            begin,
            progress: StreamProgress::default(),
            numbers,
            segment: SegmentSize::new(begin.mss),
            board: Scoreboard::default(),
            window: PeerWindow::default(),
            acks: AckQueue::new(begin.first),
            rtt,
            bytes: CapturedBytes::default(),
            deliveries: Deliveries::default(),
            counters: TransferCounters::default(),
            ecn: EcnEchoes::new(ORIGIN),
            recovery: RecoveryLog::default(),
            rounds: RoundClock::new(begin.first, ORIGIN),
            events: SenderEventLog::new(begin.turns),
            last: LastPackets::new(begin.first),
            idle: IdleTimes::default(),
            stamps: DataStamps::default(),
            ways: [OneWayDelay::default(), OneWayDelay::default()],
            missing: MissingBefore::default(),
            lost_flight,
        }
    }

    /// Whether there are full segments, and none was acknowledged.
    pub(crate) fn only_smaller_passed(&self) -> bool {
        self.segment.only_smaller_passed(self.board.una)
    }

    /// Whether this ACK number covers all data captured.
    pub(crate) fn is_wholly_acked_by(&self, ack: SeqNum) -> bool {
        self.numbers.offset(ack, self.board.una) >= self.board.nxt
    }

    /// Time at which an ACK of all data captured so far passed the capture point; `None` if none did.
    pub(crate) fn all_acked_here(&self) -> Option<Instant> {
        (self.acks.acked >= self.board.nxt).then_some(self.acks.acked_at)
    }

    /// Whether duplicate ACKs of its data show that SACK is not in use.
    pub(crate) const fn is_repaired_without_sack(&self) -> bool {
        self.acks.duplicates.are_without_sack()
    }

    /// Time of the last ACK, not delayed, of data of this host that passed the capture point.
    pub(crate) const fn prompt_ack_here(&self) -> Instant {
        self.acks.prompt_at
    }

    /// Whether this host sent packets before the last one that the capture does not have: its numbers of packets show
    /// it, or its timer sent the last one.
    pub(crate) fn is_preceded_by_missing(&self) -> bool {
        self.missing.has_packets() || self.lost_flight.is_of_timer(self.last.frame)
    }

    /// Time at which the sender received the ACK of all its data; `None` if some are outstanding.
    pub(crate) const fn all_acked(&self) -> Option<Instant> {
        self.idle.all_acked_at
    }

    /// Data packets that were captured.
    pub(crate) const fn packets(&self) -> u64 {
        self.counters.sent.new + self.counters.sent.retransmitted
    }

    /// Entries of its logs.
    pub(crate) fn entries(&self) -> usize {
        self.rounds.log.done.len() + self.recovery.episodes.len()
    }

    /// Whether packets may be lost on the way to the capture point.
    fn is_behind_losses(&self) -> bool {
        matches!(self.begin.point, CapturePoint::Receiver | CapturePoint::Middle)
    }

    /// Whether the capture was taken at the receiver.
    fn is_at_receiver(&self) -> bool {
        self.begin.point == CapturePoint::Receiver
    }

    /// Accounts for the time until `until`.
    fn spend(&mut self, what: TimeUse, until: Instant) {
        self.rounds.spend(what, until);
    }

    /// Records an event at the sender, with all data before `una` acknowledged.
    fn record(&mut self, at: Instant, what: SenderEventKind, una: Offset, news: AckSummary) {
        let relative = |offset: Offset| Offset(offset.since(self.numbers.start).get() + 1);
        self.events.push(SenderEvent {
            at,
            what,
            una: relative(una),
            nxt: relative(self.board.nxt),
            acked: news.acked,
            delivered: news.delivered,
            late: news.late,
            rtt: news.rtt,
            window: self.window.size,
            flight: self.board.flight(),
            retransmitted: 0,
        });
    }

    /// Begins the stream anew at `seq`, the next byte: the numbers in between were never sent.
    fn resynchronise(&mut self, seq: SeqNum) {
        let nxt = self.board.nxt;
        self.numbers.renumber(seq, nxt);
        self.board.restart();
        self.rounds.begin_at(nxt);
        self.acks.acked = nxt;
    }

    /// Whether data at `start` cannot belong to this stream as it was: far from all that was sent and
    /// advertised.
    fn is_jump(&self, start: Offset) -> bool {
        self.board.is_jump(start, numbering::MAX_JUMP.max(self.window.max().saturating_mul(2)))
    }

    /// Counts `bytes` that the receiver has for the first time.
    fn on_delivered(&mut self, at: Instant, bytes: u64) {
        let rtt = self.rtt.min.unwrap_or_default();
        self.deliveries.add(at, bytes, self.segment.mss, rtt);
        self.rounds.log.now.delivered += bytes;
    }

    /// Adds the bytes of a probe that the receiver has accepted to the stream.
    fn accept_probe(&mut self, offset: Offset) {
        if let Some(accepted) = self.window.accepted_probe(offset, self.board.nxt) {
            self.bytes.captured += accepted - self.board.nxt;
            self.board.nxt = accepted;
            self.progress.begin();
        }
    }

    /// Ends the analysis at `at`, the end of the capture.
    pub(crate) fn finish(&mut self, at: Instant) {
        while let Some(ack) = self.acks.pending.pop_front() {
            let when = (ack.at + self.rtt.recent_rtt_to_sender()).min(at).max(self.rounds.since());
            self.on_ack_received(when, &ack);
        }
        if let Some(all_acked_at) = self.idle.all_acked_at {
            self.spend_closed_window(at);
            self.spend(TimeUse::Window, all_acked_at);
            self.spend(TimeUse::Idle, at);
        } else {
            self.spend(self.use_in_flight(), at);
        }
        self.recovery.finish(at);
    }
    /// The rounds that ended after `since`, up to `at`, the time of the last packet. ACKs that have not reached the sender
    /// change nothing yet.
    pub(crate) fn rounds_since(&self, since: Instant, at: Instant) -> RoundLog {
        let mut rounds = self.rounds.since_round(since);
        if let Some(all_acked_at) = self.idle.all_acked_at {
            let closure = self.window.clone().end_closure(at);
            if let Some(closure) = closure.filter(|&one| self.waited_for_reader(one, at)) {
                rounds.spend(TimeUse::Reader, closure.until);
            }
            rounds.spend(TimeUse::Window, all_acked_at);
            rounds.spend(TimeUse::Idle, at);
        } else {
            rounds.spend(self.use_in_flight(), at);
        }
        rounds.log
    }

    /// What the time is spent on while data are outstanding.
    fn use_in_flight(&self) -> TimeUse {
        let in_flight = if self.progress.has_begun() { TimeUse::Window } else { TimeUse::Idle };
        self.recovery.time_use().unwrap_or(in_flight)
    }
}
