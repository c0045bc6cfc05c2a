//! What a controller is told, and what it answers.
//!
//! The verbs are those of FreeBSD's `struct cc_algo` (cc.h) joined with the bookkeeping that
//! tcp_input.c does around them (cc_ack_received, cc_cong_signal, cc_post_recovery), so that a
//! controller is whole: it holds the window, the threshold, the recovery flags and what an undo
//! needs. Linux's `struct tcp_congestion_ops` fits the same verbs.

use core::fmt::Debug;

use units::{Bytes, Duration, Instant, Offset, Rate};

/// The smoothed round trip, as the stack's own estimator has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Smoothed {
    /// In whole ticks of the kernel's clock, rounded down.
    pub ticks: u32,
    /// In whole microseconds (`tcp_get_srtt` of FreeBSD, `srtt_us >> 3` of Linux).
    pub micros: u32,
    /// Samples taken in so far (`t_rttupdated`).
    pub samples: u32,
}

/// The connection is established; sent once, before all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Established {
    /// When it was.
    pub now: Instant,
    /// The kernel's tick counter (`ticks`, `jiffies`).
    pub ticks: u64,
    /// Oldest byte not yet acknowledged, the first one the controller governs.
    pub una: Offset,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u32,
    /// Payload bytes of a full segment before options are deducted (FreeBSD `t_maxseg`).
    pub maxseg: u32,
    /// Shift of the windows the peer announces (`snd_scale`), at most 14.
    pub snd_scale: u8,
    /// Was our SYN (or SYN-ACK) sent more than once?
    pub syn_retransmitted: bool,
    /// The round trip of the handshake, if it was measured.
    pub rtt: Option<Duration>,
    /// Threshold remembered from earlier connections (FreeBSD's host cache); usually `None`.
    pub ssthresh: Option<Bytes>,
}

/// An acknowledgment moved `snd_una`. Sent in recovery too, for the counters it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// When the segment arrived.
    pub now: Instant,
    /// The kernel's tick counter then.
    pub ticks: u64,
    /// The round trip that it brought, in the granularity of the stack; `None` if none.
    pub rtt: Option<Duration>,
    /// The smoothed one, that sample included.
    pub srtt: Smoothed,
    /// Next byte to be sent (`snd_nxt`): the round that begins ends when this is acknowledged.
    pub snd_nxt: Offset,
    /// New `snd_una` (`th_ack`).
    pub una: Offset,
    /// Bytes by which it advances `snd_una`.
    pub bytes: u64,
    /// Packets newly delivered, acknowledged or SACKed, each once: what Linux counts.
    pub packets: u32,
    /// ACKs the host's own LRO made one of, where it counts them (`lro_nsegs`); at least 1.
    pub nsegs: u32,
    /// It has just ended a recovery ([`Recovered`] came before it). FreeBSD's base stack still holds
    /// itself to be in it while it counts this acknowledgment (EXIT_RECOVERY comes behind
    /// cc_ack_received in tcp_do_segment), so that its controllers do not grow.
    pub ends_recovery: bool,
    /// Is old data being sent again from `snd_una` on (`snd_nxt != snd_max`)? So after a timeout.
    pub resending: bool,
    /// Window the peer offers, in bytes.
    pub snd_wnd: u64,
    /// Did the window hold the sender back in the last flight (Linux `is_cwnd_limited`)?
    pub window_limited: bool,
    /// Largest flight of the window in progress, in packets (Linux `max_packets_out`).
    pub max_packets_out: u32,
}

/// A sign of congestion, or that an earlier one was false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Loss taken from duplicate or selective acknowledgments (`CC_NDUPACK`).
    Loss,
    /// An ECN echo (`CC_ECN`).
    Ecn,
    /// The retransmission timer fired for the `shift`-th time in a row, from 1 (`CC_RTO`).
    Timeout {
        /// `t_rxtshift`, already counted up.
        shift: u32,
    },
    /// The last timeout proved spurious: take it back (`CC_RTO_ERR`).
    SpuriousTimeout,
    /// The fast recovery proved spurious: take it back (Linux, tcp_undo_cwnd_reduction). FreeBSD's
    /// controllers know no such thing.
    SpuriousRecovery,
}

/// A [`Signal`] with the stack's state at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congested {
    /// When it was seen.
    pub now: Instant,
    /// The kernel's tick counter.
    pub ticks: u64,
    /// What was seen.
    pub signal: Signal,
    /// Acknowledgment number of the segment that brought it; `snd_una` at a timeout.
    pub th_ack: Offset,
    /// End of what was ever sent.
    pub snd_max: Offset,
    /// Bytes the stack takes to be under way (`tcp_compute_pipe`).
    pub pipe: u64,
    /// Window the peer offers, in bytes.
    pub snd_wnd: u64,
}

/// All that was under way when a fast recovery began has been acknowledged (`cc_post_recovery`).
///
/// Both systems then report the same acknowledgment as [`Acked`], which on Linux may already grow the
/// window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Acknowledgment number that ended it.
    pub th_ack: Offset,
    /// Bytes the stack takes to be under way (`tcp_compute_pipe`).
    pub pipe: u64,
}

/// Nothing was under way for longer than a retransmission timeout, and data waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// The kernel's tick counter.
    pub ticks: u64,
    /// Time since the last segment was sent.
    pub idle: Duration,
    /// Retransmission timeout in force.
    pub rto: Duration,
}

/// One measured round trip, as FreeBSD's RACK stack tells HyStart++ (`rttsample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttSample {
    /// The sample.
    pub rtt: Duration,
    /// How often the segment had been sent.
    pub transmissions: u32,
    /// Bytes in flight when it was sent.
    pub flight: u64,
}

/// A round trip by send times, measured by the newest packet that an acknowledgment covered or
/// reported, as Linux tells its controllers (`struct ack_sample`). It comes before the [`Acked`] of
/// the same segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSample {
    /// When the segment arrived.
    pub now: Instant,
    /// The kernel's tick counter then.
    pub ticks: u64,
    /// The sample.
    pub rtt: Duration,
    /// `snd_una` as the segment leaves it.
    pub una: Offset,
    /// First byte not yet sent.
    pub snd_nxt: Offset,
    /// In slow start what the stack would pace at, in bytes per second (`sk_pacing_rate`); 0 while
    /// unknown.
    pub pacing_rate: u64,
}

/// What was delivered since the newest of the packets that an acknowledgment covers or reports had
/// left (tcp_rate.c of Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Packets delivered in that time.
    pub delivered: u32,
    /// Microseconds of it: the longer of those in which they were sent and were acknowledged.
    pub interval_us: u32,
    /// What had been delivered in all when that packet left.
    pub prior_delivered: u64,
    /// The application, not the window, held the sender back when it left.
    pub app_limited: bool,
}

/// An acknowledgment was worked off, as Linux tells controllers that set window and rate
/// themselves (`cong_control`, `struct rate_sample`). Packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// The kernel's tick counter.
    pub ticks: u64,
    /// The rate; `None` where it cannot be told: nothing was delivered, or in less time than the
    /// least round trip.
    pub rate: Option<DeliveryRate>,
    /// Packets that it newly acknowledged or reported.
    pub acked: u32,
    /// Packets newly taken for lost.
    pub losses: u32,
    /// Packets ever delivered, the SYN included, and ever lost (`tp->delivered`, `tp->lost`).
    pub delivered: u64,
    /// See `delivered`.
    pub lost: u64,
    /// When the last one was delivered (`tp->delivered_mstamp`).
    pub delivered_at: Instant,
    /// Round trip of the newest packet that left once, in microseconds; `None` if it tells none.
    pub rtt_us: Option<u32>,
    /// It may be a delayed ACK: it acknowledges a single packet.
    pub ack_delayed: bool,
    /// The smoothed round trip in microseconds; 0 before the first.
    pub srtt_us: u32,
    /// Packets under way before it and after it.
    pub prior_in_flight: u32,
    /// See `prior_in_flight`.
    pub in_flight: u32,
    /// How long pacing holds the next packet back.
    pub until_next_departure: Duration,
    /// The application holds the sender back now (`tp->app_limited`).
    pub app_limited_now: bool,
}

/// What a controller grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Control {
    /// Congestion window.
    pub window: Bytes,
    /// Slow-start threshold; `None` while unset.
    pub ssthresh: Option<Bytes>,
    /// Rate to pace at; `None` where the controller does not pace.
    pub pacing: Option<Rate>,
}

/// By which rule a window grew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Slow start.
    SlowStart,
    /// Congestion avoidance.
    Avoidance,
}

/// What an event changed, and why.
#[must_use = "the reason of a change is to be recorded"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Neither window nor threshold nor recovery.
    None,
    /// The window grew.
    Grew(Growth),
    /// Window or threshold were lowered, without a recovery (after idling).
    Shrank,
    /// Slow start ended by its own rule, the window kept or set (HyStart++).
    SlowStartEnded,
    /// A timeout: the window is down to one segment.
    Collapsed,
    /// A timeout was taken back.
    Undone,
    /// A fast recovery or an ECN episode began; the threshold is lowered.
    RecoveryBegan,
    /// It ended; the window is settled.
    RecoveryEnded,
}

/// A congestion controller.
pub trait Controller: Clone + Debug {
    /// Opens the window; everything before it is without meaning.
    fn on_established(&mut self, event: &Established) -> Change;

    /// Counts an acknowledgment and grows the window where the rules allow it.
    fn on_acked(&mut self, event: &Acked) -> Change;

    /// The window that the stack's last call of its output routine was let through with (`cwnd_to_use`
    /// of FreeBSD's RACK stack), by which that stack counts acknowledged bytes.
    fn on_window_used(&mut self, window: Bytes) {
        let _ = window;
    }

    /// A duplicate acknowledgment (cc_ack_received of FreeBSD's base stack with `CC_DUPACK`). Most make
    /// nothing of it.
    fn on_duplicate(&mut self, event: &Acked) {
        let _ = event;
    }

    /// Answers a sign of congestion.
    fn on_congested(&mut self, event: &Congested) -> Change;

    /// Settles the window after a fast recovery and leaves it.
    fn on_recovered(&mut self, event: &Recovered) -> Change;

    /// Restarts after idling.
    fn on_idle(&mut self, event: &Idle) -> Change;

    /// The path takes smaller segments than agreed: payload of a full one with options deducted
    /// (`mss`) and before (`maxseg`).
    fn on_mss(&mut self, mss: u32, maxseg: u32);

    /// A round of HyStart++ began. Only stacks that drive HyStart++ call it.
    fn on_round(&mut self, round: u32) -> Change {
        let _ = round;
        Change::None
    }

    /// A round trip was measured for HyStart++. Only stacks that drive it call it.
    fn on_rtt_sample(&mut self, sample: &RttSample) -> Change {
        let _ = sample;
        Change::None
    }

    /// A round trip was measured. Only Linux's stack calls it.
    fn on_ack_sample(&mut self, sample: &AckSample) -> Change {
        let _ = sample;
        Change::None
    }

    /// Data leaves at tick `ticks` while nothing is under way; the last had left at tick `last_sent`.
    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        let _ = (ticks, last_sent);
    }

    /// An acknowledgment was worked off. Only Linux's stack calls it, and only of controllers that
    /// are whole ([`Controller::is_whole`]).
    fn on_rate_sample(&mut self, sample: &RateSample) -> Change {
        let _ = sample;
        Change::None
    }

    /// Data leaves while nothing is under way (`CA_EVENT_TX_START`), for controllers that are
    /// whole. `app_limited`: the application held the sender back (`tp->app_limited`).
    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        let _ = (now, ticks, app_limited);
    }

    /// Packets of a burst at least, where the controller has a say in that (`min_tso_segs`).
    fn min_burst(&self) -> Option<u32> {
        None
    }

    /// Windows that Linux's send buffer is to hold (`sndbuf_expand`).
    fn windows_buffered(&self) -> u64 {
        2
    }

    /// Does it set window and pacing rate itself, recoveries included, from delivery rates? Then
    /// no rule of the stack may.
    fn is_whole(&self) -> bool {
        false
    }

    /// What it grants now.
    fn control(&self) -> Control;

    /// Overrules the window while the stack's own rule holds it: PRR, the inflation of RFC 6582,
    /// limited transmit.
    fn set_window(&mut self, window: Bytes);

    /// Leaves a recovery, the window and the threshold as they are (FreeBSD's EXIT_RECOVERY
    /// without cc_post_recovery: a retransmission was lost, or the recovery was needless).
    fn leave_recovery(&mut self);

    /// Overrules the threshold, where a stack restores it itself (FreeBSD's RACK).
    fn set_threshold(&mut self, ssthresh: Option<Bytes>);

    /// Does a fast recovery run? An ECN episode alone is none.
    fn in_recovery(&self) -> bool;

    /// Is the window in slow start, by the algorithm's own comparison with the threshold?
    fn in_slow_start(&self) -> bool;

    /// The recovery ends once `snd_una` reaches this place (`snd_recover`, Linux `high_seq`).
    fn recovery_point(&self) -> Offset;
}
