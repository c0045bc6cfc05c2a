//! The degree of reordering, in packets: Linux's `tp->reordering`.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_check_sack_reordering, tcp_sacktag_one,
//! tcp_clean_rtx_queue, tcp_dsack_seen). RACK does not use the metric; it decides whether SACKs
//! alone raise the window, and `ss -i` shows it.

use units::Offset;

/// `net.ipv4.tcp_reordering`.
const INITIAL: u32 = 3;
/// `net.ipv4.tcp_max_reordering`.
const LARGEST: u64 = 300;

/// The reordering metric of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct ReorderingMetric {
    metric: u32,
    seen: u32,
    dsack_dups: u32,
}

impl ReorderingMetric {
    /// The state before any reordering.
    pub const fn new() -> Self {
        Self { metric: INITIAL, seen: 0, dsack_dups: 0 }
    }

    /// A packet at `low`, never retransmitted, arrived although `highest`, the end of the highest
    /// SACKed packet, had been SACKed before.
    pub fn on_reordered(&mut self, low: Offset, highest: Offset, mss: u64) {
        if low >= highest {
            return;
        }
        let distance = highest - low;
        if mss > 0 && distance > u64::from(self.metric) * mss {
            self.metric = distance.div_ceil(mss).min(LARGEST) as u32;
        }
        self.seen = self.seen.saturating_add(1);
    }

    /// Without SACK more duplicates arrived than the `packets` outstanding explain
    /// (tcp_check_reno_reordering).
    pub fn on_reno(&mut self, packets: u64) {
        self.metric = packets.min(LARGEST) as u32;
        self.seen = self.seen.saturating_add(1);
    }

    /// A timeout with `sacked` packets SACKed, but no recovery: the degree was overestimated (tcp_enter_loss).
    pub fn on_timeout(&mut self, sacked: u64) {
        if sacked >= u64::from(INITIAL) {
            self.metric = self.metric.min(INITIAL);
        }
    }

    /// A D-SACK reported `packets` duplicate packets.
    pub fn on_duplicate(&mut self, packets: u64) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.dsack_dups = self.dsack_dups.saturating_add(packets);
    }

    /// Degree of reordering in packets, with SACK at least 3.
    pub const fn metric(&self) -> u32 {
        self.metric
    }

    /// Number of reordering events (`reord_seen`).
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// Packets reported by D-SACKs (`dsack_dups`).
    pub const fn dsack_dups(&self) -> u32 {
        self.dsack_dups
    }

    /// True if SACKs alone raise the window (tcp_may_raise_cwnd).
    pub const fn grows_on_reports(&self) -> bool {
        self.metric > INITIAL
    }
}

impl Default for ReorderingMetric {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_is_the_largest_distance_in_packets() {
        let mut reordering = ReorderingMetric::new();
        reordering.on_reordered(Offset(8_001), Offset(10_001), 1_000);
        assert_eq!((reordering.metric(), reordering.seen()), (3, 1));
        assert!(!reordering.grows_on_reports());
        reordering.on_reordered(Offset(2_001), Offset(10_001), 1_000);
        assert_eq!((reordering.metric(), reordering.seen()), (8, 2));
        assert!(reordering.grows_on_reports());
        // Half a packet counts as one; the highest packet itself is not reordered.
        reordering.on_reordered(Offset(501), Offset(10_001), 1_000);
        assert_eq!(reordering.metric(), 10);
        reordering.on_reordered(Offset(10_001), Offset(10_001), 1_000);
        assert_eq!(reordering.seen(), 3);
        reordering.on_reordered(Offset(1), Offset(1_000_001), 1_000);
        assert_eq!(reordering.metric(), 300);
    }
    #[test]
    fn a_timeout_with_three_packets_sacked_shows_that_the_metric_was_too_high() {
        // tcp_enter_loss of 6.12.
        let mut reordering = ReorderingMetric::new();
        reordering.on_reordered(Offset(1), Offset(10_001), 1_000);
        reordering.on_timeout(2);
        assert_eq!(reordering.metric(), 10);
        reordering.on_timeout(3);
        assert_eq!((reordering.metric(), reordering.seen()), (3, 1));
    }
}
