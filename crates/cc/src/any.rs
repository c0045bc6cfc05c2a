//! One controller of those there are, chosen while running.

use units::{Bytes, Instant, Offset};

use crate::contract::{
    AckSample, Acked, Change, Congested, Control, Controller, Established, Idle, RateSample,
    Recovered, RttSample,
};
use crate::cubic::{FreeBsdCubic, LinuxCubic, RfcCubic};
use crate::outside::{Gone, Piloted};
use crate::{Bbr, LinuxReno, NewReno};

/// Any controller, with what it grants: that is asked for several times between two changes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct AnyController {
    which: Which,
    control: Control,
    in_recovery: bool,
    heeds_ack_samples: bool,
    heeds_srtt: bool,
}

/// An enum, since a scenario chooses and one behind a trait could not be cloned. What is larger than the
/// smallest lies apart: a world has thousands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum Which {
    /// FreeBSD's NewReno.
    NewReno(Box<NewReno>),
    /// Linux's reno.
    LinuxReno(LinuxReno),
    /// FreeBSD's CUBIC.
    FreeBsdCubic(Box<FreeBsdCubic>),
    /// Linux's CUBIC.
    LinuxCubic(Box<LinuxCubic>),
    /// RFC 9438's CUBIC.
    RfcCubic(Box<RfcCubic>),
    /// Linux's BBR.
    Bbr(Box<Bbr>),
    /// One that is written elsewhere: what it knows is not ours to write down.
    #[serde(skip)]
    Piloted(Box<Piloted>),
}

/// Hands a question to the controller inside.
macro_rules! ask {
    ($any:expr, $cc:ident => $call:expr) => {
        match &$any.which {
            Which::NewReno($cc) => $call,
            Which::LinuxReno($cc) => $call,
            Which::FreeBsdCubic($cc) => $call,
            Which::LinuxCubic($cc) => $call,
            Which::RfcCubic($cc) => $call,
            Which::Bbr($cc) => $call,
            Which::Piloted($cc) => $call,
        }
    };
}

/// Tells the controller inside of an event, and notes what it grants since.
macro_rules! tell {
    ($any:expr, $cc:ident => $call:expr) => {{
        let (answer, control, in_recovery) = match &mut $any.which {
            Which::NewReno($cc) => ($call, $cc.control(), $cc.in_recovery()),
            Which::LinuxReno($cc) => ($call, $cc.control(), $cc.in_recovery()),
            Which::FreeBsdCubic($cc) => ($call, $cc.control(), $cc.in_recovery()),
            Which::LinuxCubic($cc) => ($call, $cc.control(), $cc.in_recovery()),
            Which::RfcCubic($cc) => ($call, $cc.control(), $cc.in_recovery()),
            Which::Bbr($cc) => ($call, $cc.control(), $cc.in_recovery()),
            Which::Piloted($cc) => ($call, $cc.control(), $cc.in_recovery()),
        };
        $any.control = control;
        $any.in_recovery = in_recovery;
        answer
    }};
}

impl AnyController {
    fn new(which: Which) -> Self {
        let nothing = Control { window: Bytes::ZERO, ssthresh: None, pacing: None };
        // What another makes nothing of need not be worked out.
        let heeds_ack_samples = matches!(which, Which::LinuxCubic(_) | Which::Piloted(_));
        let heeds_srtt = !matches!(which, Which::LinuxReno(_) | Which::LinuxCubic(_));
        let mut any =
            Self { which, control: nothing, in_recovery: false, heeds_ack_samples, heeds_srtt };
        any.control = ask!(any, cc => cc.control());
        any.in_recovery = ask!(any, cc => cc.in_recovery());
        any
    }

    /// Does [`Controller::on_ack_sample`] mean anything to it?
    #[inline]
    pub const fn heeds_ack_samples(&self) -> bool {
        self.heeds_ack_samples
    }

    /// Does an acknowledgment mean nothing to it, since the window is not what limits the flight
    /// ([`Acked::window_limited`], [`Acked::max_packets_out`])? So it is with Linux's, and need not be
    /// told.
    #[inline(always)]
    pub fn ignores_ack(&self, window_limited: bool, max_packets_out: u32) -> bool {
        match &self.which {
            Which::LinuxReno(cc) => cc.ignores_ack(window_limited, max_packets_out),
            Which::LinuxCubic(cc) => cc.ignores_ack(window_limited, max_packets_out),
            _ => false,
        }
    }

    /// `t_bytes_acked` of FreeBSD's controllers; `None` for others.
    pub fn bytes_acked(&self) -> Option<u32> {
        match &self.which {
            Which::NewReno(cc) => Some(cc.bytes_acked()),
            Which::FreeBsdCubic(cc) => Some(cc.bytes_acked()),
            _ => None,
        }
    }

    /// What a user-defined controller failed with, if it did.
    pub fn failure(&self) -> Option<&Gone> {
        match &self.which {
            Which::Piloted(cc) => cc.failure(),
            _ => None,
        }
    }

    /// Does [`Acked::srtt`] mean anything to it?
    #[inline]
    pub const fn heeds_srtt(&self) -> bool {
        self.heeds_srtt
    }
}

impl Controller for AnyController {
    fn on_established(&mut self, event: &Established) -> Change {
        tell!(self, cc => cc.on_established(event))
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        tell!(self, cc => cc.on_acked(event))
    }

    fn on_duplicate(&mut self, event: &Acked) {
        tell!(self, cc => cc.on_duplicate(event));
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        tell!(self, cc => cc.on_congested(event))
    }

    fn on_recovered(&mut self, event: &Recovered) -> Change {
        tell!(self, cc => cc.on_recovered(event))
    }

    fn on_idle(&mut self, event: &Idle) -> Change {
        tell!(self, cc => cc.on_idle(event))
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        tell!(self, cc => cc.on_mss(mss, maxseg));
    }

    fn on_round(&mut self, round: u32) -> Change {
        tell!(self, cc => cc.on_round(round))
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> Change {
        tell!(self, cc => cc.on_rtt_sample(sample))
    }

    fn on_ack_sample(&mut self, sample: &AckSample) -> Change {
        tell!(self, cc => cc.on_ack_sample(sample))
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        tell!(self, cc => cc.on_tx_start(ticks, last_sent));
    }

    fn on_rate_sample(&mut self, sample: &RateSample) -> Change {
        tell!(self, cc => cc.on_rate_sample(sample))
    }

    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        tell!(self, cc => cc.on_restart(now, ticks, app_limited));
    }

    fn is_whole(&self) -> bool {
        ask!(self, cc => cc.is_whole())
    }

    fn min_burst(&self) -> Option<u32> {
        ask!(self, cc => cc.min_burst())
    }

    fn windows_buffered(&self) -> u64 {
        ask!(self, cc => cc.windows_buffered())
    }

    #[inline]
    fn control(&self) -> Control {
        self.control
    }

    fn set_window(&mut self, window: Bytes) {
        tell!(self, cc => cc.set_window(window));
    }

    fn on_window_used(&mut self, window: Bytes) {
        tell!(self, cc => cc.on_window_used(window));
    }

    fn leave_recovery(&mut self) {
        tell!(self, cc => cc.leave_recovery());
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        tell!(self, cc => cc.set_threshold(ssthresh));
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    fn in_slow_start(&self) -> bool {
        ask!(self, cc => cc.in_slow_start())
    }

    fn recovery_point(&self) -> Offset {
        ask!(self, cc => cc.recovery_point())
    }
}

impl From<NewReno> for AnyController {
    fn from(cc: NewReno) -> Self {
        Self::new(Which::NewReno(Box::new(cc)))
    }
}

impl From<LinuxReno> for AnyController {
    fn from(cc: LinuxReno) -> Self {
        Self::new(Which::LinuxReno(cc))
    }
}

impl From<FreeBsdCubic> for AnyController {
    fn from(cc: FreeBsdCubic) -> Self {
        Self::new(Which::FreeBsdCubic(Box::new(cc)))
    }
}

impl From<LinuxCubic> for AnyController {
    fn from(cc: LinuxCubic) -> Self {
        Self::new(Which::LinuxCubic(Box::new(cc)))
    }
}

impl From<RfcCubic> for AnyController {
    fn from(cc: RfcCubic) -> Self {
        Self::new(Which::RfcCubic(Box::new(cc)))
    }
}

impl From<Bbr> for AnyController {
    fn from(cc: Bbr) -> Self {
        Self::new(Which::Bbr(Box::new(cc)))
    }
}

impl From<Piloted> for AnyController {
    fn from(cc: Piloted) -> Self {
        Self::new(Which::Piloted(Box::new(cc)))
    }
}
