//! PRR of Linux 6.18, counted in packets.
//!
//! Source: tcp_input.c (tcp_init_cwnd_reduction, tcp_cwnd_reduction, tcp_end_cwnd_reduction), as
//! replayed on 5986 recorded acknowledgments.

use super::proportional;

/// An acknowledgment in recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrrLinuxInput {
    /// Packets newly acknowledged or SACKed.
    pub acked: u64,
    /// Packets in flight, after losses were marked and before anything is sent.
    pub in_flight: u64,
    /// It advanced `snd_una`.
    pub una_advanced: bool,
    /// It marked packets lost.
    pub newly_lost: bool,
    /// Slow-start threshold, in packets.
    pub ssthresh: u64,
}

/// The counters of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct PrrLinux {
    /// Packets delivered since it began.
    pub prr_delivered: u64,
    /// Packets sent since it began.
    pub prr_out: u64,
    /// Congestion window when it began.
    pub prior_cwnd: u64,
}

impl PrrLinux {
    /// A recovery begins with a window of `cwnd` packets.
    pub const fn begin(cwnd: u64) -> Self {
        Self { prr_delivered: 0, prr_out: 0, prior_cwnd: cwnd }
    }

    /// `packets` packets were sent, new or retransmitted.
    pub const fn on_sent(&mut self, packets: u64) {
        self.prr_out += packets;
    }

    /// Processes an acknowledgment; returns the congestion window in packets, or `None` if it
    /// delivered nothing and the window is unchanged. When recovery ends the window is `ssthresh`.
    pub fn on_ack(&mut self, ack: &PrrLinuxInput) -> Option<u64> {
        if ack.acked == 0 || self.prior_cwnd == 0 {
            return None;
        }
        self.prr_delivered += ack.acked;
        let sndcnt = if ack.in_flight > ack.ssthresh {
            proportional(self.prr_delivered, ack.ssthresh, self.prior_cwnd, self.prr_out)
        } else {
            let conserved = self.prr_delivered.saturating_sub(self.prr_out).max(ack.acked);
            let extra = u64::from(ack.una_advanced && !ack.newly_lost);
            (conserved + extra).min(ack.ssthresh - ack.in_flight)
        };
        // The first retransmission is always sent.
        let least = u64::from(self.prr_out == 0);
        Some(ack.in_flight + sndcnt.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_at_entry_then_one_for_every_two_delivered() {
        // Of 909 packets 454 are to remain: 1 * 454 / 909 is rounded up.
        let mut prr = PrrLinux::begin(909);
        let ack = PrrLinuxInput {
            acked: 1,
            in_flight: 905,
            una_advanced: false,
            newly_lost: true,
            ssthresh: 454,
        };
        assert_eq!(prr.on_ack(&ack), Some(906));
        prr.on_sent(1);
        // 2 * 454 / 909 = 0.99: one, already sent.
        assert_eq!(
            prr.on_ack(&PrrLinuxInput { newly_lost: false, in_flight: 905, ..ack }),
            Some(905)
        );
        assert_eq!(
            prr.on_ack(&PrrLinuxInput { newly_lost: false, in_flight: 904, ..ack }),
            Some(905)
        );
    }

    #[test]
    fn below_the_threshold_an_advance_without_loss_adds_one() {
        let ack = PrrLinuxInput {
            acked: 1,
            in_flight: 3,
            una_advanced: true,
            newly_lost: false,
            ssthresh: 10,
        };
        let window = |ack: PrrLinuxInput| {
            let mut prr = PrrLinux { prr_delivered: 4, prr_out: 4, prior_cwnd: 20 };
            prr.on_ack(&ack)
        };
        assert_eq!(window(ack), Some(5));
        assert_eq!(window(PrrLinuxInput { newly_lost: true, ..ack }), Some(4));
        assert_eq!(window(PrrLinuxInput { una_advanced: false, ..ack }), Some(4));
        assert_eq!(window(PrrLinuxInput { in_flight: 10, ..ack }), Some(10));
        assert_eq!(window(PrrLinuxInput { acked: 0, ..ack }), None);
    }
}
