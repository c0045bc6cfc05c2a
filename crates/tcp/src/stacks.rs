//! The stacks that send, each in a folder of its own beside the functions of its kernel that it
//! follows.

mod dispatch;
pub(crate) mod freebsd;
pub(crate) mod freebsd_rack;

use recovery::sendmap::SendMap;

use crate::loss::rack_tlp::state::RackTlpState;
use crate::profile::{LossDetectionRule, RackTlpRule, TcpProfile};
use crate::sender::FlightEstimate;
use freebsd::state::FreeBsdState;
use freebsd_rack::state::FreeBsdRackState;

/// The stack that sends for a connection, with its state.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) enum Stack {
    /// Before the handshake ends; afterwards NewReno, where SACK was not negotiated.
    NewReno,
    /// FreeBSD's base stack, with and without SACK.
    FreeBsd(Box<FreeBsdState>),
    /// RACK-TLP.
    RackTlp(RackTlpState),
    /// FreeBSD's RACK stack.
    FreeBsdRack(Box<FreeBsdRackState>),
}

impl Stack {
    /// The stack of a connection; `sack`: SACK was negotiated.
    pub(crate) fn new(profile: &TcpProfile, sack: bool) -> Self {
        match profile.loss {
            LossDetectionRule::Sack(rule) => Self::FreeBsd(Box::new(FreeBsdState::new(rule))),
            LossDetectionRule::RackTlp(rule) if sack || rule == RackTlpRule::Linux => {
                Self::RackTlp(RackTlpState::new(rule, !sack))
            }
            LossDetectionRule::FreeBsdRack(rule) if sack => {
                Self::FreeBsdRack(Box::new(FreeBsdRackState::new(rule, profile.newreno.hystart)))
            }
            LossDetectionRule::RackTlp(_)
            | LossDetectionRule::FreeBsdRack(_)
            | LossDetectionRule::NewReno => Self::NewReno,
        }
    }

    /// Has it nothing of its own to send?
    #[inline(always)]
    pub(crate) fn is_quiet(&self, scoreboard: &SendMap) -> bool {
        match self {
            Self::RackTlp(loss) => !loss.probe_is_due() && !scoreboard.any_lost(),
            Self::FreeBsdRack(rack) => !rack.is_entered(),
            Self::FreeBsd(_) | Self::NewReno => true,
        }
    }

    /// Does it call the output routine while it processes an acknowledgment?
    pub(crate) const fn sends_within_ack(&self) -> bool {
        matches!(self, Self::FreeBsd(_))
    }

    /// Is a writer woken by the output of its own write? sosend_generic checks for space again after
    /// tcp_output, which may have enlarged the buffer.
    pub(crate) const fn wakes_after_write(&self) -> bool {
        matches!(self, Self::FreeBsd(_))
    }

    /// Is a challenge ACK a pure one, whatever else could be sent (tcp_respond, not tcp_output)?
    pub(crate) const fn challenges_by_respond(&self) -> bool {
        matches!(self, Self::FreeBsd(_))
    }

    /// Does limited transmit set the window itself, and count in `limited` what it has sent?
    pub(crate) const fn counts_limited(&self) -> bool {
        matches!(self, Self::FreeBsd(_))
    }

    /// Reports its state under the field names of recordings of `struct tcpcb`.
    pub(crate) fn inspect(&self, see: &mut impl FnMut(&'static str, u64)) {
        match self {
            Self::FreeBsd(state) => state.inspect(see),
            Self::NewReno | Self::RackTlp(_) | Self::FreeBsdRack(_) => {}
        }
    }

    /// How the bytes in flight are estimated.
    pub(crate) fn flight(&self) -> FlightEstimate {
        match self {
            Self::NewReno => FlightEstimate::Outstanding,
            Self::FreeBsd(loss) => FlightEstimate::Corrected(loss.flight_correction()),
            Self::RackTlp(_) | Self::FreeBsdRack(_) => FlightEstimate::Scoreboard,
        }
    }

    /// The state of RACK-TLP, `None` on another stack.
    #[inline(always)]
    pub(crate) fn rack_tlp(&mut self) -> Option<&mut RackTlpState> {
        match self {
            Self::RackTlp(loss) => Some(loss),
            Self::NewReno | Self::FreeBsd(_) | Self::FreeBsdRack(_) => None,
        }
    }
}
