//! One controller of those there are, chosen while running.

use units::{Bytes, Offset};

use crate::contract::{
    AckSample, Acked, Change, Congested, Control, Controller, Established, Idle, Recovered,
    RttSample,
};
use crate::cubic::{FreeBsdCubic, LinuxCubic, RfcCubic};
use crate::{LinuxReno, NewReno};

/// Any controller. An enum, since a scenario chooses and a boxed one could not be cloned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyController {
    /// FreeBSD's NewReno.
    NewReno(NewReno),
    /// Linux's reno.
    LinuxReno(LinuxReno),
    /// FreeBSD's CUBIC.
    FreeBsdCubic(FreeBsdCubic),
    /// Linux's CUBIC.
    LinuxCubic(LinuxCubic),
    /// RFC 9438's CUBIC.
    RfcCubic(RfcCubic),
}

/// Hands a call to the controller inside.
macro_rules! inner {
    ($any:expr, $cc:ident => $call:expr) => {
        match $any {
            AnyController::NewReno($cc) => $call,
            AnyController::LinuxReno($cc) => $call,
            AnyController::FreeBsdCubic($cc) => $call,
            AnyController::LinuxCubic($cc) => $call,
            AnyController::RfcCubic($cc) => $call,
        }
    };
}

impl Controller for AnyController {
    fn on_established(&mut self, event: &Established) -> Change {
        inner!(self, cc => cc.on_established(event))
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        inner!(self, cc => cc.on_acked(event))
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        inner!(self, cc => cc.on_congested(event))
    }

    fn on_recovered(&mut self, event: &Recovered) -> Change {
        inner!(self, cc => cc.on_recovered(event))
    }

    fn on_idle(&mut self, event: &Idle) -> Change {
        inner!(self, cc => cc.on_idle(event))
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        inner!(self, cc => cc.on_mss(mss, maxseg));
    }

    fn on_round(&mut self, round: u32) -> Change {
        inner!(self, cc => cc.on_round(round))
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> Change {
        inner!(self, cc => cc.on_rtt_sample(sample))
    }

    fn on_ack_sample(&mut self, sample: &AckSample) -> Change {
        inner!(self, cc => cc.on_ack_sample(sample))
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        inner!(self, cc => cc.on_tx_start(ticks, last_sent));
    }

    fn control(&self) -> Control {
        inner!(self, cc => cc.control())
    }

    fn set_window(&mut self, window: Bytes) {
        inner!(self, cc => cc.set_window(window));
    }

    fn leave_recovery(&mut self) {
        inner!(self, cc => cc.leave_recovery());
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        inner!(self, cc => cc.set_threshold(ssthresh));
    }

    fn in_recovery(&self) -> bool {
        inner!(self, cc => cc.in_recovery())
    }

    fn in_slow_start(&self) -> bool {
        inner!(self, cc => cc.in_slow_start())
    }

    fn recovery_point(&self) -> Offset {
        inner!(self, cc => cc.recovery_point())
    }
}

impl From<NewReno> for AnyController {
    fn from(cc: NewReno) -> Self {
        Self::NewReno(cc)
    }
}

impl From<LinuxReno> for AnyController {
    fn from(cc: LinuxReno) -> Self {
        Self::LinuxReno(cc)
    }
}

impl From<FreeBsdCubic> for AnyController {
    fn from(cc: FreeBsdCubic) -> Self {
        Self::FreeBsdCubic(cc)
    }
}

impl From<LinuxCubic> for AnyController {
    fn from(cc: LinuxCubic) -> Self {
        Self::LinuxCubic(cc)
    }
}

impl From<RfcCubic> for AnyController {
    fn from(cc: RfcCubic) -> Self {
        Self::RfcCubic(cc)
    }
}
