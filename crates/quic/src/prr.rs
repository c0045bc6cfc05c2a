//! Proportional rate reduction of QUIC senders: RFC 6937 as quiche 0.30 has it (`recovery/congestion/prr.rs`,
//! `LegacyRecovery::cwnd_available`).
//!
//! What an acknowledgment in a recovery allows to be sent is added to the room in the window, and what is left of it
//! when the recovery ends stays.

/// The state of a recovery, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuicRateReduction {
    /// `prr_delivered`.
    delivered: u64,
    /// `recoverfs`: in flight when the recovery began.
    flight: u64,
    /// `prr_out`.
    sent: u64,
    /// `snd_cnt`: what may be sent beside the room in the window.
    allowed: u64,
}

impl QuicRateReduction {
    /// No recovery.
    pub(crate) const NONE: Self = Self { delivered: 0, flight: 0, sent: 0, allowed: 0 };

    /// A packet in flight is sent.
    pub(crate) const fn on_sent(&mut self, size: u64) {
        self.sent += size;
        self.allowed = self.allowed.saturating_sub(size);
    }

    /// A recovery begins with `flight` bytes in flight, those lost included.
    pub(crate) const fn begin(&mut self, flight: u64) {
        *self = Self { flight, ..Self::NONE };
    }

    /// A packet of the recovery is acknowledged while `pipe` bytes are in flight.
    pub(crate) fn on_acked(&mut self, size: u64, pipe: u64, ssthresh: u64, datagram: u64) {
        self.delivered += size;
        self.allowed = if pipe <= ssthresh {
            // The reduction bound of slow start.
            let limit = self.delivered.saturating_sub(self.sent).max(size) + datagram;
            limit.min(ssthresh - pipe)
        } else if self.flight > 0 {
            self.delivered.saturating_mul(ssthresh).div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            0
        };
    }

    /// Bytes that may be sent beside the room in the window.
    pub(crate) const fn allowed(&self) -> u64 {
        self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_sends_in_proportion_to_what_is_delivered() {
        let mut prr = QuicRateReduction::NONE;
        prr.begin(100_000);
        prr.on_acked(1_000, 99_000, 70_000, 1_200);
        assert_eq!(prr.allowed(), 700);
        prr.on_sent(600);
        assert_eq!(prr.allowed(), 100);
        prr.on_acked(1_000, 98_000, 70_000, 1_200);
        assert_eq!(prr.allowed(), 800);
    }

    #[test]
    fn below_the_threshold_it_sends_a_datagram_more_than_is_delivered() {
        let mut prr = QuicRateReduction::NONE;
        prr.begin(100_000);
        prr.on_acked(1_000, 50_000, 70_000, 1_200);
        assert_eq!(prr.allowed(), 2_200);
        prr.on_acked(1_000, 69_500, 70_000, 1_200);
        assert_eq!(prr.allowed(), 500);
    }
}
