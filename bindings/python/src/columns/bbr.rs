//! The columns of the model of BBR version 3.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringDictionaryBuilder, UInt64Builder};
use arrow_array::types::Int32Type;
use record::BbrState;

use super::ArrowColumn;

/// The model of each row; null with other controllers.
#[derive(Default)]
pub(super) struct BbrColumns {
    mode: StringDictionaryBuilder<Int32Type>,
    phase: StringDictionaryBuilder<Int32Type>,
    bw_hi: UInt64Builder,
    bw_lo: UInt64Builder,
    inflight_hi: UInt64Builder,
    inflight_lo: UInt64Builder,
    pacing_gain: Float64Builder,
    cwnd_gain: Float64Builder,
}

impl BbrColumns {
    pub(super) fn push(&mut self, bbr: Option<&BbrState>) {
        let bits = |bytes: u64| bytes.saturating_mul(8);
        // Gains are in 256ths.
        let gain = |gain: u32| f64::from(gain) / 256.0;
        self.mode.append_option(bbr.map(|bbr| bbr.phase.mode()));
        self.phase.append_option(bbr.map(|bbr| bbr.phase.name()));
        self.bw_hi.append_option(bbr.map(|bbr| bits(bbr.bw_hi)));
        self.bw_lo.append_option(bbr.and_then(|bbr| bbr.bw_lo).map(bits));
        self.inflight_hi.append_option(bbr.and_then(|bbr| bbr.inflight_hi).map(u64::from));
        self.inflight_lo.append_option(bbr.and_then(|bbr| bbr.inflight_lo).map(u64::from));
        self.pacing_gain.append_option(bbr.map(|bbr| gain(bbr.pacing_gain)));
        self.cwnd_gain.append_option(bbr.map(|bbr| gain(bbr.cwnd_gain)));
    }

    pub(super) fn finish(mut self) -> [ArrowColumn; 8] {
        let column = ArrowColumn::new;
        [
            column("bbr_mode", "mode of BBR version 3", Arc::new(self.mode.finish())),
            column("bbr_phase", "mode, and phase of ProbeBW", Arc::new(self.phase.finish())),
            column(
                "bbr_bw_hi_bps",
                "maximum bandwidth of two cycles",
                Arc::new(self.bw_hi.finish()),
            ),
            column(
                "bbr_bw_lo_bps",
                "short-term bound of the bandwidth; null while unset",
                Arc::new(self.bw_lo.finish()),
            ),
            column(
                "bbr_inflight_hi_packets",
                "long-term bound of the flight; null while unset",
                Arc::new(self.inflight_hi.finish()),
            ),
            column(
                "bbr_inflight_lo_packets",
                "short-term bound of the flight; null while unset",
                Arc::new(self.inflight_lo.finish()),
            ),
            column("bbr_pacing_gain", "gain of the rate", Arc::new(self.pacing_gain.finish())),
            column("bbr_cwnd_gain", "gain of the window", Arc::new(self.cwnd_gain.finish())),
        ]
    }
}
