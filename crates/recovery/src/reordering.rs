//! How far apart the network delivers, in packets: Linux's `tp->reordering`.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_check_sack_reordering, tcp_sacktag_one,
//! tcp_clean_rtx_queue, tcp_dsack_seen). RACK does without the metric; it decides whether a window
//! grows on reports, and users see it in `ss -i`.

use units::Offset;

/// `net.ipv4.tcp_reordering`.
const INITIAL: u32 = 3;
/// `net.ipv4.tcp_max_reordering`.
const LARGEST: u64 = 300;

/// The metric of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Reordering {
    metric: u32,
    seen: u32,
    dsack_dups: u32,
}

impl Reordering {
    /// Nothing was seen yet.
    pub const fn new() -> Self {
        Self { metric: INITIAL, seen: 0, dsack_dups: 0 }
    }

    /// A packet at `low`, never sent again, arrived although `highest`, behind the last one that was
    /// reported, had been reported before.
    pub fn on_late(&mut self, low: Offset, highest: Offset, mss: u64) {
        if low >= highest {
            return;
        }
        let distance = highest - low;
        if mss > 0 && distance > u64::from(self.metric) * mss {
            self.metric = distance.div_ceil(mss).min(LARGEST) as u32;
        }
        self.seen = self.seen.saturating_add(1);
    }

    /// So many packets were reported to have arrived twice.
    pub fn on_duplicate(&mut self, packets: u64) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.dsack_dups = self.dsack_dups.saturating_add(packets);
    }

    /// Packets between the first and the last of those that changed places, at least 3.
    pub const fn metric(&self) -> u32 {
        self.metric
    }

    /// Times that packets were seen to change places (`reord_seen`).
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// Packets reported to have arrived twice (`dsack_dups`).
    pub const fn dsack_dups(&self) -> u32 {
        self.dsack_dups
    }

    /// Does a window grow on reports alone (tcp_may_raise_cwnd)?
    pub const fn grows_on_reports(&self) -> bool {
        self.metric > INITIAL
    }
}

impl Default for Reordering {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_is_the_largest_distance_in_packets() {
        let mut reordering = Reordering::new();
        reordering.on_late(Offset(8_001), Offset(10_001), 1_000);
        assert_eq!((reordering.metric(), reordering.seen()), (3, 1));
        assert!(!reordering.grows_on_reports());
        reordering.on_late(Offset(2_001), Offset(10_001), 1_000);
        assert_eq!((reordering.metric(), reordering.seen()), (8, 2));
        assert!(reordering.grows_on_reports());
        // Half a packet counts as one; nothing is late behind the last one.
        reordering.on_late(Offset(501), Offset(10_001), 1_000);
        assert_eq!(reordering.metric(), 10);
        reordering.on_late(Offset(10_001), Offset(10_001), 1_000);
        assert_eq!(reordering.seen(), 3);
        reordering.on_late(Offset(1), Offset(1_000_001), 1_000);
        assert_eq!(reordering.metric(), 300);
    }
}
