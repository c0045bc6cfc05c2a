//! The probe timeout: RFC 9002 section 6.2.

use units::Duration;

use crate::rtt::Rtt;

/// The probe timeout parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicPtoRule {
    /// `kInitialRtt`: round-trip time assumed before the first sample.
    pub initial_rtt: Duration,
    /// Probe packets per timeout: one or two (section 6.2.4).
    pub probes: u32,
    /// Consecutive timeouts without a packet from the peer after which the connection is closed, in
    /// place of its idle timeout (RFC 9000 section 10.1).
    pub max_timeouts: u32,
}

/// The PTO period, from the last ack-eliciting packet; doubled at each consecutive timeout. The
/// peer's `max_ack_delay` counts for application data only (section 6.2.1).
pub(crate) fn period(
    rtt: &Rtt,
    granularity: Duration,
    max_ack_delay: Duration,
    timeouts: u32,
) -> Duration {
    let once = rtt.timeout(granularity) + max_ack_delay;
    once.saturating_mul(1_u64 << timeouts.min(32))
}

#[cfg(test)]
mod tests {
    use crate::rtt::RttArithmetic;
    use units::Instant;

    use super::*;

    #[test]
    fn it_is_the_round_trip_with_its_variance_and_the_peers_delay_doubled_each_time() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new(ms(333), RttArithmetic::Nanoseconds);
        rtt.on_sample(Instant::ZERO, ms(100), Duration::ZERO);
        let period = |delay, timeouts| period(&rtt, ms(1), ms(delay), timeouts);
        // 100 + 4 * 50.
        assert_eq!([period(0, 0), period(25, 0), period(25, 2)], [ms(300), ms(325), ms(1_300)]);
    }
}
