//! PRR of RFC 6937 section 3, with a choice of bounds below the threshold.

use super::proportional;

/// Reduction bound below the threshold (section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum ReductionBound {
    /// Conservative reduction bound: the delivered bytes and no more.
    Crb,
    /// Slow-start reduction bound: one segment more.
    Ssrb,
}

/// The counters of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Prr6937 {
    /// The bound chosen.
    pub bound: ReductionBound,
    /// Bytes delivered since it began.
    pub prr_delivered: u64,
    /// Bytes sent since it began.
    pub prr_out: u64,
    /// Bytes in flight when it began, `snd.nxt - snd.una`.
    pub recover_fs: u64,
}

impl Prr6937 {
    /// A recovery begins with `flight` bytes in flight.
    pub const fn begin(bound: ReductionBound, flight: u64) -> Self {
        Self { bound, prr_delivered: 0, prr_out: 0, recover_fs: flight }
    }

    /// `bytes` were sent, new or retransmitted.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.prr_out += bytes;
    }

    /// `delivered` bytes are newly acknowledged or SACKed, with `pipe` bytes in flight; returns the
    /// congestion window: `pipe` plus the bytes that may be sent.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.prr_delivered += delivered;
        let sndcnt = if pipe > ssthresh {
            proportional(self.prr_delivered, ssthresh, self.recover_fs, self.prr_out)
        } else {
            let conserved = self.prr_delivered.saturating_sub(self.prr_out);
            let limit = match self.bound {
                ReductionBound::Crb => conserved,
                ReductionBound::Ssrb => conserved.max(delivered) + mss,
            };
            limit.min(ssthresh - pipe)
        };
        pipe + sndcnt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_differ_by_a_segment() {
        // Twenty in flight and ten lost at once: ten are left, the threshold is fourteen.
        for (bound, window) in [(ReductionBound::Crb, 11), (ReductionBound::Ssrb, 12)] {
            let mut prr = Prr6937::begin(bound, 20);
            assert_eq!(prr.on_ack(1, 10, 14, 1), window);
        }
    }

    #[test]
    fn the_proportion_is_rounded_up() {
        let mut prr = Prr6937::begin(ReductionBound::Crb, 20);
        // 1 * 14 / 20 = 0.7
        assert_eq!(prr.on_ack(1, 19, 14, 1), 20);
        prr.on_sent(1);
        // 2 * 14 / 20 = 1.4
        assert_eq!(prr.on_ack(1, 19, 14, 1), 20);
        prr.on_sent(1);
        // 3 * 14 / 20 = 2.1, two sent
        assert_eq!(prr.on_ack(1, 19, 14, 1), 20);
        prr.on_sent(1);
        // 4 * 14 / 20 = 2.8, three sent
        assert_eq!(prr.on_ack(1, 19, 14, 1), 19);
    }
}
