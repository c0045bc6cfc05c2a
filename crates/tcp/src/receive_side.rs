//! What a connection receives (the receive sequence variables of RFC 9293 section 3.3.1, and the
//! variables that each system adds).

use recovery::lazy::{InitialValue, LazyBox};
use units::{Instant, Offset, SeqNum};

use crate::ack_policy::DelayedAckPolicy;
use crate::ecn::EcnReceiver;
use crate::reassembly::Reassembly;
use crate::receive_window::ReceiveWindow;
use crate::sack_report::SackReport;

/// What a connection receives: the data in order and out of order, the window, and when it is
/// acknowledged.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct ReceiveSide {
    pub(crate) irs: SeqNum,
    pub(crate) nxt: Offset,
    /// Right edge of the window last advertised.
    pub(crate) adv: Offset,
    /// `nxt` as last acknowledged.
    pub(crate) acked: Offset,
    pub(crate) window: ReceiveWindow,
    pub(crate) reassembly: Reassembly,
    pub(crate) ecn: EcnReceiver,
    /// Duplicate data, to be reported with the next ACK (RFC 2883).
    pub(crate) duplicate: LazyBox<DuplicateRange>,
    /// FreeBSD: the list of SACK blocks, allocated with the first one.
    pub(crate) report: Option<Box<SackReport>>,
    pub(crate) policy: DelayedAckPolicy,
    /// Linux: ACKs held back by SACK compression.
    pub(crate) compressed: CompressedAcks,
    /// Offset of the peer's FIN, once received.
    pub(crate) fin: Option<Offset>,
    pub(crate) ack_now: bool,
    /// FreeBSD: an ACK is to be delayed and its timer not yet set (`TF_DELACK`).
    pub(crate) delays_ack: bool,
    pub(crate) ts_recent: u32,
    pub(crate) ts_recent_at: Instant,
    pub(crate) last_window_zero: bool,
}

/// Linux: ACKs held back by SACK compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct CompressedAcks {
    /// Number of ACKs held back (`compressed_ack`).
    pub(crate) waiting: u32,
    /// `rcv_nxt` at the gap (`compressed_ack_rcv_nxt`), and duplicate ACKs sent at once for it
    /// (`dup_ack_counter`).
    pub(crate) place: Offset,
    pub(crate) gone: u8,
    /// When the timer of the last delayed ACK expires: it still runs after its ACK was sent, and sends what is held back
    /// then (tcp_delack_timer_handler).
    pub(crate) leftover: Option<Instant>,
}

/// Data that arrived twice.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct DuplicateRange(pub(crate) Option<(Offset, Offset)>);

static NO_DUPLICATE: DuplicateRange = DuplicateRange(None);

impl InitialValue for DuplicateRange {
    fn initial() -> &'static Self {
        &NO_DUPLICATE
    }
}

impl ReceiveSide {
    pub(crate) fn new(window: ReceiveWindow, policy: DelayedAckPolicy) -> Self {
        Self {
            irs: SeqNum(0),
            nxt: Offset(0),
            adv: Offset(0),
            acked: Offset(0),
            window,
            reassembly: Reassembly::default(),
            ecn: EcnReceiver::default(),
            duplicate: LazyBox::default(),
            report: None,
            policy,
            compressed: CompressedAcks::default(),
            fin: None,
            ack_now: false,
            delays_ack: false,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_window_zero: false,
        }
    }
}
