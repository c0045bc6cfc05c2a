//! What each system concludes from what was delivered and when.

use recovery::prr::linux::PrrLinux;
use recovery::prr::rfc9937::{Flight, Prr9937};
use recovery::rack::{Delivered, Found, Rack, Standing};
use recovery::sendmap::{Piece, SendMap, Sums};
use units::{Duration, Instant, Offset};

use super::budget::Budget;
use crate::profile::TimedRule;

/// Who judges.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) enum Judge {
    /// RFC 8985.
    Rfc(Rack),
    /// Linux.
    Linux(Rack),
}

/// When something was delivered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    pub(super) min_rtt: Duration,
}

impl Judge {
    pub(super) fn new(rule: TimedRule) -> Self {
        match rule {
            TimedRule::Rfc => Self::Rfc(Rack::new()),
            TimedRule::Linux => Self::Linux(Rack::new()),
        }
    }

    /// Does the system take a recovery back by timestamps and D-SACK (tcp_try_undo_recovery)?
    pub(super) const fn takes_back(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    /// A packet was reported, shown as it stood before.
    pub(super) fn on_reported(&mut self, piece: &Piece, echo_older: bool, at: &Moment) {
        let (rack, echo_older) = match self {
            Self::Rfc(rack) => (rack, echo_older),
            // tcp_rack_advance judges by the round trip alone: out of order, an older timestamp is
            // echoed whatever arrived.
            Self::Linux(rack) => (rack, false),
        };
        rack.on_delivered(&Delivered::of(piece, echo_older), at.now, at.min_rtt);
    }

    /// A packet was acknowledged, shown as it stood before.
    pub(super) fn on_acked(&mut self, piece: &Piece, echo_older: bool, at: &Moment) {
        if !piece.sacked() {
            self.on_reported(piece, echo_older, at);
        }
    }

    /// A duplicate was reported.
    pub(super) fn on_duplicate(&mut self, una: Offset, max: Offset) {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.on_duplicate(una, max),
        }
    }

    /// A recovery, or a timeout's repair, is over.
    pub(super) fn on_recovered(&mut self) {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.on_recovered(),
        }
    }

    /// Looks for losses.
    pub(super) fn detect(&mut self, map: &mut SendMap, standing: &Standing) -> Found {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.detect_loss(map, standing),
        }
    }

    /// The timer fired: what of the flight is lost.
    pub(super) fn on_timeout(&mut self, map: &mut SendMap, standing: &Standing) {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => {
                rack.on_timeout(map, standing);
            }
        }
    }

    /// How sending is held back in a recovery that begins with this flight and window.
    pub(super) fn budget(&self, flight: &Sums, window: u64, mss: u64) -> Budget {
        match self {
            Self::Rfc(_) => Budget::Rfc(Prr9937::begin(&Flight {
                outstanding: flight.all.bytes,
                sacked: flight.sacked.bytes,
                newly_sacked: 0,
                newly_acked: 0,
            })),
            Self::Linux(_) => Budget::Linux(PrrLinux::begin(window / mss)),
        }
    }
}
