//! A queue in the order of departure times: when a packet may leave.

use units::{Duration, Instant};

use super::{HeldPacket, NANOS, nanos};
use crate::invariants::{HoldTime, TimeQueue, TimedLine};

/// A departure at this time.
pub(super) struct TimedDeparture {
    pub(super) law: HoldTime,
    pub(super) now: Instant,
}

impl TimedDeparture {
    /// Returns when a packet may leave at the earliest, and updates the last departure.
    pub(super) fn earliest(&self, last: &mut Instant, held: &HeldPacket) -> Instant {
        let HoldTime::ByTime(TimeQueue { least, early, line, at_once, .. }) = self.law else {
            return self.now;
        };
        if at_once && self.now == held.entered {
            return self.now;
        }
        let Some(line) = line else { return held.entered + least };
        let begin = (held.entered + least).max(*last);
        *last = self.now;
        let end = (begin + transmission(line, held.size)).as_nanos();
        held.entered.max(Instant::from_nanos(end.saturating_sub(early.as_nanos())))
    }
}

/// Returns the time that a line needs for a packet of `size` IP bytes, rounded down.
pub(super) fn transmission(line: TimedLine, size: u64) -> Duration {
    let packet = (i128::from(size) + i128::from(line.overhead)).max(0);
    let bytes = if line.cell == 0 {
        packet
    } else {
        let cells = (packet as u128).div_ceil(u128::from(line.cell)) as i128;
        cells * (i128::from(line.cell) + i128::from(line.cell_overhead)).max(0)
    };
    nanos(bytes as u128 * 8 * NANOS / u128::from(line.rate.bits_per_second()))
}
