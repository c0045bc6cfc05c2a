//! FreeBSD's RACK stack (tcp_stacks/rack.c): loss detection by transmission times, with its own
//! output calls, timers and pauses.
//!
//! An acknowledgment is processed in the steps of rack_do_segment (`do_segment`), each segment it
//! covers or SACKs in rack_log_ack (`log_ack`), with `steps` of this state. A call of rack_output
//! (`output`) begins with an expired timer (`timeouts`), plans and records segments (`log_output`),
//! and ends with the entry on the wheel ([`recovery::hpts_rack`], `hpts_timer`) that schedules the
//! next call.

mod do_segment;
mod hpts_timer;
mod hystart;
mod hystart_reports;
mod log_ack;
mod log_output;
pub(crate) mod output;
mod persist;
pub(crate) mod state;
mod steps;
pub(crate) mod syn;
mod timeouts;

use recovery::rack_freebsd::RackFreeBsd;
use units::{Duration, Instant};

use crate::sender::Sender;
use state::FreeBsdRackState;

/// The RACK stack of a connection, for one step.
#[derive(Debug)]
pub(crate) struct FreeBsdRack<'a> {
    snd: &'a mut Sender,
    state: &'a mut FreeBsdRackState,
}

impl<'a> FreeBsdRack<'a> {
    /// The stack with this state and sender.
    pub(crate) const fn new(snd: &'a mut Sender, state: &'a mut FreeBsdRackState) -> Self {
        Self { snd, state }
    }

    /// How long a segment may be outstanding before it is lost, once a later one was delivered.
    fn thresh(&mut self, now: Instant) -> Duration {
        let srtt = self.snd.rtt.estimator.srtt();
        self.state.rack.thresh(RackFreeBsd::rtt(self.state.latest.1, srtt), now)
    }

    /// Is anything outstanding?
    fn outstanding(&self) -> bool {
        self.snd.max > self.snd.una
    }
}

#[cfg(test)]
impl crate::send_side::SendSide {
    fn rack(&self) -> &FreeBsdRackState {
        match &self.stack {
            crate::stacks::Stack::FreeBsdRack(rack) => rack,
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
