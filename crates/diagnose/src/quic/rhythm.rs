//! Rhythm of a sender: groups of packets with data that begin at equal intervals, and not because a packet
//! arrived.

/// Silence in ns before a group. Shorter ones are those of pacers and interrupts.
const SILENCE: u64 = 5_000_000;
/// Time in ns after a packet received in which what is sent answers it.
const ANSWER: u64 = 1_000_000;
/// Fewest intervals, and most that are kept.
const LEAST: usize = 10;
const MOST: usize = 1 << 12;
/// Difference of equal intervals: this part of them, at least 1.5 ms, as logs have milliseconds.
const PART: u64 = 50;
const RESOLUTION: u64 = 1_500_000;

/// Groups of packets that leave at equal intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicRhythm {
    /// Median interval between the beginnings of two groups in ns; 0 without a rhythm.
    pub period: u64,
    /// Intervals of this length.
    pub equal: u64,
    /// All intervals.
    pub all: u64,
    /// Packets with data in the groups.
    pub packets: u64,
    /// Groups whose last packet is not full: the sender had no more to send.
    pub short: u64,
    /// Silence before the groups, in ns.
    pub waited: u64,
    /// Begin of the first and of the last group, in ns.
    pub interval: (u64, u64),
    /// First and last event.
    pub events: (u64, u64),
}

/// Finds a rhythm.
#[derive(Debug, Clone, Default)]
pub(super) struct RhythmMeter {
    /// Begin of the current group, and time of its last packet.
    group: Option<(u64, u64)>,
    received: Option<u64>,
    /// The last packet is smaller than the largest so far.
    is_short: bool,
    periods: Vec<u64>,
    out: QuicRhythm,
}

impl RhythmMeter {
    /// A packet was received.
    pub(super) const fn received(&mut self, at: u64) {
        self.received = Some(at);
    }

    /// A packet with data was sent, of `bytes`; `largest`: the most bytes of any packet so far.
    pub(super) fn push(&mut self, at: u64, event: u64, (bytes, largest): (u64, u64)) {
        self.out.packets += 1;
        let was_short = core::mem::replace(&mut self.is_short, bytes < largest);
        let Some((begin, last)) = self.group else {
            self.group = Some((at, at));
            (self.out.interval.0, self.out.events.0) = (at, event);
            return;
        };
        if at.saturating_sub(last) < SILENCE {
            self.group = Some((begin, at));
            return;
        }
        self.group = Some((at, at));
        let out = &mut self.out;
        (out.interval.1, out.events.1) = (at, event);
        out.all += 1;
        out.short += u64::from(was_short);
        out.waited += at - last;
        let is_answer = self.received.is_some_and(|received| at.saturating_sub(received) < ANSWER);
        if !is_answer && self.periods.len() < MOST {
            self.periods.push(at - begin);
        }
    }

    /// The rhythm, if four fifths of the intervals have one.
    pub(super) fn finish(&mut self) -> QuicRhythm {
        let all = self.out.all.min(MOST as u64);
        if self.periods.len() < LEAST {
            return QuicRhythm::default();
        }
        self.periods.sort_unstable();
        let period = self.periods[self.periods.len() / 2];
        let within = (period / PART).max(RESOLUTION);
        let equal = self.periods.iter().filter(|one| one.abs_diff(period) <= within).count() as u64;
        if equal * 5 < all * 4 {
            return QuicRhythm::default();
        }
        QuicRhythm { period, equal, ..self.out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rhythm(groups: impl Iterator<Item = u64>, answers: bool) -> QuicRhythm {
        let mut meter = RhythmMeter::default();
        for (event, at) in groups.enumerate() {
            if answers {
                meter.received(at);
            }
            for _ in 0..4 {
                meter.push(at, event as u64, (1_200, 1_200));
            }
        }
        meter.finish()
    }

    #[test]
    fn groups_that_end_with_a_small_packet_are_messages() {
        let mut meter = RhythmMeter::default();
        for n in 0..21 {
            meter.push(n * 20 * MS, n, (1_200, 1_200));
            meter.push(n * 20 * MS, n, (300, 1_200));
        }
        let found = meter.finish();
        assert_eq!((found.period, found.all, found.short), (20 * MS, 20, 20));
        assert_eq!(rhythm((0..21).map(|n| n * 20 * MS), false).short, 0);
    }

    #[test]
    fn equal_intervals_without_an_arrival_are_a_rhythm() {
        // 200 or 201 ms, as in a log of milliseconds.
        let found = rhythm((0..21).map(|n| (n * 401 / 2) * MS), false);
        assert!((200 * MS..=201 * MS).contains(&found.period), "{}", found.period);
        assert_eq!((found.equal, found.all, found.packets), (20, 20, 84));
        assert_eq!(found.waited, 20 * 401 / 2 * MS);
        // Windows that an ACK starts.
        assert_eq!(rhythm((0..21).map(|n| n * 200 * MS), true), QuicRhythm::default());
        // Intervals of 10 to 30 ms.
        let uneven = (0..21).scan(0, |at, n| {
            *at += (10 + n % 3 * 10) * MS;
            Some(*at)
        });
        assert_eq!(rhythm(uneven, false), QuicRhythm::default());
        // A pacer of 1 ms.
        assert_eq!(rhythm((0..100).map(|n| n * MS), false), QuicRhythm::default());
    }
}
