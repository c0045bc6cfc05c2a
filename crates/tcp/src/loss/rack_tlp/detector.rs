//! The loss detectors of the systems, from deliveries and their times.

use core::hint::cold_path;

use recovery::external::ExternalDetector;
use recovery::prr::linux::PrrLinux;
use recovery::prr::rfc9937::{FlightAtRecovery, Prr9937};
use recovery::rack::{DeliveredSegment, Rack, RackInput, RackLosses};
use recovery::sendmap::{SendMap, SendMapCounters, SentSegment};
use units::{Duration, Instant, Offset};

use super::prr_state::PrrState;
use crate::profile::RackTlpRule;

/// The loss detector.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) enum RackDetector {
    /// RFC 8985.
    Rfc(Rack),
    /// Linux.
    Linux(Rack),
    /// A user's own detector in place of RACK, whose state cannot be serialized; everything else as in
    /// the RFC.
    #[serde(skip)]
    External(ExternalDetector),
}

/// Time of a delivery and the minimum round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveryContext {
    pub(super) now: Instant,
    pub(super) min_rtt: Duration,
}

impl RackDetector {
    pub(super) fn new(rule: RackTlpRule) -> Self {
        match rule {
            RackTlpRule::Rfc => Self::Rfc(Rack::new()),
            RackTlpRule::Linux => Self::Linux(Rack::linux()),
            RackTlpRule::External(detection) => Self::External(detection.make()),
        }
    }

    /// Does the system undo spurious recoveries by timestamps and D-SACK (tcp_try_undo_recovery)?
    pub(super) const fn supports_undo(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    /// Processes a SACKed packet, passed in its state before the SACK.
    pub(super) fn on_reported(
        &mut self,
        sent_segment: &SentSegment,
        echo_older: bool,
        at: &DeliveryContext,
    ) {
        // tcp_sacktag_one: with reordering an older timestamp is echoed in any case, and
        // tcp_rack_advance checks the round trip only.
        let echo_older = echo_older && !matches!(self, Self::Linux(_));
        self.on_delivered(sent_segment, echo_older, at);
    }

    fn on_delivered(
        &mut self,
        sent_segment: &SentSegment,
        echo_older: bool,
        at: &DeliveryContext,
    ) -> bool {
        let segment = DeliveredSegment::of(sent_segment, echo_older);
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.on_delivered(&segment, at.now, at.min_rtt),
            Self::External(own) => {
                cold_path();
                own.0.on_delivered(&segment, at.now, at.min_rtt);
                false
            }
        }
    }

    /// Processes an acknowledged packet, passed in its state before the acknowledgment
    /// (tcp_skb_spurious_retrans of tcp_clean_rtx_queue checks the echo). Returns whether its round-trip time was
    /// taken.
    pub(super) fn on_acked(
        &mut self,
        sent_segment: &SentSegment,
        echo_older: bool,
        at: &DeliveryContext,
    ) -> bool {
        !sent_segment.sacked() && self.on_delivered(sent_segment, echo_older, at)
    }

    /// Takes the round-trip time of the last packet acknowledged, after packets that the same acknowledgment has
    /// SACKed.
    pub(super) fn on_acked_last(
        &mut self,
        sent_segment: &SentSegment,
        echo_older: bool,
        at: &DeliveryContext,
    ) {
        if let Self::Linux(rack) = self {
            let segment = DeliveredSegment::of(sent_segment, echo_older);
            rack.take_rtt(&segment, at.now, at.min_rtt);
        }
    }

    /// RFC 8985: processes a D-SACK.
    pub(super) fn on_duplicate(&mut self, una: Offset, max: Offset) {
        match self {
            Self::Rfc(rack) => rack.on_duplicate(una, max),
            Self::External(own) => own.0.on_duplicate(una, max),
            Self::Linux(_) => {}
        }
    }

    /// Linux: a D-SACK is to widen the reordering window.
    pub(super) const fn on_dsack_seen(&mut self) {
        if let Self::Linux(rack) = self {
            rack.on_dsack_seen();
        }
    }

    /// Linux: the deliveries of an acknowledgment were processed (tcp_rack_update_reo_wnd); the latest
    /// of the packets was sent at `sent_at`.
    #[inline]
    pub(super) fn update_reo_wnd(&mut self, sent_at: Option<Instant>, now: Instant) {
        if let Self::Linux(rack) = self {
            rack.update_reo_wnd(sent_at, now);
        }
    }

    /// Handles the end of a recovery, or of the retransmissions after a timeout.
    pub(super) fn on_recovered(&mut self) {
        match self {
            Self::Rfc(rack) => rack.on_recovered(),
            Self::Linux(rack) => rack.on_linux_recovered(),
            Self::External(own) => own.0.on_recovered(),
        }
    }

    /// Send time and end of the most recently sent packet delivered.
    pub(super) const fn newest(&self) -> Option<(Instant, Offset)> {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.newest(),
            Self::External(_) => None,
        }
    }

    /// Detects and marks losses.
    pub(super) fn detect(&mut self, map: &mut SendMap, standing: &RackInput) -> RackLosses {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.detect_loss(map, standing),
            Self::External(own) => own.0.detect(map, standing),
        }
    }

    /// Marks losses at a retransmission timeout.
    pub(super) fn on_timeout(&mut self, map: &mut SendMap, standing: &RackInput) {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => {
                rack.on_timeout(map, standing);
            }
            Self::External(own) => own.0.on_timeout(map, standing),
        }
    }

    /// The initial PRR state of a recovery with this flight and window.
    pub(super) fn new_prr(&self, flight: &SendMapCounters, window: u64, mss: u64) -> PrrState {
        match self {
            Self::Rfc(_) | Self::External(_) => PrrState::Rfc(Prr9937::begin(&FlightAtRecovery {
                outstanding: flight.all.bytes,
                sacked: flight.sacked.bytes,
                newly_sacked: 0,
                newly_acked: 0,
            })),
            Self::Linux(_) => PrrState::Linux(PrrLinux::begin(window / mss)),
        }
    }
}
