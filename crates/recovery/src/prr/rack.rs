//! PRR of FreeBSD's RACK stack.
//!
//! Source: tcp_stacks/rack.c (rack_cong_signal, rack_ack_received, rack_post_recovery; RFC 6937).
//! It counts a credit of bytes (`prr_sndcnt`) and leaves the congestion window alone.

use units::ratio::scaled;

/// The counters of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct PrrRack {
    /// Bytes delivered since it began.
    pub prr_delivered: u64,
    /// Bytes sent since it began.
    pub prr_out: u64,
    /// Bytes in flight when it began.
    pub recovery_fs: u64,
    /// Bytes that may be sent.
    pub prr_sndcnt: u64,
}

impl PrrRack {
    /// A recovery begins with `flight` bytes in flight: one segment may be sent.
    pub const fn begin(flight: u64, mss: u64) -> Self {
        Self { prr_delivered: 0, prr_out: 0, recovery_fs: flight, prr_sndcnt: mss }
    }

    /// `bytes` were sent, new or retransmitted.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.prr_out += bytes;
        self.prr_sndcnt = self.prr_sndcnt.saturating_sub(bytes);
    }

    /// `delivered` bytes are newly acknowledged or SACKed, with `pipe` bytes in flight; returns the
    /// credit.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.prr_delivered += delivered;
        self.prr_sndcnt = if pipe > ssthresh {
            // The kernel divides, rounds down and adds one byte.
            let due = scaled(self.prr_delivered, ssthresh, self.recovery_fs.max(1));
            (due + 1).saturating_sub(self.prr_out)
        } else {
            let conserved = self.prr_delivered.saturating_sub(self.prr_out);
            (conserved.max(delivered) + mss).min(ssthresh - pipe)
        };
        self.prr_sndcnt
    }

    /// All data is in flight: no credit is needed.
    pub const fn on_limited_application(&mut self, delivered: u64) {
        self.prr_delivered += delivered;
        self.prr_sndcnt = 0;
    }

    /// Recovery ends: the rest of the credit that may be added to the window, at most `segments`
    /// segments (`rack_prr_addbackmax`, 2).
    pub fn left(&self, segments: u64, mss: u64) -> u64 {
        self.prr_sndcnt.min(segments * mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_threshold_the_proportion_is_rounded_down_plus_one_byte() {
        let mut prr = PrrRack::begin(10_000, 1_000);
        assert_eq!(prr.prr_sndcnt, 1_000);
        prr.on_sent(1_000);
        assert_eq!(prr.prr_sndcnt, 0);
        // 3001 * 5000 / 10000 = 1500.5
        assert_eq!(prr.on_ack(3_001, 6_000, 5_000, 1_000), 501);
        // At the threshold nothing may be sent.
        assert_eq!(prr.on_ack(1_000, 5_000, 5_000, 1_000), 0);
        // Below it: delivered 5001, sent 1000, and a segment, but at most up to the threshold.
        assert_eq!(prr.on_ack(1_000, 1_000, 9_000, 1_000), 5_001);
        assert_eq!(prr.on_ack(0, 1_000, 3_000, 1_000), 2_000);
        assert_eq!((prr.left(2, 500), prr.left(0, 500)), (1_000, 0));
    }
}
