//! The rate of the bottleneck by a clock of a millisecond, which does not show the spacing of packets.
//!
//! Of all intervals between ACKs in which the bottleneck was busy the bytes and the times are added: a time that is rounded is
//! too long as often as too short. ACKs of one tick are one. The wait must exceed the interval by a tick, for both are rounded.

use units::Duration;

use super::spacing::SpacedAck;

/// The tick, and least sum of the times in ticks: each interval is off by up to one.
pub(super) const TICK: u64 = 1_000_000;
const LEAST: u64 = 100;
/// Fewest intervals.
const FEWEST: u64 = 20;

/// Sums of intervals.
#[derive(Debug, Default)]
pub(super) struct CoarseSpacing {
    /// Arrival and bytes sent up to the packet that the first ACK of the last tick acknowledged.
    last: Option<(u64, u64)>,
    /// Bytes acknowledged since.
    acked: u64,
    /// Time of the intervals in ns, and their bytes.
    pub(super) busy: (u64, u64),
    count: u64,
}

impl CoarseSpacing {
    /// An ACK of data that the newest packet waited `waited` for, with the delay that the peer reports taken off.
    pub(super) fn ack(&mut self, ack: &SpacedAck, waited: Duration) {
        let at = ack.at.as_nanos().saturating_sub(ack.delay.unwrap_or_default().as_nanos());
        let Some((from, total)) = self.last else {
            self.last = Some((at, ack.total));
            return;
        };
        self.acked += ack.acked;
        if at <= from {
            return;
        }
        // All that was sent between has arrived.
        let covers_all = self.acked == ack.total.saturating_sub(total);
        let interval = at - from;
        if covers_all && waited.as_nanos() >= interval + TICK {
            self.busy = (self.busy.0 + interval, self.busy.1 + self.acked);
            self.count += 1;
        }
        (self.last, self.acked) = (Some((at, ack.total)), 0);
    }

    /// The rate in bytes per second.
    pub(super) fn rate(&self) -> Option<f64> {
        let (ns, bytes) = self.busy;
        let is_long = ns >= LEAST * TICK && self.count >= FEWEST;
        is_long.then(|| bytes as f64 * 1e9 / ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Instant;

    /// ACKs of two packets of 1,200 bytes each 1,660 µs by a clock of 1 ms, of packets that wait this many ms.
    fn rate(waited: u64) -> Option<f64> {
        let mut coarse = CoarseSpacing::default();
        for n in 0..1_000_u64 {
            let ack = SpacedAck {
                at: Instant::from_nanos(n * 1_660_000 / TICK * TICK),
                delay: Some(Duration::ZERO),
                packets: 2,
                acked: 2_400,
                total: (n + 1) * 2_400,
                round_trip: Duration::from_millis(20 + waited),
                min_rtt: Duration::from_millis(20),
            };
            coarse.ack(&ack, Duration::from_millis(waited));
        }
        coarse.rate()
    }

    #[test]
    fn rounded_times_add_up_to_the_rate() {
        let found = rate(30).unwrap();
        assert!((found / (2_400.0 / 1.66e-3) - 1.0).abs() < 0.01, "{found}");
        assert_eq!(rate(0), None);
    }
}
