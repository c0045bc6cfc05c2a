//! The pacing rate and the burst size (`bbr_set_pacing_rate`, `bbr_tso_segs`).

use super::{BW_UNIT, Bbr3};

/// `GSO_LEGACY_MAX_SIZE`.
const GSO_LEGACY_MAX_SIZE: u64 = 65_536;
/// A burst is the data of one second shifted right by this (`sk_pacing_shift`).
const SHIFT: u32 = 10;
/// `net.ipv4.tcp_min_tso_segs`.
const MIN_TSO_SEGS: u32 = 2;
/// Room that a burst leaves for headers (`MAX_TCP_HEADER` of a kernel without tunnels and WLAN).
const MAX_TCP_HEADER: u64 = 192;

impl Bbr3 {
    /// `bbr_bw_to_pacing_rate`.
    fn bytes_per_second(&self, bw: u64, gain: u32) -> u64 {
        let rate = (u128::from(bw) * u128::from(self.mss) * u128::from(gain)) >> 8;
        let share = 1_000_000 / 100 * (100 - self.params.pacing_margin_percent);
        let rate = (rate * u128::from(share)) >> 24;
        u64::try_from(rate).unwrap_or(u64::MAX).max(1)
    }

    /// `bbr_init_pacing_rate_from_rtt`; 0 for an unknown RTT.
    pub(super) fn init_pacing_rate(&mut self, srtt_us: u32) {
        self.has_seen_rtt |= srtt_us > 0;
        let rtt = if srtt_us > 0 { u64::from(srtt_us) } else { 1_000 };
        let bw = u64::from(self.snd_cwnd) * BW_UNIT / rtt;
        // A 32-bit bandwidth.
        let bw = bw & u64::from(u32::MAX);
        self.pacing_rate = self.bytes_per_second(bw, self.params.startup_pacing_gain);
    }

    /// `bbr_set_pacing_rate`: in startup the rate only increases.
    pub(super) fn set_pacing_rate(&mut self, srtt_us: u32, bw: u32, gain: u32) {
        let rate = self.bytes_per_second(u64::from(bw), gain);
        if !self.has_seen_rtt && srtt_us > 0 {
            self.init_pacing_rate(srtt_us);
        }
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `bbr_tso_segs_generic`.
    fn tso_segs_generic(&self, mss: u32, gso_max_size: u64) -> u32 {
        let mut bytes = self.pacing_rate >> SHIFT;
        if self.params.tso_rtt_shift > 0 {
            let halvings = self.min_rtt >> self.params.tso_rtt_shift;
            if halvings < u32::BITS {
                bytes += GSO_LEGACY_MAX_SIZE >> halvings;
            }
        }
        // min_t(u32, …)
        let bytes = u64::from(bytes as u32).min(gso_max_size - 1 - MAX_TCP_HEADER);
        ((bytes / u64::from(mss.max(1))) as u32).max(MIN_TSO_SEGS)
    }

    /// `bbr_tso_segs`: packets of a burst, of which the socket holds `gso_max_size` bytes at most.
    pub(super) fn tso_segs(&self, gso_max_size: u64) -> u32 {
        self.tso_segs_generic(self.mss, gso_max_size)
    }

    /// `bbr_tso_segs_goal`.
    pub(super) fn tso_segs_goal(&self) -> u32 {
        self.tso_segs_generic(self.mss, GSO_LEGACY_MAX_SIZE)
    }
}
