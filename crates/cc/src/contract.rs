//! The interface of a congestion controller: its events and its output.
//!
//! The hooks are those of FreeBSD's `struct cc_algo` (cc.h) combined with the bookkeeping that
//! tcp_input.c does around them (cc_ack_received, cc_cong_signal, cc_post_recovery), so a
//! controller is self-contained: it holds the window, the threshold, the recovery flags and the
//! undo state. Linux's `struct tcp_congestion_ops` fits the same hooks.

use core::fmt::Debug;

use units::{Bytes, Duration, Instant, Offset, Rate};

/// The smoothed RTT of the stack's own estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmoothedRtt {
    /// In whole ticks of the kernel's clock, rounded down.
    pub ticks: u32,
    /// In whole microseconds (`tcp_get_srtt` of FreeBSD, `srtt_us >> 3` of Linux).
    pub micros: u32,
    /// Number of samples (`t_rttupdated`).
    pub samples: u32,
}

/// The connection is established; the first event of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionStart {
    /// Current time.
    pub now: Instant,
    /// The kernel's tick counter (`ticks`, `jiffies`).
    pub ticks: u64,
    /// The same when the control block was made: at the SYN of the active side, now on the passive one
    /// (FreeBSD calls `cb_init` from tcp_newtcpcb).
    pub created_ticks: u64,
    /// Oldest byte not yet acknowledged, the first one under congestion control.
    pub una: Offset,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u32,
    /// Payload bytes of a full segment before options are deducted (FreeBSD `t_maxseg`).
    pub maxseg: u32,
    /// Window scale of the peer (`snd_scale`), at most 14.
    pub snd_scale: u8,
    /// True if the SYN (or SYN-ACK) was retransmitted.
    pub syn_retransmitted: bool,
    /// RTT of the handshake, if measured.
    pub rtt: Option<Duration>,
    /// Threshold cached from earlier connections (FreeBSD's host cache); usually `None`.
    pub ssthresh: Option<Bytes>,
}

/// An acknowledgment advanced `snd_una`. Also sent in recovery, for the byte counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckEvent {
    /// Arrival time of the segment.
    pub now: Instant,
    /// The kernel's tick counter at that time.
    pub ticks: u64,
    /// Its RTT sample, in the granularity of the stack; `None` if there is none.
    pub rtt: Option<Duration>,
    /// The smoothed RTT, that sample included.
    pub srtt: SmoothedRtt,
    /// Next byte to be sent (`snd_nxt`): the round that starts now ends when this is acknowledged.
    pub snd_nxt: Offset,
    /// New `snd_una` (`th_ack`).
    pub una: Offset,
    /// Bytes by which it advances `snd_una`.
    pub bytes: u64,
    /// Packets newly delivered, acknowledged or SACKed, each counted once, as in Linux.
    pub packets: u32,
    /// ACKs that the host's own LRO merged into it, where it counts them (`lro_nsegs`); at least 1.
    pub nsegs: u32,
    /// It ended a recovery ([`RecoveryEnd`] came before it). FreeBSD's base stack is still in
    /// recovery while it processes this acknowledgment (EXIT_RECOVERY follows cc_ack_received in
    /// tcp_do_segment), so its controllers do not grow the window.
    pub ends_recovery: bool,
    /// True while old data is retransmitted from `snd_una` (`snd_nxt != snd_max`), as after a
    /// timeout.
    pub retransmitting: bool,
    /// Receive window of the peer, in bytes.
    pub snd_wnd: u64,
    /// True if the window limited the last flight (Linux `is_cwnd_limited`).
    pub window_limited: bool,
    /// Largest flight of the current window, in packets (Linux `max_packets_out`).
    pub max_packets_out: u32,
}

/// A congestion signal, or the notice that an earlier one was spurious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Loss detected by duplicate ACKs or SACK (`CC_NDUPACK`).
    Loss,
    /// An ECN echo (`CC_ECN`).
    Ecn,
    /// The retransmission timer fired for the `shift`-th time in a row, from 1 (`CC_RTO`).
    Timeout {
        /// `t_rxtshift`, already incremented.
        shift: u32,
    },
    /// The last timeout was spurious: undo it (`CC_RTO_ERR`).
    SpuriousTimeout,
    /// The fast recovery was spurious: undo it (Linux, tcp_undo_cwnd_reduction). FreeBSD's
    /// controllers ignore it.
    SpuriousRecovery,
    /// A router has dropped what is too large for the path: what was lost is retransmitted, and the
    /// window stays (Linux, tcp_non_congestion_loss_retransmit). FreeBSD's controllers ignore it.
    PathMtu,
}

/// A [`CongestionSignal`] with the stack's state at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionEvent {
    /// Time of detection.
    pub now: Instant,
    /// The kernel's tick counter.
    pub ticks: u64,
    /// The signal.
    pub signal: CongestionSignal,
    /// Acknowledgment number of the segment that carried it; `snd_una` at a timeout.
    pub th_ack: Offset,
    /// End of all data ever sent.
    pub snd_max: Offset,
    /// Bytes in flight by the stack's count (`tcp_compute_pipe`).
    pub pipe: u64,
    /// Receive window of the peer, in bytes.
    pub snd_wnd: u64,
    /// Packets marked lost in total (`tp->lost`), where the stack counts them.
    pub lost: u64,
}

/// A fast recovery ended: all data in flight at its start was acknowledged (`cc_post_recovery`).
///
/// Both systems then report the same acknowledgment as [`AckEvent`], which on Linux may already
/// grow the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryEnd {
    /// Acknowledgment number that ended the recovery.
    pub th_ack: Offset,
    /// Bytes in flight by the stack's count (`tcp_compute_pipe`).
    pub pipe: u64,
}

/// Data is to be sent after nothing was in flight for longer than a retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleEvent {
    /// The kernel's tick counter.
    pub ticks: u64,
    /// Time since the last segment was sent.
    pub idle: Duration,
    /// Current retransmission timeout.
    pub rto: Duration,
}

/// One RTT sample for HyStart++ in FreeBSD's RACK stack (`rttsample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttSample {
    /// The sample.
    pub rtt: Duration,
    /// Number of transmissions of the segment.
    pub transmissions: u32,
    /// Bytes in flight when it was sent.
    pub flight: u64,
}

/// An RTT sample by send times, of the newest packet that an acknowledgment covered or SACKed, as
/// Linux passes it to its controllers (`struct ack_sample`). It precedes the [`AckEvent`] of the
/// same segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSample {
    /// Arrival time of the segment.
    pub now: Instant,
    /// The kernel's tick counter at that time.
    pub ticks: u64,
    /// The sample.
    pub rtt: Duration,
    /// `snd_una` after the segment.
    pub una: Offset,
    /// First byte not yet sent.
    pub snd_nxt: Offset,
    /// In slow start the stack's pacing rate, in bytes per second (`sk_pacing_rate`); 0 while
    /// unknown.
    pub pacing_rate: u64,
}

/// The delivery rate since the newest packet that an acknowledgment covered or SACKed was sent
/// (tcp_rate.c of Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Packets delivered in the interval.
    pub delivered: u32,
    /// Interval in microseconds: the longer of the send interval and the ACK interval.
    pub interval_us: u32,
    /// Packets delivered in total when that packet was sent.
    pub prior_delivered: u64,
    /// The sender was application-limited when that packet was sent.
    pub app_limited: bool,
}

/// A rate sample per acknowledgment, as Linux passes it to controllers that set window and rate
/// themselves (`cong_control`, `struct rate_sample`). Counted in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// The kernel's tick counter.
    pub ticks: u64,
    /// The delivery rate; `None` if nothing was delivered, or the interval is shorter than the
    /// minimum RTT.
    pub rate: Option<DeliveryRate>,
    /// Packets newly acknowledged or SACKed.
    pub acked: u32,
    /// Packets newly marked lost.
    pub losses: u32,
    /// Packets delivered, the SYN included, and lost in total (`tp->delivered`, `tp->lost`).
    pub delivered: u64,
    /// See `delivered`.
    pub lost: u64,
    /// Time of the last delivery (`tp->delivered_mstamp`).
    pub delivered_at: Instant,
    /// That time by the host's clock, in nanoseconds.
    pub delivered_clock: u64,
    /// RTT of the newest packet sent once, in microseconds; `None` without a sample.
    pub rtt_us: Option<u32>,
    /// True if it may be a delayed ACK: it acknowledges a single packet.
    pub ack_delayed: bool,
    /// The smoothed RTT in microseconds; 0 before the first sample.
    pub srtt_us: u32,
    /// Packets in flight before and after it.
    pub prior_in_flight: u32,
    /// See `prior_in_flight`.
    pub in_flight: u32,
    /// Time until pacing releases the next packet.
    pub until_next_departure: Duration,
    /// What controllers need that bound their flight by losses and marks.
    pub signals: PathSignals,
}

/// What a rate sample says about losses and CE marks, for controllers that bound their flight by them
/// ([`RateController::needs_tx_state`]). Counted in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSignals {
    /// Time of the acknowledgment (`tp->tcp_mstamp`).
    pub now: Instant,
    /// The newest packet that it delivered; all zero without one.
    pub tx: TxSample,
    /// It acknowledges a tail loss probe that repeated data, or the original
    /// (`rs->is_acking_tlp_retrans_seq`).
    pub acks_probe: bool,
    /// It echoes congestion (`rs->is_ece`).
    pub ece: bool,
    /// The window limits the flight (`tp->is_cwnd_limited`).
    pub window_limited: bool,
    /// Packets delivered with an echo in total (`tp->delivered_ce`).
    pub delivered_ce: u64,
}

impl PathSignals {
    /// For controllers that do not use them.
    pub const NONE: Self = Self {
        now: Instant::ZERO,
        tx: TxSample { in_flight: 0, lost: 0, delivered: 0, delivered_ce: 0, app_limited: false },
        acks_probe: false,
        ece: false,
        window_limited: false,
        delivered_ce: 0,
    };
}

/// The interval since the newest packet that an acknowledgment delivered was sent, also where it is too short for a
/// delivery rate (`struct rate_sample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxSample {
    /// Packets in flight when it was sent, itself included (`tx_in_flight`).
    pub in_flight: u32,
    /// Packets lost since.
    pub lost: u32,
    /// Packets delivered since.
    pub delivered: u32,
    /// Packets delivered since with an echo of congestion.
    pub delivered_ce: u32,
    /// The sender was application-limited when it was sent.
    pub app_limited: bool,
}

/// A packet of the retransmission queue, of one or several segments, was marked lost (`skb_marked_lost`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostSegment {
    /// Time of detection.
    pub now: Instant,
    /// Its segments (`tcp_skb_pcount`).
    pub packets: u32,
    /// Packets in flight when it was last sent, itself included.
    pub in_flight: u32,
    /// Packets lost since then, itself included.
    pub lost_since: u32,
    /// The sender was application-limited when it was sent.
    pub app_limited: bool,
    /// It was SACKed before, and the receiver has dropped it since.
    pub sacked_before: bool,
    /// Packets delivered in total.
    pub delivered: u64,
}

/// The output of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Control {
    /// Congestion window.
    pub window: Bytes,
    /// Slow-start threshold; `None` while unset.
    pub ssthresh: Option<Bytes>,
    /// Pacing rate; `None` if the controller does not pace.
    pub pacing: Option<Rate>,
}

/// The rule by which a window grew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Slow start.
    SlowStart,
    /// Congestion avoidance.
    Avoidance,
}

/// The change of state that an event caused.
#[must_use = "the reason of a change is to be recorded"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowChange {
    /// No change of window, threshold or recovery.
    None,
    /// The window grew.
    Grew(Growth),
    /// Window or threshold was reduced without a recovery (after idle).
    Shrank,
    /// Slow start ended by its own criterion (HyStart++); the window is kept or set.
    SlowStartEnded,
    /// A timeout: the window is one segment.
    Collapsed,
    /// A timeout was undone.
    Undone,
    /// A fast recovery or an ECN reduction began; the threshold is reduced.
    RecoveryBegan,
    /// Recovery ended; the window is set for the time after it.
    RecoveryEnded,
}

/// Inputs that cost the stack something: it provides them only to controllers that use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct ControllerInputs {
    /// RTT samples ([`WindowController::on_ack_sample`]).
    pub ack_samples: bool,
    /// The smoothed round trip ([`AckEvent::srtt`]).
    pub srtt: bool,
    /// What the stack owns, before each event ([`crate::AnyController::view`]).
    pub view: bool,
}

impl ControllerInputs {
    /// Neither samples nor round trips.
    pub const NONE: Self = Self { ack_samples: false, srtt: false, view: false };
    /// The smoothed round trip.
    pub const SRTT: Self = Self { srtt: true, ..Self::NONE };
    /// RTT samples.
    pub const ACK_SAMPLES: Self = Self { ack_samples: true, ..Self::NONE };
}

/// A controller that declares its inputs, as [`crate::AnyController`] requires.
pub trait DeclaredInputs {
    /// The inputs that it uses; others never come.
    const INPUTS: ControllerInputs;
}

/// What every congestion controller has. A controller is also a [`WindowController`] or a
/// [`RateController`].
pub trait Controller: Clone + Debug {
    /// Initializes the window; the state before it is meaningless.
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange;

    /// Processes an acknowledgment and grows the window where the rules allow it.
    fn on_acked(&mut self, event: &AckEvent) -> WindowChange;

    /// Processes a congestion signal.
    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange;

    /// Sets the window after a fast recovery and leaves recovery.
    fn on_recovered(&mut self, event: &RecoveryEnd) -> WindowChange;

    /// Restarts after idle.
    fn on_idle(&mut self, event: &IdleEvent) -> WindowChange;

    /// The segment size decreased: payload of a full segment with options deducted (`mss`) and
    /// before (`maxseg`).
    fn on_mss(&mut self, mss: u32, maxseg: u32);

    /// The current output.
    fn control(&self) -> Control;

    /// Sets the window while a rule of the stack controls it: PRR, the inflation of RFC 6582,
    /// limited transmit.
    fn set_window(&mut self, window: Bytes);

    /// Leaves recovery with window and threshold unchanged (FreeBSD's EXIT_RECOVERY without
    /// cc_post_recovery: a retransmission was lost, or the recovery was spurious).
    fn leave_recovery(&mut self);

    /// Sets the threshold, where a stack restores it itself (FreeBSD's RACK).
    fn set_threshold(&mut self, ssthresh: Option<Bytes>);

    /// True during a fast recovery, not during a mere ECN reduction.
    fn in_recovery(&self) -> bool;

    /// True in slow start, by the algorithm's own comparison with the threshold.
    fn in_slow_start(&self) -> bool;

    /// Recovery ends once `snd_una` reaches this offset (`snd_recover`, Linux `high_seq`).
    fn recovery_point(&self) -> Offset;

    /// True if it ignores an acknowledgment because the window does not limit the flight
    /// ([`AckEvent::window_limited`], [`AckEvent::max_packets_out`]). Linux's controllers then need no
    /// call.
    #[inline(always)]
    fn ignores_ack(&self, window_limited: bool, max_packets_out: u32) -> bool {
        let _ = (window_limited, max_packets_out);
        false
    }

    /// Bytes counted towards the next segment of growth by FreeBSD's controllers; `None` for others.
    fn t_bytes_acked(&self) -> Option<u32> {
        None
    }
}

/// A controller whose window follows acknowledgments and losses. The stack paces by the window, and its
/// rules may change the window in a recovery. Most controllers ignore these events.
pub trait WindowController: Controller {
    /// The window with which the stack's output routine last sent (`cwnd_to_use` of FreeBSD's RACK
    /// stack), by which that stack counts acknowledged bytes.
    fn on_window_used(&mut self, window: Bytes) {
        let _ = window;
    }

    /// A duplicate ACK (cc_ack_received of FreeBSD's base stack with `CC_DUPACK`). Most controllers
    /// ignore it.
    fn on_duplicate(&mut self, event: &AckEvent) {
        let _ = event;
    }

    /// A HyStart++ round began. Called only by stacks that drive HyStart++.
    fn on_round(&mut self, round: u32) -> WindowChange {
        let _ = round;
        WindowChange::None
    }

    /// An RTT sample for HyStart++. Called only by stacks that drive it.
    fn on_rtt_sample(&mut self, sample: &RttSample) -> WindowChange {
        let _ = sample;
        WindowChange::None
    }

    /// An RTT sample. Called only by Linux's stack.
    fn on_ack_sample(&mut self, sample: &AckSample) -> WindowChange {
        let _ = sample;
        WindowChange::None
    }

    /// Data is sent at tick `ticks` with nothing in flight; the last transmission was at
    /// `last_sent`.
    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        let _ = (ticks, last_sent);
    }
}

/// A controller that sets window and pacing rate from delivery rates, also in recovery
/// (`cong_control` of Linux): the rules of the stack do not change them.
pub trait RateController: Controller {
    /// An acknowledgment was processed.
    fn on_rate_sample(&mut self, sample: &RateSample) -> WindowChange;

    /// Data is sent with nothing in flight (`CA_EVENT_TX_START`). `app_limited`: the sender was
    /// application-limited (`tp->app_limited`).
    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool);

    /// A packet was marked lost. Only reported if [`RateController::needs_tx_state`].
    fn on_segment_lost(&mut self, lost: &LostSegment) {
        let _ = lost;
    }

    /// A tail loss probe repaired the loss of a packet, which was sent while the sender was application-limited or not
    /// (`CA_EVENT_TLP_RECOVERY`); `delivered` packets in total. Only reported if [`RateController::needs_tx_state`].
    fn on_probe_repaired(&mut self, now: Instant, delivered: u64, app_limited: bool) {
        let _ = (now, delivered, app_limited);
    }

    /// Does it use [`RateSample::signals`], [`LostSegment`] and what comes with them in kernels that have such a
    /// controller?
    fn needs_tx_state(&self) -> bool {
        false
    }

    /// Packets of a burst where it sets them itself (`tso_segs`); a socket's bursts have `gso_max_size` bytes at most.
    fn burst(&self, gso_max_size: u64) -> Option<u32> {
        let _ = gso_max_size;
        None
    }

    /// Did the last acknowledgment come while it sends little on purpose? What it sends then counts as
    /// application-limited (`bbr_update_min_rtt`).
    fn sends_little(&self) -> bool;

    /// Minimum burst in packets (`min_tso_segs`).
    fn min_burst(&self) -> u32;

    /// Size of Linux's send buffer in windows (`sndbuf_expand`).
    fn windows_buffered(&self) -> u64;
}
