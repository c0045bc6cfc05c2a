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
/// Packets kept until then.
const MAX_EARLY: usize = 256;
/// Clocks of hosts differ by less than one in this.
const MAX_SKEW: u64 = 2_000;

/// The delays of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct OneWayDelay {
    first: Option<(u32, Instant)>,
    /// Packets before the rate is known.
    early: Vec<(u32, Instant)>,
    /// The tick in ns, and the least difference seen.
    clock: Option<(u64, i64)>,
}

impl OneWayDelay {
    /// Records a packet; returns by how much it was later than the earliest, 0 within the noise. `None` while that is
    /// not known.
    pub(crate) fn push(&mut self, stamp: u32, at: Instant) -> Option<Duration> {
        let (zero, start) = *self.first.get_or_insert((stamp, at));
        let ticks = i64::from(stamp.wrapping_sub(zero) as i32);
        let elapsed = at.since(start);
        let difference = |tick: u64| elapsed.as_nanos() as i64 - ticks.saturating_mul(tick as i64);
        let Some((tick, least)) = &mut self.clock else {
            if self.early.len() < MAX_EARLY {
                self.early.push((stamp, at));
            }
            if elapsed >= MIN_TIME && ticks > 0 {
                let rate = elapsed.as_nanos() / ticks as u64;
                // A queue that grows lets the clock seem slow, twice in slow start; nothing lets it seem fast but the
                // resolution.
                let tick = TICKS.into_iter().rfind(|tick| *tick <= rate + rate / 8)?;
                let early = self.early.drain(..).map(|(stamp, at)| {
                    let ticks = i64::from(stamp.wrapping_sub(zero) as i32);
                    at.since(start).as_nanos() as i64 - ticks.saturating_mul(tick as i64)
                });
                self.clock = early.min().map(|least| (tick, least));
                self.early = Vec::new();
            }
            return None;
        };
        let difference = difference(*tick);
        *least = (*least).min(difference);
        let late = (difference - *least) as u64;
        let noise = *tick + elapsed.as_nanos() / MAX_SKEW;
        Some(Duration::from_nanos(late.saturating_sub(noise)))
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
        // Less a tick, and a clock that may be a little faster.
        assert_eq!(pushed(300, 50).map(|wait| wait.as_millis()), Some(48));
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
}
