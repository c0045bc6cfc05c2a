//! Loss detection and recovery, one file for each kind: duplicate acknowledgments alone (`newreno`,
//! RFC 6582), RACK-TLP (`rack_tlp`);
//! FreeBSD's RACK stack is in `stacks`.

pub(crate) mod newreno;
mod rack_tlp;

use rack_tlp::state::RackTlpState;

use crate::profile::{LossDetectionRule, RackTlpRule, TcpProfile};
use crate::sender::FlightEstimate;
use crate::stacks::freebsd::state::FreeBsdState;
use crate::stacks::freebsd_rack::state::FreeBsdRackState;

/// Duplicate acknowledgments that signal a loss (RFC 5681 section 3.2).
pub(crate) const DUP_THRESHOLD: u32 = 3;

/// Loss detection of a connection, with its state.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) enum LossDetector {
    /// Without SACK.
    NewReno,
    /// FreeBSD's base stack, with and without SACK.
    Sack(Box<FreeBsdState>),
    /// RACK-TLP.
    RackTlp(RackTlpState),
    /// FreeBSD's RACK stack.
    FreeBsdRack(Box<FreeBsdRackState>),
}

impl LossDetector {
    /// Creates the loss detection of a connection; `sack`: SACK was negotiated.
    pub(crate) fn new(profile: &TcpProfile, sack: bool) -> Self {
        match profile.loss {
            LossDetectionRule::Sack(rule) => Self::Sack(Box::new(FreeBsdState::new(rule))),
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

    /// How the bytes in flight are estimated.
    pub(crate) fn flight(&self) -> FlightEstimate {
        match self {
            Self::NewReno => FlightEstimate::Outstanding,
            Self::Sack(loss) => FlightEstimate::Corrected(loss.flight_correction()),
            Self::RackTlp(_) | Self::FreeBsdRack(_) => FlightEstimate::Scoreboard,
        }
    }

    /// The state of RACK-TLP, `None` on another stack.
    #[inline(always)]
    pub(crate) fn rack_tlp(&mut self) -> Option<&mut RackTlpState> {
        match self {
            Self::RackTlp(loss) => Some(loss),
            Self::NewReno | Self::Sack(_) | Self::FreeBsdRack(_) => None,
        }
    }
}
