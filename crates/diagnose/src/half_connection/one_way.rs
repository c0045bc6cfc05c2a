//! How much longer than the shortest way packets took, by the timestamps of the host that sent them.
//!
//! A timestamp shows when its packet was sent (RFC 7323 section 4), by a clock whose offset is unknown and whose rate is
//! one of a few. So the least difference between arrival and timestamp is the empty path, and what is more is a wait
//! in one direction: a round trip that grows does not show in which.

use units::{Duration, Instant};

/// Ticks of the clocks in use: 1 ms on Linux, the BSDs, macOS and Windows; 4 and 10 ms on older kernels; 100 ms.
const TICKS: [u64; 4] = [1_000_000, 4_000_000, 10_000_000, 100_000_000];
/// Time after which the rate of the clock is clear.
const MIN_TIME: Duration = Duration::from_millis(100);
/// Clocks of hosts differ by less than one in this.
const MAX_SKEW: u64 = 2_000;

/// The delays of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct OneWayDelay {
    first: Option<(u32, Instant)>,
    /// The least difference seen, for a clock of each of the [`TICKS`].
    least: [i64; TICKS.len()],
    /// Index of the tick, once it is known.
    tick: Option<usize>,
}

impl OneWayDelay {
    /// Records a packet; returns by how much it was later than the earliest, 0 within the noise. `None` while that is
    /// not known.
    pub(crate) fn push(&mut self, stamp: u32, at: Instant) -> Option<Duration> {
        let (zero, start) = *self.first.get_or_insert((stamp, at));
        let ticks = i64::from(stamp.wrapping_sub(zero) as i32);
        let elapsed = at.since(start);
        let differences =
            TICKS.map(|tick| elapsed.as_nanos() as i64 - ticks.saturating_mul(tick as i64));
        for (least, difference) in self.least.iter_mut().zip(differences) {
            *least = (*least).min(difference);
        }
        let was_known = self.tick.is_some();
        if elapsed >= MIN_TIME && ticks > 0 {
            let rate = elapsed.as_nanos() / ticks as u64;
            // A queue that grows lets the clock seem slow, the more the less time has passed; nothing lets it seem fast
            // but the resolution.
            let tick = TICKS.iter().rposition(|&tick| tick <= rate + rate / 8);
            self.tick = match (self.tick, tick) {
                (Some(known), Some(tick)) => Some(known.min(tick)),
                (known, tick) => known.or(tick),
            };
        }
        let tick = self.tick.filter(|_| was_known)?;
        let late = (differences[tick] - self.least[tick]) as u64;
        let noise = TICKS[tick] + elapsed.as_nanos() / MAX_SKEW;
        Some(Duration::from_nanos(if late > noise { late } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_of_the_direction() {
        let mut delay = OneWayDelay::default();
        let mut pushed = |sent: u64, wait: u64| {
            delay.push(7 + sent as u32, Instant::ZERO + Duration::from_millis(20 + sent + wait))
        };
        for sent in 0..=100 {
            assert_eq!(pushed(sent, 0), None);
        }
        assert_eq!(pushed(200, 0), Some(Duration::ZERO));
        assert_eq!(pushed(300, 50).map(|wait| wait.as_millis()), Some(50));
        // Within a tick, and a clock that may be a little faster.
        assert_eq!(pushed(350, 1), Some(Duration::ZERO));
        assert_eq!(pushed(400, 0), Some(Duration::ZERO));
    }

    #[test]
    fn a_growing_queue_does_not_change_the_clock() {
        let mut delay = OneWayDelay::default();
        let mut last = None;
        for sent in 0..2_000_u64 {
            let at = Instant::ZERO + Duration::from_millis(sent + sent / 3);
            last = delay.push(sent as u32, at);
        }
        assert!(last.is_some_and(|wait| wait > Duration::from_millis(600)), "{last:?}");
    }

    /// ACKs of the first flights that arrive twenty times as slowly as they were sent: their clock seems to tick each
    /// 10 ms until more time has passed.
    #[test]
    fn a_queue_that_fills_at_once_does_not_hide_itself() {
        let mut delay = OneWayDelay::default();
        let mut last = None;
        // Twenty ACKs in as many ms, then each 20 ms, as fast as they leave.
        for sent in 0..200_u64 {
            let stamp = if sent < 20 { sent } else { 20 + (sent - 20) * 20 };
            let at = Instant::ZERO + Duration::from_millis(sent * 20);
            last = delay.push(stamp as u32, at);
        }
        assert!(last.is_some_and(|wait| wait > Duration::from_millis(350)), "{last:?}");
    }
}
