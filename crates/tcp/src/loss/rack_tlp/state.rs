//! State of RACK-TLP.

use recovery::dsack::SackRange;
use recovery::lazy::{InitialValue, LazyBox};
use recovery::reordering::ReorderingMetric;
use recovery::tlp::{PtoRule, Tlp};
use recovery::undo::UndoState;
use units::{Duration, Instant, Offset};

use super::detector::RackDetector;
use super::prr_state::PrrState;
use crate::profile::RackTlpRule;
use crate::sent::DeliveredPackets;

/// State of RACK-TLP.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct RackTlpState {
    pub(super) detector: RackDetector,
    pub(super) tlp: Tlp,
    pub(super) pto: PtoRule,
    /// State of the recovery, or of the retransmissions after a timeout.
    pub(super) episode: LazyBox<RecoveryState>,
    /// A probe is due.
    pub(super) probe_due: bool,
    /// Tick of the reordering timer, as it was asked for; its low bits.
    #[serde(skip)]
    pub(super) reorder_expires: u16,
    /// When a probe for more than one packet was scheduled, unless an acknowledgment arrived since.
    pub(super) planned: Option<Instant>,
    /// F-RTO: was the last timeout spurious?
    pub(super) frto: Frto,
    /// The degree of reordering.
    pub(super) reordering: ReorderingMetric,
    /// The last acknowledgment releases new data only (`REXMIT_NONE`).
    #[serde(skip)]
    pub(super) holds_back: bool,
    /// SACK was not negotiated.
    pub(super) reno: bool,
    /// Packets that counted as delivered besides those of the scoreboard: what duplicates without SACK stood for,
    /// and spurious retransmissions.
    pub(super) forgotten: u32,
}

/// Data delivered by an acknowledgment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AckAccounting {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// Bytes newly acknowledged or SACKed; bytes SACKed before count again when acknowledged
    /// (`changed` of rack_log_ack).
    pub(super) changed: u64,
    /// Packets that it acknowledges, and those that it SACKs.
    pub(super) acked: DeliveredPackets,
    pub(super) reported: DeliveredPackets,
    /// Packets newly SACKed.
    pub(super) newly_reported: u64,
    /// Linux: packets of its D-SACK that count as delivered.
    pub(super) duplicates: u64,
    /// Of the packets delivered that were sent only once: lowest start and lowest end.
    pub(super) first_reported: Option<SackRange>,
    /// A packet acknowledged was retransmitted.
    pub(super) repeated: bool,
    pub(super) first_acked: Option<SackRange>,
}

impl RackTlpState {
    /// `reno`: without SACK.
    pub(crate) fn new(rule: RackTlpRule, reno: bool) -> Self {
        let pto = match rule {
            // RFC 8985 section 7.2: the peer may delay an ACK by 200 ms, if the delay is unknown.
            RackTlpRule::Rfc | RackTlpRule::External(_) => {
                PtoRule::Rfc { max_ack_delay: Duration::from_millis(200) }
            }
            RackTlpRule::Linux => PtoRule::Linux,
        };
        Self {
            detector: RackDetector::new(rule),
            tlp: Tlp::new(),
            pto,
            episode: LazyBox::default(),
            probe_due: false,
            reorder_expires: 0,
            planned: None,
            frto: Frto::OFF,
            reordering: ReorderingMetric::new(),
            holds_back: false,
            reno,
            forgotten: 0,
        }
    }

    /// Without SACK: packets delivered by duplicates that no longer count as SACKed.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.forgotten as u64
    }

    /// Was the probe of the flight scheduled, or sent, at this instant?
    #[inline]
    pub(crate) fn planned_at(&self, now: Instant) -> bool {
        self.planned == Some(now)
    }

    /// Is a probe due?
    #[inline]
    pub(crate) const fn probe_is_due(&self) -> bool {
        self.probe_due
    }
}

impl RackTlpState {
    /// After a timeout, its recovery point.
    pub(crate) fn timeout_point(&self) -> Option<Offset> {
        self.episode.timeout_until
    }

    /// Is the flight lost in a timeout still being retransmitted?
    pub(crate) fn repairs_timeout(&self) -> bool {
        self.episode.timeout_until.is_some()
    }

    /// Timestamp clock at the first retransmission of the outstanding data (`retrans_stamp`).
    pub(crate) fn retrans_stamp(&self) -> Option<u32> {
        self.episode.undo.retrans_stamp()
    }
}

impl RackTlpState {
    /// Is no recovery, probe or F-RTO in progress?
    pub(super) fn allows_fast_path(&self) -> bool {
        self.episode.timeout_until.is_none() && !self.tlp.probing() && !self.frto.sends_new_data()
    }
}

/// State of F-RTO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct Frto {
    /// The timeout may be spurious (`tp->frto`).
    pub(super) open: bool,
    /// This acknowledgment is answered with new data, not with retransmissions (`REXMIT_NEW`).
    pub(super) new_data: bool,
}

impl Frto {
    /// Inactive.
    pub(super) const OFF: Self = Self { open: false, new_data: false };

    /// Retransmissions may be sent, too.
    pub(super) const fn release(&mut self) {
        self.new_data = false;
    }

    /// Is this acknowledgment answered with new data only?
    pub(super) const fn sends_new_data(&self) -> bool {
        self.new_data
    }
}

/// State of the last recovery.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct RecoveryState {
    pub(super) prr: PrrState,
    /// State that Linux needs to undo it.
    pub(super) undo: UndoState,
    /// After a timeout, its recovery point: no fast recovery begins before it is acknowledged.
    pub(super) timeout_until: Option<Offset>,
    /// Linux: an ECN echo has proven congestion, so nothing is restored (a `prior_ssthresh` of 0).
    pub(super) proven: bool,
    /// Linux without SACK: the recovery was undone at its recovery point, and lasts until more is
    /// acknowledged.
    pub(super) held: bool,
}

/// No recovery yet.
static NONE: RecoveryState = RecoveryState {
    prr: PrrState::None,
    undo: UndoState::begin(Offset(0), 0, None),
    timeout_until: None,
    proven: false,
    held: false,
};

impl InitialValue for RecoveryState {
    fn initial() -> &'static Self {
        &NONE
    }
}
