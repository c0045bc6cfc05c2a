//! FreeBSD's RACK stack (tcp_stacks/rack.c): loss detection by transmission times, with its own
//! output calls, timers and pauses.
//!
//! An acknowledgment is processed in the steps of rack_do_segment (`acks`, with those of this state in
//! `steps`), each segment it covers or SACKs in `delivered`. A call of rack_output begins with an
//! expired timer (`call`, `timeouts`), sends (`plan`), and ends with the entry on the wheel
//! ([`recovery::hpts_rack`]) that schedules the next call.

mod acks;
pub(crate) mod call;
mod delivered;
mod hystart;
mod hystart_reports;
mod persist;
mod plan;
pub(super) mod state;
mod steps;
mod timeouts;

use recovery::rack_freebsd::RackFreeBsd;
use units::{Duration, Instant};

use crate::loss::LossDetector;
use crate::sender::Sender;
use crate::state::SendSide;

impl SendSide {
    /// Does this connection use FreeBSD's RACK stack?
    #[inline]
    pub(crate) const fn is_rack(&self) -> bool {
        matches!(self.loss_detector, LossDetector::FreeBsdRack(_))
    }

    /// How long a segment may be outstanding before it is lost, once a later one was delivered.
    fn rack_thresh(&mut self, now: Instant) -> Duration {
        let srtt = self.rtt.estimator.srtt();
        let Some(rack) = self.loss_detector.freebsd_rack() else { return Duration::ZERO };
        rack.rack.thresh(RackFreeBsd::rtt(rack.latest.1, srtt), now)
    }
}

impl Sender {
    /// Is anything outstanding?
    fn outstanding(&self) -> bool {
        self.max > self.una
    }
}

#[cfg(test)]
impl SendSide {
    fn rack(&self) -> &state::FreeBsdRackState {
        match &self.loss_detector {
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
