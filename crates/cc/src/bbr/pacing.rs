//! The pacing rate and the burst size (`bbr_set_pacing_rate`, `bbr_tso_segs_goal`).

use super::{BW_UNIT, Bbr, HIGH_GAIN};

/// Percentage by which the rate is below the bandwidth (`bbr_pacing_margin_percent`).
const MARGIN: u64 = 1;
/// Below this rate, in bytes per second, packets are sent one by one (`bbr_min_tso_rate`).
const SLOW: u64 = 1_200_000 >> 3;
/// Maximum bytes of a burst: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`.
const LARGEST_BURST: u64 = 65_536 - 1 - 320;
/// A burst is the data of one second shifted right by this (`sk_pacing_shift`).
const SHIFT: u32 = 10;

impl Bbr {
    /// `bbr_rate_bytes_per_sec`.
    fn bytes_per_second(&self, bw: u64, gain: u32) -> u64 {
        let rate = (u128::from(bw) * u128::from(self.mss) * u128::from(gain)) >> 8;
        let rate = (rate * u128::from(1_000_000 / 100 * (100 - MARGIN))) >> 24;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// `bbr_init_pacing_rate_from_rtt`; 0 for an unknown RTT.
    pub(super) fn init_pacing_rate(&mut self, srtt_us: u32) {
        self.has_seen_rtt = srtt_us > 0;
        let rtt = if self.has_seen_rtt { u64::from(srtt_us) } else { 1_000 };
        let bw = u64::from(self.snd_cwnd) * BW_UNIT / rtt;
        self.pacing_rate = self.bytes_per_second(bw, HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: in startup the rate only increases.
    pub(super) fn set_pacing_rate(&mut self, srtt_us: u32, bw: u64, gain: u32) {
        let rate = self.bytes_per_second(bw, gain);
        if !self.has_seen_rtt && srtt_us > 0 {
            self.init_pacing_rate(srtt_us);
        }
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `bbr_min_tso_segs`: minimum burst in packets.
    pub const fn min_tso_segs(&self) -> u32 {
        if self.pacing_rate < SLOW { 1 } else { 2 }
    }

    /// `bbr_tso_segs_goal`.
    pub(super) fn burst(&self) -> u32 {
        let bytes = (self.pacing_rate >> SHIFT).min(LARGEST_BURST);
        let packets = (bytes / u64::from(self.mss)) as u32;
        packets.max(self.min_tso_segs()).min(0x7f)
    }
}
