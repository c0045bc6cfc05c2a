//! Whether ACKs arrive at the rate of a full way back.
//!
//! Behind a busy bottleneck of the data the time between two ACKs is proportional to the bytes that they acknowledge;
//! behind one of the way back to their own length. Both proportions are fitted while a queue is standing: the one that
//! explains the times is that of the bottleneck.

use units::Instant;

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// Fewest intervals, and most that are kept.
const FEWEST: usize = 20;
const MOST: usize = 1 << 16;
/// The lengths explain all but this part of the time.
const EXACT: f64 = 0.05;
/// What is acknowledged leaves at least this many times as much unexplained, and this part of the time more.
const WORSE: f64 = 3.0;
const MARGIN: f64 = 0.005;

/// The time between two ACKs in ns, the length of the second, and the bytes that it acknowledges.
#[derive(Debug, Clone, Copy)]
struct AckInterval {
    gap: f64,
    length: f64,
    acked: f64,
}

/// Measures the intervals of ACKs.
#[derive(Debug, Default)]
pub(super) struct ReturnMeter {
    last: Option<Instant>,
    /// Bytes since, of ACKs that came at the same time.
    length: u64,
    acked: u64,
    intervals: Vec<AckInterval>,
}

impl ReturnMeter {
    /// An ACK of `length` bytes that newly acknowledges `acked`.
    pub(super) fn ack(&mut self, at: Instant, length: Option<u64>, acked: u64, is_queued: bool) {
        let Some(length) = length.filter(|_| is_queued) else {
            (self.last, self.length, self.acked) = (None, 0, 0);
            return;
        };
        self.length += length + HEADERS;
        self.acked += acked;
        let Some(last) = self.last.filter(|&last| at > last) else {
            if self.last.is_none() {
                (self.last, self.length, self.acked) = (Some(at), 0, 0);
            }
            return;
        };
        if self.intervals.len() < MOST {
            let gap = at.since(last).as_nanos() as f64;
            let (length, acked) = (self.length as f64, self.acked as f64);
            self.intervals.push(AckInterval { gap, length, acked });
        }
        (self.last, self.length, self.acked) = (Some(at), 0, 0);
    }

    /// Rate of the way back in bytes per second, if it is the limit.
    pub(super) fn rate(&self) -> Option<f64> {
        let all = &self.intervals;
        let sum = |of: fn(&AckInterval) -> f64| all.iter().map(of).sum::<f64>();
        let (time, length) = (sum(|one| one.gap), sum(|one| one.length));
        let acked = sum(|one| one.acked);
        if all.len() < FEWEST || time <= 0.0 || acked <= 0.0 {
            return None;
        }
        let unexplained = |of: fn(&AckInterval) -> f64, whole: f64| {
            let off = all.iter().map(|one| (one.gap - of(one) * time / whole).abs());
            off.sum::<f64>() / time
        };
        let by_length = unexplained(|one| one.length, length);
        let by_acked = unexplained(|one| one.acked, acked);
        let is_of_return = by_length <= EXACT && by_acked >= WORSE * by_length + MARGIN;
        is_of_return.then(|| length * 1e9 / time)
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    /// ACKs of 40 bytes for one to four packets, whose spacing follows from their length or from what they acknowledge.
    #[test]
    fn the_ratio_that_is_constant_shows_the_bottleneck() {
        for of_return in [true, false] {
            let mut meter = ReturnMeter::default();
            let mut at = Instant::ZERO;
            for n in 0..100_u64 {
                let acked = (1 + n % 4) * 1_200;
                let gap = if of_return { 68 * 100_000 } else { acked * 1_000 };
                at += Duration::from_nanos(gap);
                meter.ack(at, Some(40), acked, true);
            }
            assert_eq!(meter.rate().is_some(), of_return);
        }
    }
}
