//! FreeBSD's RACK stack (tcp_stacks/rack.c): losses by the time segments were sent, with the calls,
//! timers and pauses of its own.
//!
//! An acknowledgment goes through the steps of rack_do_segment (`acks`); what it shows of each segment
//! is in `delivered`. A call of rack_output begins with a timer that is due (`call`, `timeouts`), sends
//! (`plan`), and ends with the entry on the wheel ([`recovery::hpts_rack`]) that brings the next call.

mod acks;
mod call;
mod delivered;
mod plan;
mod timeouts;

use recovery::burst_rack::BurstWindow;
use recovery::dsack::Block;
use recovery::goodput_rack::Goodput;
use recovery::hpts_rack::Hpts;
use recovery::probe_rack::RackPto;
use recovery::prr::rack::PrrRack;
use recovery::rack_freebsd::RackFreeBsd;
use recovery::rack_undo::{RackUndo, Reverts};
use units::{Duration, Instant, Offset};

use crate::endpoint::Endpoint;
use crate::loss::Repair;
use crate::profile::RackRule;

/// What FreeBSD's RACK stack keeps of a connection (`struct tcp_rack`).
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct RackLoss {
    settings: Settings,
    rack: RackFreeBsd,
    undo: RackUndo,
    reverts: Reverts,
    prr: PrrRack,
    hpts: Hpts,
    burst: BurstWindow,
    goodput: Goodput,
    probes: Probes,
    call: Call,
    timeout: Timeout,
    /// When the segment sent last of those delivered had been sent, in microseconds, and its round
    /// trip (`rc_rack_tmit_time`, `rc_rack_rtt`).
    latest: (u64, Duration),
    /// Least round trip, in microseconds (`rc_rack_min_rtt`).
    least: Option<u64>,
    /// Duplicate acknowledgments without blocks for the segment that begins there (`r_dupack`).
    strikes: (Offset, u32),
}

/// The knobs that nothing below holds.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Settings {
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
struct Probes {
    /// The last segment sent was one, and those sent since something was acknowledged or new data was
    /// sent (`rc_tlp_in_progress`, `rc_tlp_cnt_out`).
    in_progress: bool,
    count: u32,
    /// When a timer fired last, or data was sent while nothing was outstanding
    /// (`rc_tlp_rxt_last_time`).
    timed_at: Instant,
    /// The segment last sent again as a probe, and the last such one that arrived
    /// (`last_sent_tlp_seq`, `last_tlp_acked_start`).
    sent: Option<Block>,
    acked: Option<Block>,
}

/// What the call in progress is to send and has sent.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
struct Call {
    /// A segment to be retransmitted first (`rc_resend`).
    resend: Option<Offset>,
    /// The last segment, to be retransmitted as a probe (`rc_tlpsend`), or bytes of new data
    /// (`rc_tlp_new_data`).
    probe: Option<Offset>,
    probe_new: u64,
    /// It is a probe's (`doing_tlp`).
    is_probe: bool,
    /// Bytes sent (`tot_len_this_send`).
    sent: u64,
    /// A segment arrived and this is the call that it makes.
    by_segment: bool,
    /// Bytes that the next call sends without another look at the window (`fsb.left_to_send`).
    fast: u64,
}

/// The last timeout.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
struct Timeout {
    /// When it was: what was sent before and not since is to be retransmitted without a recovery
    /// (`RACK_MUST_RXT`).
    at: Option<Instant>,
    /// `snd_max` then (`rc_snd_max_at_rto`), and whether a recovery was in progress
    /// (`TF_WASFRECOVERY`).
    max: Offset,
    in_recovery: bool,
    /// End of the segment it retransmitted and the timestamp of its first transmission: an echo of it
    /// shows the timeout to be spurious (`RACK_TO_REXT`, `TF_PREVVALID`).
    first: Option<(Offset, u32)>,
}

impl RackLoss {
    pub(crate) fn new(rule: RackRule) -> Self {
        Self {
            settings: Settings {
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
            reverts: Reverts::none(),
            prr: PrrRack::default(),
            hpts: Hpts::default(),
            burst: BurstWindow::new(rule.burst),
            goodput: Goodput::default(),
            probes: Probes {
                in_progress: false,
                count: 0,
                timed_at: Instant::ZERO,
                sent: None,
                acked: None,
            },
            call: Call::default(),
            timeout: Timeout::default(),
            latest: (0, Duration::ZERO),
            least: None,
            strikes: (Offset(0), 0),
        }
    }

    /// Does the wheel hold an entry?
    pub(crate) const fn is_entered(&self) -> bool {
        self.hpts.is_entered()
    }

    /// Duplicate acknowledgments for the segment that begins at `start`.
    fn strikes(&self, start: Offset) -> u32 {
        if self.strikes.0 == start { self.strikes.1 } else { 0 }
    }
}

/// The RACK stack's part of the endpoint's state; nothing happens where another stack runs.
macro_rules! rack_of {
    ($endpoint:expr) => {
        match &mut $endpoint.snd.repair {
            $crate::loss::Repair::Rack(rack) => rack,
            _ => return Default::default(),
        }
    };
}
use rack_of;

impl Endpoint {
    /// Does FreeBSD's RACK stack run this connection?
    #[inline]
    pub(crate) const fn is_rack(&self) -> bool {
        matches!(self.snd.repair, Repair::Rack(_))
    }

    /// How long a segment that was passed may be outstanding before it is lost.
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
impl Endpoint {
    fn rack(&self) -> &RackLoss {
        match &self.snd.repair {
            Repair::Rack(rack) => rack,
            _ => panic!("not RACK"),
        }
    }

    /// Rounds with duplicates that widen RACK's threshold (`num_dsack`).
    pub(crate) fn rounds_with_duplicates(&self) -> u32 {
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
