//! FreeBSD's RACK stack (tcp_stacks/rack.c): loss detection by transmission times, with its own
//! output calls, timers and pauses.
//!
//! An acknowledgment is processed in the steps of rack_do_segment (`acks`), each segment it covers
//! or SACKs in `delivered`. A call of rack_output begins with an expired timer (`call`,
//! `timeouts`), sends (`plan`), and ends with the entry on the wheel ([`recovery::hpts_rack`]) that
//! schedules the next call.

mod acks;
mod call;
mod delivered;
mod hystart;
mod persist;
mod plan;
mod timeouts;

use cc::hystart::HyStartMode;
use recovery::burst_rack::BurstWindow;
use recovery::dsack::SackRange;
use recovery::goodput_rack::GoodputEstimator;
use recovery::hpts_rack::Hpts;
use recovery::probe_rack::RackPto;
use recovery::prr::rack::PrrRack;
use recovery::rack_freebsd::RackFreeBsd;
use recovery::rack_undo::{RackUndo, RecoveryRevert};
use units::{Duration, Instant, Offset};

use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;
use crate::profile::RackRule;
use hystart::HyStartReports;

/// State of FreeBSD's RACK stack for a connection (`struct tcp_rack`).
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct FreeBsdRackState {
    settings: RackSettings,
    rack: RackFreeBsd,
    undo: RackUndo,
    reverts: RecoveryRevert,
    prr: PrrRack,
    hpts: Hpts,
    burst: BurstWindow,
    goodput: GoodputEstimator,
    probes: RackProbes,
    call: OutputCall,
    timeout: LastTimeout,
    /// Transmission time, in microseconds, of the delivered segment that was sent last, and its
    /// round trip (`rc_rack_tmit_time`, `rc_rack_rtt`).
    latest: (u64, Duration),
    /// Minimum round trip, in microseconds (`rc_rack_min_rtt`).
    least: Option<u64>,
    /// Start of the oldest segment, and its duplicate acknowledgments without blocks (`r_dupack`).
    strikes: (Offset, u32),
    /// Reports to HyStart++, if it is on (`CCF_HYSTART_ALLOWED`).
    hystart: Option<Box<HyStartReports>>,
}

/// The parameters that no other field holds.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct RackSettings {
    pto: RackPto,
    probes: u32,
    addback: u32,
    revert_unsent: bool,
    revert_duplicates: bool,
    discounts_lost: bool,
    send_buffer_share: u32,
}

/// Tail loss probes.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
struct RackProbes {
    /// The last segment sent was a probe; probes sent since data was acknowledged or new data was
    /// sent (`rc_tlp_in_progress`, `rc_tlp_cnt_out`).
    in_progress: bool,
    count: u32,
    /// When a timer last fired, or data was sent while nothing was outstanding
    /// (`rc_tlp_rxt_last_time`).
    timed_at: Instant,
    /// The segment last retransmitted as a probe, and the last such segment that was delivered
    /// (`last_sent_tlp_seq`, `last_tlp_acked_start`).
    sent: Option<SackRange>,
    acked: Option<SackRange>,
}

/// State of the output call in progress.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
struct OutputCall {
    /// Segment to be retransmitted first (`rc_resend`).
    retransmit: Option<Offset>,
    /// Segment to be retransmitted as a probe (`rc_tlpsend`), or bytes of new data to send as one
    /// (`rc_tlp_new_data`).
    probe: Option<Offset>,
    probe_new: u64,
    /// The call sends a probe (`doing_tlp`).
    is_probe: bool,
    /// Bytes sent (`tot_len_this_send`).
    sent: u64,
    /// The call was made by an arriving segment.
    by_segment: bool,
    /// Bytes that the next call sends without checking the window again (`fsb.left_to_send`).
    fast: u64,
}

/// The last timeout.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
struct LastTimeout {
    /// When it was: segments sent before and not since are retransmitted without a recovery
    /// (`RACK_MUST_RXT`).
    at: Option<Instant>,
    /// `snd_max` at the timeout (`rc_snd_max_at_rto`), and whether a recovery was in progress
    /// (`TF_WASFRECOVERY`).
    max: Offset,
    in_recovery: bool,
    /// End of the segment it retransmitted and the timestamp of its first transmission: an echo of
    /// that timestamp proves the timeout spurious (`RACK_TO_REXT`, `TF_PREVVALID`).
    first: Option<(Offset, u32)>,
}

impl FreeBsdRackState {
    pub(crate) fn new(rule: RackRule, hystart: Option<HyStartMode>) -> Self {
        Self {
            settings: RackSettings {
                pto: rule.pto,
                probes: rule.probes,
                addback: rule.addback,
                revert_unsent: rule.revert_unsent,
                revert_duplicates: rule.revert_duplicates,
                discounts_lost: rule.discounts_lost,
                send_buffer_share: rule.send_buffer_share,
            },
            rack: RackFreeBsd::new(rule.thresh),
            undo: RackUndo::new(rule.rtt_divisor),
            reverts: RecoveryRevert::none(),
            prr: PrrRack::default(),
            hpts: Hpts::default(),
            burst: BurstWindow::new(rule.burst),
            goodput: GoodputEstimator::default(),
            probes: RackProbes {
                in_progress: false,
                count: 0,
                timed_at: Instant::ZERO,
                sent: None,
                acked: None,
            },
            call: OutputCall::default(),
            timeout: LastTimeout::default(),
            latest: (0, Duration::ZERO),
            least: None,
            strikes: (Offset(0), 0),
            hystart: hystart
                .filter(|&mode| mode != HyStartMode::NotAllowed)
                .map(|_| Box::default()),
        }
    }

    /// Is the connection on the wheel?
    pub(crate) const fn is_entered(&self) -> bool {
        self.hpts.is_entered()
    }

    /// Duplicate acknowledgments for the segment that begins at `start`.
    fn strikes(&self, start: Offset) -> u32 {
        if self.strikes.0 == start { self.strikes.1 } else { 0 }
    }
}

/// The state of the RACK stack; returns a default on another stack.
macro_rules! rack_of {
    ($endpoint:expr) => {
        match &mut $endpoint.snd.loss_detector {
            $crate::loss::LossDetector::FreeBsdRack(rack) => rack,
            _ => return Default::default(),
        }
    };
}
use rack_of;

impl TcpEndpoint {
    /// Does this connection use FreeBSD's RACK stack?
    #[inline]
    pub(crate) const fn is_rack(&self) -> bool {
        matches!(self.snd.loss_detector, LossDetector::FreeBsdRack(_))
    }

    /// How long a segment may be outstanding before it is lost, once a later one was delivered.
    fn rack_thresh(&mut self, now: Instant) -> Duration {
        let srtt = self.rtt.srtt();
        let rack = rack_of!(self);
        rack.rack.thresh(RackFreeBsd::rtt(rack.latest.1, srtt), now)
    }

    /// Is anything outstanding?
    fn outstanding(&self) -> bool {
        self.snd.max > self.snd.una
    }
}

#[cfg(test)]
impl TcpEndpoint {
    fn rack(&self) -> &FreeBsdRackState {
        match &self.snd.loss_detector {
            LossDetector::FreeBsdRack(rack) => rack,
            _ => panic!("not RACK"),
        }
    }

    /// Rounds with D-SACKs, which widen RACK's reordering window (`num_dsack`).
    pub(crate) fn dsack_rounds(&self) -> u32 {
        self.rack().rack.num_dsack()
    }

    /// Has RACK seen reordering (`rc_reorder_ts`)?
    pub(crate) fn saw_reordering(&self) -> bool {
        self.rack().rack.reorder_ts().is_some()
    }

    /// Bytes outstanding when the recovery began, by RACK's PRR (`rc_prr_recovery_fs`).
    pub(crate) fn recovery_flight(&self) -> u64 {
        self.rack().prr.recovery_fs
    }
}
