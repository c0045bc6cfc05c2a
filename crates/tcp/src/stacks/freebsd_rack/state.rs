//! State of FreeBSD's RACK stack.

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

use super::hystart_reports::HyStartReports;
use crate::profile::RackRule;

/// State of FreeBSD's RACK stack for a connection (`struct tcp_rack`).
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct FreeBsdRackState {
    pub(super) settings: RackSettings,
    pub(super) rack: RackFreeBsd,
    pub(super) undo: RackUndo,
    pub(super) reverts: RecoveryRevert,
    pub(super) prr: PrrRack,
    pub(super) hpts: Hpts,
    pub(super) burst: BurstWindow,
    pub(super) goodput: GoodputEstimator,
    pub(super) probes: RackProbes,
    pub(super) call: OutputCall,
    pub(super) timeout: LastTimeout,
    /// Transmission time, in microseconds, of the delivered segment that was sent last, and its
    /// round trip (`rc_rack_tmit_time`, `rc_rack_rtt`).
    pub(super) latest: (u64, Duration),
    /// Minimum round trip, in microseconds (`rc_rack_min_rtt`).
    pub(super) least: Option<u64>,
    /// Start of the oldest segment, and its duplicate acknowledgments without blocks (`r_dupack`).
    pub(super) strikes: (Offset, u32),
    /// Reports to HyStart++, if it is on (`CCF_HYSTART_ALLOWED`).
    pub(super) hystart: Option<Box<HyStartReports>>,
}

/// The parameters that no other field holds.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(super) struct RackSettings {
    pub(super) pto: RackPto,
    pub(super) probes: u32,
    pub(super) addback: u32,
    pub(super) revert_unsent: bool,
    pub(super) revert_duplicates: bool,
    pub(super) discounts_lost: bool,
    pub(super) send_buffer_share: u32,
}

/// Tail loss probes.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct RackProbes {
    /// The last segment sent was a probe; probes sent since data was acknowledged or new data was
    /// sent (`rc_tlp_in_progress`, `rc_tlp_cnt_out`).
    pub(super) in_progress: bool,
    pub(super) count: u32,
    /// When a timer last fired, or data was sent while nothing was outstanding
    /// (`rc_tlp_rxt_last_time`).
    pub(super) timed_at: Instant,
    /// The segment last retransmitted as a probe, and the last such segment that was delivered
    /// (`last_sent_tlp_seq`, `last_tlp_acked_start`).
    pub(super) sent: Option<SackRange>,
    pub(super) acked: Option<SackRange>,
}

/// State of the output call in progress.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct OutputCall {
    /// Segment to be retransmitted first (`rc_resend`).
    pub(super) retransmit: Option<Offset>,
    /// Segment to be retransmitted as a probe (`rc_tlpsend`), or bytes of new data to send as one
    /// (`rc_tlp_new_data`).
    pub(super) probe: Option<Offset>,
    pub(super) probe_new: u64,
    /// The call sends a probe (`doing_tlp`).
    pub(super) is_probe: bool,
    /// Bytes sent (`tot_len_this_send`).
    pub(super) sent: u64,
    /// The call was made by an arriving segment.
    pub(super) by_segment: bool,
    /// Bytes that the windows allow after the segment planned; 0 once it is sent.
    #[serde(skip)]
    pub(super) left: u64,
    /// Bytes that the next call sends without checking the window again (`fsb.left_to_send`).
    pub(super) fast: u64,
}

/// The last timeout.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct LastTimeout {
    /// When it was: segments sent before and not since are retransmitted without a recovery
    /// (`RACK_MUST_RXT`).
    pub(super) at: Option<Instant>,
    /// `snd_max` at the timeout (`rc_snd_max_at_rto`), and whether a recovery was in progress
    /// (`TF_WASFRECOVERY`).
    pub(super) max: Offset,
    pub(super) in_recovery: bool,
    /// End of the segment it retransmitted and the timestamp of its first transmission: an echo of
    /// that timestamp proves the timeout spurious (`RACK_TO_REXT`, `TF_PREVVALID`).
    pub(super) first: Option<(Offset, u32)>,
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
    pub(super) fn strikes(&self, start: Offset) -> u32 {
        if self.strikes.0 == start { self.strikes.1 } else { 0 }
    }
}
