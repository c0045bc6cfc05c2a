//! Rates and pacing of a connection.

use recovery::delivery_rate::{DeliveryRateSample, DeliveryRates};
use units::{Duration, Instant, Offset};

/// Rates and pacing of one connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct RateState {
    pub(crate) delivery: DeliveryRates,
    /// The controller uses them.
    pub(super) controls: bool,
    /// It bounds its flight by losses, for which packets record the flight they were sent with
    /// (`RateController::needs_tx_state`).
    pub(super) tracks_tx: bool,
    /// Where reading the clock takes time in the context of a process: when the call of the application began, and
    /// the bursts sent since; the call that opens the connection reads the clock once before.
    pub(super) call: Option<(Instant, u32)>,
    /// When that call gets to its output, and the end of what it then sends by tcp_push_one.
    #[serde(skip)]
    pub(crate) awaited_push: Option<(Instant, Offset)>,
    /// End of what the output in progress sends by tcp_push_one, where it is that of such a call.
    #[serde(skip)]
    pub(super) reached_push: Option<Offset>,
    /// The current acknowledgment may be of a tail loss probe (`rs->is_acking_tlp_retrans_seq`).
    pub(super) acks_probe: bool,
    /// The current acknowledgment echoes congestion (`FLAG_ECE`).
    pub(super) echoed: bool,
    /// What the last tail loss probe repeated was sent while the sender was application-limited
    /// (`tlp_orig_data_app_limited`).
    pub(super) probe_app_limited: bool,
    /// The last rate that was not application-limited, or the highest since (`tp->rate_delivered`,
    /// `rate_interval_us`, `rate_app_limited`).
    #[serde(skip)]
    pub(super) measured: Option<DeliveryRateSample>,
    /// Earliest transmission time of the next packet (`tp->tcp_wstamp_ns`).
    pub(super) next_departure: Instant,
    /// Packets in flight, and lost in total, before the current acknowledgment.
    pub(super) in_flight_before: u64,
    pub(super) lost_before: u64,
    /// Round trip of the newest packet it delivered that was not retransmitted.
    pub(super) rtt: Option<Duration>,
    /// A timeout found that the receiver reneged (`tp->is_sack_reneg`).
    pub(crate) reneged: bool,
}

/// Data delivered by an acknowledgment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckDelivery {
    /// Packets acknowledged or SACKed, each once.
    pub(crate) packets: u64,
    /// Bytes acknowledged, if it has no SACK blocks.
    pub(crate) bare_bytes: u64,
}
