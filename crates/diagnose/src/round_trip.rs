//! Round-trip times from a capture.
//!
//! From data to their ACK, of data sent once (Karn and Partridge, SIGCOMM 1987), by the newest
//! data an ACK reports, cumulative or by SACK; and from an ACK's timestamp to the first data that
//! echo it (RFC 7323 section 3), which is the way to the sender and back that a capture at the
//! receiver can see.

use std::collections::VecDeque;

/// No packet is under way for longer than an hour; clocks that jump say so.
const LONGEST: u64 = 3_600_000_000_000;

/// Timestamps of ACKs whose echo has not come yet; more are not kept.
const ECHOES: usize = 512;

#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTrip {
    /// Latest sample.
    pub(crate) latest: Option<u64>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    /// Smoothed as RFC 6298 does.
    pub(crate) smoothed: Option<u64>,
    pub(crate) samples: u64,
    min_ahead: Option<u64>,
    min_behind: Option<u64>,
    /// The echo part in the last two windows of samples: what the line of ACKs waits.
    recent_behind: [Option<u64>; 2],
    recent_count: u32,
    waiting: VecDeque<(u32, u64)>,
    last_stamp: Option<u32>,
}

impl RoundTrip {
    /// What the opening told.
    pub(crate) fn opening(&mut self, ahead: Option<u64>, behind: Option<u64>) {
        let [ahead, behind] = [ahead, behind].map(|way| way.map(|ns| ns.min(LONGEST)));
        (self.min_ahead, self.min_behind) = (ahead, behind);
        if let (Some(ahead), Some(behind)) = (ahead, behind) {
            self.sample(ahead + behind);
        }
    }

    /// An ACK passed towards the sender.
    pub(crate) fn ack_passed(&mut self, at: u64, stamp: Option<u32>) {
        let Some(stamp) = stamp else { return };
        if self.last_stamp == Some(stamp) {
            return;
        }
        self.last_stamp = Some(stamp);
        if self.waiting.len() == ECHOES {
            self.waiting.pop_front();
        }
        self.waiting.push_back((stamp, at));
    }

    /// Data passed with this echo. True if that gave a sample. `after_pause`: the data came
    /// after a pause, so an application may have kept them waiting longer than the way is.
    pub(crate) fn echo(&mut self, at: u64, echo: u32, whole: bool, after_pause: bool) -> bool {
        let mut took = None;
        while let Some(&(stamp, passed)) = self.waiting.front() {
            let ahead = echo.wrapping_sub(stamp) as i32;
            if ahead < 0 {
                break;
            }
            self.waiting.pop_front();
            if ahead == 0 {
                took = Some(at.saturating_sub(passed).min(LONGEST));
            }
        }
        let Some(took) = took.filter(|_| !after_pause) else { return false };
        self.min_behind = Some(self.min_behind.map_or(took, |min| min.min(took)));
        let current = &mut self.recent_behind[0];
        *current = Some(current.map_or(took, |min| min.min(took)));
        self.recent_count += 1;
        if self.recent_count >= 16 {
            self.recent_behind[1] = self.recent_behind[0].take();
            self.recent_count = 0;
        }
        if whole {
            self.sample(took + self.min_ahead.unwrap_or(0));
        }
        true
    }

    /// Data were acknowledged this long after they had passed. `rest`: the other part of the round
    /// trip, where this is the part that queues make longer.
    pub(crate) fn acked(&mut self, took: u64, rest: Option<u64>) {
        let took = took.min(LONGEST);
        self.min_ahead = Some(self.min_ahead.map_or(took, |min| min.min(took)));
        if let Some(rest) = rest {
            self.sample(took + rest);
        }
    }

    /// The shortest way from here to the sender and back.
    pub(crate) fn behind(&self) -> u64 {
        self.min_behind.unwrap_or(0)
    }

    /// How long an ACK takes from here to the sender and what it sets free back here, lately.
    pub(crate) fn behind_lately(&self) -> u64 {
        let recent = self.recent_behind.iter().flatten().min().copied();
        recent.or(self.min_behind).unwrap_or(0)
    }

    fn sample(&mut self, took: u64) {
        self.latest = Some(took);
        self.min = Some(self.min.map_or(took, |min| min.min(took)));
        self.max = Some(self.max.map_or(took, |max| max.max(took)));
        self.smoothed = Some(self.smoothed.map_or(took, |old| old - old / 8 + took / 8));
        self.samples += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_jump_make_no_round_trip_of_years() {
        let mut rtt = RoundTrip::default();
        rtt.opening(Some(u64::MAX), Some(u64::MAX - 1));
        rtt.acked(u64::MAX, Some(rtt.behind()));
        rtt.ack_passed(0, Some(7));
        assert!(rtt.echo(u64::MAX, 7, true, false));
        assert_eq!((rtt.max, rtt.behind_lately()), (Some(2 * LONGEST), LONGEST));
    }
}
