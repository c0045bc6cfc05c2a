//! PRR of RFC 9937: the bound depends on whether the acknowledgment is safe.

use super::proportional;

/// The flight when a recovery began (`RecoverFS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightAtRecovery {
    /// `snd.nxt - snd.una`, before the acknowledgment that began it.
    pub outstanding: u64,
    /// Bytes SACKed before it.
    pub sacked: u64,
    /// Bytes it newly SACKed.
    pub newly_sacked: u64,
    /// Bytes it newly acknowledged.
    pub newly_acked: u64,
}

/// An acknowledgment in recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prr9937Input {
    /// Bytes newly acknowledged or SACKed (`DeliveredData`).
    pub delivered: u64,
    /// Bytes in flight (`inflight`).
    pub inflight: u64,
    /// It moves `snd.una` and shows no new loss (`SafeACK`).
    pub safe: bool,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Payload of a full segment.
    pub smss: u64,
}

/// The counters of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Prr9937 {
    /// Bytes delivered since it began.
    pub prr_delivered: u64,
    /// Bytes sent since it began.
    pub prr_out: u64,
    /// Bytes in flight when it began.
    pub recover_fs: u64,
}

impl Prr9937 {
    /// A recovery begins.
    pub const fn begin(flight: &FlightAtRecovery) -> Self {
        let unreported = flight.outstanding.saturating_sub(flight.sacked);
        let recover_fs = unreported + flight.newly_sacked + flight.newly_acked;
        Self { prr_delivered: 0, prr_out: 0, recover_fs }
    }

    /// `bytes` were sent, new or retransmitted.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.prr_out += bytes;
    }

    /// Processes an acknowledgment; returns the congestion window, `inflight` plus the bytes that
    /// may be sent, or `None` if it delivered nothing and the window is unchanged. When recovery
    /// ends the window is `ssthresh`.
    pub fn on_ack(&mut self, ack: &Prr9937Input) -> Option<u64> {
        if ack.delivered == 0 {
            return None;
        }
        self.prr_delivered += ack.delivered;
        let mut sndcnt = if ack.inflight > ack.ssthresh {
            proportional(self.prr_delivered, ack.ssthresh, self.recover_fs, self.prr_out)
        } else {
            let conserved = self.prr_delivered.saturating_sub(self.prr_out);
            let extra = if ack.safe { ack.smss } else { 0 };
            (conserved.max(ack.delivered) + extra).min(ack.ssthresh - ack.inflight)
        };
        if self.prr_out == 0 && sndcnt == 0 {
            // The first retransmission is always sent.
            sndcnt = ack.smss;
        }
        Some(ack.inflight + sndcnt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: FlightAtRecovery =
        FlightAtRecovery { outstanding: 20, sacked: 3, newly_sacked: 1, newly_acked: 0 };

    fn ack(inflight: u64, safe: bool) -> Prr9937Input {
        Prr9937Input { delivered: 1, inflight, safe, ssthresh: 9, smss: 1 }
    }

    #[test]
    fn the_flight_excludes_bytes_sacked_before() {
        assert_eq!(Prr9937::begin(&FLIGHT).recover_fs, 18);
    }

    #[test]
    fn a_safe_acknowledgment_allows_a_segment_more() {
        let mut prr = Prr9937::begin(&FLIGHT);
        prr.on_sent(1);
        assert_eq!(prr.on_ack(&ack(5, false)), Some(6));
        prr.on_sent(1);
        assert_eq!(prr.on_ack(&ack(5, true)), Some(7));
        assert_eq!(prr.on_ack(&ack(9, true)), Some(9));
        assert_eq!(prr.on_ack(&Prr9937Input { delivered: 0, ..ack(5, true) }), None);
    }

    #[test]
    fn the_first_retransmission_is_always_sent() {
        // At the threshold nothing else may be sent.
        let mut prr = Prr9937::begin(&FLIGHT);
        assert_eq!(prr.on_ack(&ack(9, false)), Some(10));
        prr.on_sent(1);
        assert_eq!(prr.on_ack(&ack(9, false)), Some(9));
    }
}
