//! What a connection knows: what the handshake settled, the sending half, the receiving half
//! (the send and receive sequence variables of RFC 9293 section 3.3.1, and what each system adds).

use record::{Cause, Waiting};
use recovery::apart::{Apart, Beginning};
use recovery::sendmap::SendMap;
use units::{Duration, Instant, Offset, SeqNum};

use crate::ack_policy::AckPolicy;
use crate::endpoint::Config;
use crate::loss::Repair;
use crate::output::Train;
use crate::output::packets::Pacing;
use crate::probes::Probe;
use crate::rates::Rates;
use crate::reassembly::Reassembly;
use crate::receive_window::ReceiveWindow;
use crate::sack_compression::Compressed;
use crate::sack_report::SackReport;
use crate::send_buffer::SendBuffer;

/// What the handshake settled.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(crate) struct Agreed {
    /// Payload of a full segment without options (`t_maxseg`).
    pub(crate) maxseg: u32,
    /// Payload of a full segment, options deducted.
    pub(crate) mss: u32,
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// Shift of the windows the peer announces, if scaling is on.
    pub(crate) snd_scale: Option<u8>,
}

/// The sending half.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Send {
    pub(crate) una: Offset,
    pub(crate) nxt: Offset,
    pub(crate) max: Offset,
    pub(crate) wnd: u64,
    pub(crate) max_wnd: u64,
    /// Sequence and acknowledgment number of the last window update (RFC 9293 3.10.7.4).
    pub(crate) wl1: Offset,
    pub(crate) wl2: Offset,
    pub(crate) buffer: SendBuffer,
    /// The application has closed: a FIN follows the last byte.
    pub(crate) fin: bool,
    /// What is under way, packet by packet.
    pub(crate) map: SendMap,
    /// How losses are found and repaired.
    pub(crate) repair: Repair,
    /// Timeouts in a row (`t_rxtshift`).
    pub(crate) shift: u32,
    pub(crate) dup_acks: u32,
    /// Segments that limited transmit lets go beyond the window; to FreeBSD those that went
    /// (`snd_limited`).
    pub(crate) limited: u32,
    /// One segment from `una` on is to go again, for this reason.
    pub(crate) again: Option<Cause>,
    /// Why what lies between `nxt` and `max` goes again.
    pub(crate) resend_cause: Cause,
    /// `max` when the window was lowered for an ECN echo, until something beyond it is
    /// acknowledged.
    pub(crate) ecn_episode: Option<Offset>,
    /// The window is closed and being probed.
    pub(crate) persisting: bool,
    pub(crate) probe: Option<Probe>,
    pub(crate) asked: Apart<Asked>,
    /// Byte being timed and when it left, where timestamps are off.
    pub(crate) timed: Option<(Offset, Instant)>,
    /// The round trip that the acknowledgment at hand has brought, and how many there were.
    pub(crate) rtt_sample: Option<Duration>,
    pub(crate) rtt_samples: u32,
    /// Timestamp clock at the first timeout: an older echo proves it spurious.
    pub(crate) timeout_stamp: Option<u32>,
    /// When anything but a bare ACK last left, and last arrived.
    pub(crate) last_sent: Instant,
    pub(crate) last_heard: Instant,
    /// When something was last retransmitted, as the map of what is in flight has it.
    pub(crate) resent_at: Instant,
    /// Linux: `is_cwnd_limited`, `max_packets_out` and the end of the window they stand for.
    pub(crate) window_limited: bool,
    pub(crate) max_packets_out: u64,
    pub(crate) usage_end: Offset,
    /// Linux: the rate that it would pace at.
    pub(crate) pacing: Pacing,
    /// Linux: delivery rates and pacing, where the controller wants them.
    pub(crate) rates: Option<Box<Rates>>,
    /// Linux: once all is sent that may go, a sleeping writer may be woken.
    pub(crate) check_space: bool,
    /// What may follow the last packet, for which nothing needs to be asked again.
    pub(crate) train: Train,
    /// The stack has been asked to send; `fresh` until its first pass.
    pub(crate) due: bool,
    pub(crate) fresh: bool,
    /// Nothing was under way when it was asked.
    pub(crate) idle: bool,
    /// Behind the last partial segment sent (Linux `snd_sml`).
    pub(crate) small_end: Offset,
    /// Linux: end of the packet at the head of what was not sent yet, as its write queue has it.
    pub(crate) head_end: Offset,
    /// `nxt` when it was asked.
    pub(crate) asked_at: Offset,
    pub(crate) waiting: Waiting,
}

/// The receiving half.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Receive {
    pub(crate) irs: SeqNum,
    pub(crate) nxt: Offset,
    /// Right edge of the window last offered.
    pub(crate) adv: Offset,
    /// `nxt` as last acknowledged.
    pub(crate) acked: Offset,
    pub(crate) window: ReceiveWindow,
    pub(crate) reassembly: Reassembly,
    /// What has arrived twice, to be told with the next ACK (RFC 2883).
    pub(crate) duplicate: Apart<Twice>,
    /// FreeBSD: the blocks to be reported, once there were any.
    pub(crate) report: Option<Box<SackReport>>,
    pub(crate) policy: AckPolicy,
    /// Linux: ACKs that wait for more.
    pub(crate) compressed: Compressed,
    /// Place of the peer's FIN, once seen.
    pub(crate) fin: Option<Offset>,
    /// The last in-order data came with PSH.
    pub(crate) pushed: bool,
    pub(crate) ack_now: bool,
    /// FreeBSD: an ACK is to be delayed and its timer not yet set (`TF_DELACK`).
    pub(crate) delays_ack: bool,
    pub(crate) ts_recent: u32,
    pub(crate) ts_recent_at: Instant,
    pub(crate) last_window_zero: bool,
}

/// What has arrived twice.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Twice(pub(crate) Option<(Offset, Offset)>);

/// Nothing has.
static NOT_TWICE: Twice = Twice(None);

impl Beginning for Twice {
    fn beginning() -> &'static Self {
        &NOT_TWICE
    }
}

/// What the peer was asked.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Asked {
    /// Window probes in a row, those of them since the peer was last heard of, and when the last went.
    pub(crate) probes: u32,
    pub(crate) unheard_probes: u32,
    pub(crate) probed_at: Instant,
    /// Keepalive probes in a row without an answer.
    pub(crate) unanswered: u32,
}

/// Nothing.
static NOTHING: Asked =
    Asked { probes: 0, unheard_probes: 0, probed_at: Instant::ZERO, unanswered: 0 };

impl Beginning for Asked {
    fn beginning() -> &'static Self {
        &NOTHING
    }
}

impl Send {
    pub(crate) fn new(cfg: &Config) -> Self {
        Self {
            una: Offset(0),
            nxt: Offset(0),
            max: Offset(0),
            wnd: 0,
            max_wnd: 0,
            wl1: Offset(0),
            wl2: Offset(0),
            buffer: SendBuffer::new(&cfg.profile),
            fin: false,
            map: SendMap::new(),
            repair: Repair::Duplicates,
            shift: 0,
            dup_acks: 0,
            limited: 0,
            again: None,
            resend_cause: Cause::Timeout,
            ecn_episode: None,
            persisting: false,
            probe: None,
            asked: Apart::default(),
            timed: None,
            rtt_sample: None,
            rtt_samples: 0,
            timeout_stamp: None,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            resent_at: Instant::ZERO,
            window_limited: false,
            max_packets_out: 0,
            usage_end: Offset(0),
            pacing: Pacing::default(),
            rates: None,
            check_space: false,
            train: Train::NONE,
            due: false,
            fresh: false,
            idle: false,
            small_end: Offset(0),
            head_end: Offset(0),
            asked_at: Offset(0),
            waiting: Waiting::Handshake,
        }
    }
}

impl Receive {
    pub(crate) fn new(window: ReceiveWindow, policy: AckPolicy) -> Self {
        Self {
            irs: SeqNum(0),
            nxt: Offset(0),
            adv: Offset(0),
            acked: Offset(0),
            window,
            reassembly: Reassembly::default(),
            duplicate: Apart::default(),
            report: None,
            policy,
            compressed: Compressed::default(),
            fin: None,
            pushed: false,
            ack_now: false,
            delays_ack: false,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_window_zero: false,
        }
    }
}
