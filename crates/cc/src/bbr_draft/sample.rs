//! What an acknowledgment measured (section "Per-ACK Rate Sample State"), in bytes.

use units::{Duration, Instant};

use crate::contract::RateSample;

/// `RS` and the state of the connection that comes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DraftSample {
    pub(super) now: Instant,
    /// Something was delivered.
    pub(super) has_data: bool,
    /// `RS.delivery_rate` in bytes per second; 0 without one.
    pub(super) delivery_rate: u64,
    /// `RS.delivered`.
    pub(super) delivered: u64,
    /// `RS.prior_delivered`.
    pub(super) prior_delivered: u64,
    /// `RS.is_app_limited`.
    pub(super) is_app_limited: bool,
    /// `RS.newly_acked`.
    pub(super) newly_acked: u64,
    /// `RS.newly_lost`.
    pub(super) newly_lost: u64,
    /// `RS.tx_in_flight`.
    pub(super) tx_in_flight: u64,
    /// `RS.lost`.
    pub(super) lost: u64,
    /// Delivered with marks since the packet was sent.
    pub(super) marked: u64,
    /// The acknowledgment echoes congestion.
    pub(super) is_marked: bool,
    /// `RS.rtt`.
    pub(super) rtt: Option<Duration>,
    /// `C.srtt`.
    pub(super) srtt: Option<Duration>,
    /// `C.delivered`.
    pub(super) total_delivered: u64,
    /// `C.inflight`.
    pub(super) inflight: u64,
    /// `C.is_cwnd_limited`.
    pub(super) is_cwnd_limited: bool,
}

impl DraftSample {
    /// A sample of a stack that counts in `unit` bytes.
    pub(super) fn new(sample: &RateSample, unit: u64) -> Self {
        let bytes = |count: u32| u64::from(count) * unit;
        let tx = &sample.signals.tx;
        let total = sample.delivered * unit;
        let rate = sample.rate.as_ref().map_or(0, |rate| {
            let per_second = u128::from(bytes(rate.delivered)) * 1_000_000;
            let rate = per_second / u128::from(rate.interval_us.max(1));
            u64::try_from(rate).unwrap_or(u64::MAX)
        });
        Self {
            now: sample.signals.now,
            has_data: sample.acked > 0,
            delivery_rate: if sample.acked > 0 { rate } else { 0 },
            delivered: bytes(tx.delivered),
            prior_delivered: total.saturating_sub(bytes(tx.delivered)),
            is_app_limited: tx.app_limited,
            newly_acked: bytes(sample.acked),
            newly_lost: bytes(sample.losses),
            tx_in_flight: bytes(tx.in_flight),
            lost: bytes(tx.lost),
            marked: bytes(tx.delivered_ce),
            is_marked: sample.signals.ece,
            rtt: sample.rtt_us.map(|rtt| Duration::from_micros(u64::from(rtt))),
            srtt: (sample.srtt_us > 0).then(|| Duration::from_micros(u64::from(sample.srtt_us))),
            total_delivered: total,
            inflight: bytes(sample.in_flight),
            is_cwnd_limited: sample.signals.window_limited,
        }
    }
}
