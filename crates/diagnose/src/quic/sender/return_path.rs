//! Whether ACKs arrive at the rate of a full way back.
//!
//! Behind a busy bottleneck of the data the time between two ACKs is proportional to the bytes that they acknowledge;
//! behind one of the way back to their own length. Of the ACKs that come while round trips show a queue, those whose time is
//! the usual one for their length are those that waited on the way back, if hardly any came faster: a link lets nothing pass
//! faster. Of these both proportions are fitted: the one that explains the times is that of the bottleneck.

use units::{Duration, Instant};

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// Fewest intervals, and most that are kept.
const FEWEST: usize = 20;
const MOST: usize = 1 << 16;
/// Times for a length are alike within this ratio: the noise of hosts, and the rounding of times.
const ALIKE: f64 = 1.05;
/// The same where the lengths are not known: an ACK is some bytes longer or shorter by its ranges.
const ALIKE_UNKNOWN: f64 = 1.15;
/// At least one of this number of intervals has the usual time, at most one of that number a shorter one.
const USUAL: usize = 4;
const FASTER: usize = 20;
/// The lengths explain all but this part of the time.
const EXACT: f64 = 0.05;
/// What is acknowledged leaves at least this many times as much unexplained, and this part of the time more.
const WORSE: f64 = 3.0;
const MARGIN: f64 = 0.005;
/// A log with times in milliseconds shows the time of many ACKs: at least this number of them.
const COARSE: f64 = 1e6;
const TICKS: f64 = 40.0;
/// ACKs that wait behind at least this many others: one alone waits for its receiver.
const BEHIND: u64 = 3;
/// ACKs were lost if each acknowledges this many times what they did at first.
const THINNED: f64 = 1.5;

/// Rates of the way back that are the same within this ratio: the peer computes for a part of the handshake.
const SAME: f64 = 1.25;

/// The time between two ACKs in ns, the length of the second, and the bytes that it acknowledges.
#[derive(Debug, Clone, Copy)]
struct AckInterval {
    gap: f64,
    length: f64,
    acked: f64,
    /// It begins with the end of the one before.
    follows: bool,
}

/// A way back that is the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReturnPath {
    /// Rate in bytes per second.
    pub(super) rate: f64,
    /// ACKs are lost on it, so that they do not clock the data: the data's rate is that of the way there.
    pub(super) is_thinned: bool,
}

/// Measures the intervals of ACKs.
#[derive(Debug, Default)]
pub(super) struct ReturnMeter {
    last: Option<Instant>,
    /// Bytes since, of ACKs that came at the same time.
    length: u64,
    acked: u64,
    intervals: Vec<AckInterval>,
    /// The interval before ended where the next one begins.
    is_contiguous: bool,
    /// The lengths are not those of the log.
    pub(super) is_length_inferred: bool,
    /// Bytes that ACKs acknowledge while no queue is standing: their sum and number.
    unqueued: (u64, u64),
}

impl ReturnMeter {
    /// An ACK of `length` bytes that newly acknowledges `acked`, after a round trip longer than the shortest by `waited`.
    pub(super) fn ack(
        &mut self,
        at: Instant,
        length: Option<u64>,
        acked: u64,
        (is_queued, waited): (bool, Duration),
    ) {
        if !is_queued && acked > 0 {
            self.unqueued = (self.unqueued.0.saturating_add(acked), self.unqueued.1 + 1);
        }
        let Some(length) = length.filter(|_| is_queued) else {
            (self.last, self.length, self.acked) = (None, 0, 0);
            self.is_contiguous = false;
            return;
        };
        self.length = self.length.saturating_add(length).saturating_add(HEADERS);
        self.acked = self.acked.saturating_add(acked);
        let Some(last) = self.last.filter(|&last| at > last) else {
            if self.last.is_none() {
                (self.last, self.length, self.acked) = (Some(at), 0, 0);
            }
            return;
        };
        let gap = at.since(last);
        if self.intervals.len() < MOST && waited >= gap * BEHIND {
            let (length, acked) = (self.length as f64, self.acked as f64);
            let (gap, follows) = (gap.as_nanos() as f64, self.is_contiguous);
            self.intervals.push(AckInterval { gap, length, acked, follows });
            self.is_contiguous = true;
        } else {
            self.is_contiguous = false;
        }
        (self.last, self.length, self.acked) = (Some(at), 0, 0);
    }

    /// A packet of `length` bytes without an ACK.
    pub(super) fn other(&mut self, length: Option<u64>) {
        if self.last.is_some() {
            self.length = self.length.saturating_add(length.unwrap_or(0)).saturating_add(HEADERS);
        }
    }

    /// The intervals, those of a coarse clock joined until its tick is a small part of them.
    fn measurable(&self) -> Vec<AckInterval> {
        if !self.is_coarse() {
            return self.intervals.clone();
        }
        let mut all: Vec<AckInterval> = Vec::new();
        for one in &self.intervals {
            match all.last_mut().filter(|last| one.follows && last.gap < TICKS * COARSE) {
                Some(last) => {
                    last.gap += one.gap;
                    last.length += one.length;
                    last.acked += one.acked;
                }
                None => all.push(*one),
            }
        }
        all.retain(|one| one.gap >= TICKS * COARSE);
        all
    }

    /// Whether all times are multiples of a millisecond.
    pub(super) fn is_coarse(&self) -> bool {
        self.intervals.iter().all(|one| one.gap % COARSE <= 0.0)
    }

    /// The intervals with the usual time for their length; `None` if others are shorter.
    fn usual(&self) -> Option<Vec<AckInterval>> {
        let mut all = self.measurable();
        let time = |one: &AckInterval| one.gap / one.length;
        all.sort_by(|a, b| time(a).total_cmp(&time(b)));
        let alike = if self.is_length_inferred { ALIKE_UNKNOWN } else { ALIKE };
        let (mut best, mut from) = ((0, 0), 0);
        for (to, one) in all.iter().enumerate() {
            while time(&all[from]) * alike < time(one) {
                from += 1;
            }
            if to + 1 - from > best.0 {
                best = (to + 1 - from, from);
            }
        }
        let (count, from) = best;
        let is_usual = count >= FEWEST && count * USUAL >= all.len();
        (is_usual && from * FASTER <= all.len()).then(|| all[from..from + count].to_vec())
    }

    /// The rate of a way back on which ACKs of one length for as many bytes each wait, so that both proportions explain them:
    /// that of the peer's packets of the handshake, `handshake`, decides.
    pub(super) fn steady(&self, handshake: f64) -> Option<ReturnPath> {
        let all = self.usual()?;
        let sum = |of: fn(&AckInterval) -> f64| all.iter().map(of).sum::<f64>();
        let rate = sum(|one| one.length) * 1e9 / sum(|one| one.gap);
        let is_same = rate <= handshake * SAME && handshake <= rate * SAME;
        is_same.then_some(ReturnPath { rate, is_thinned: false })
    }

    /// The way back, if it is the limit.
    pub(super) fn found(&self) -> Option<ReturnPath> {
        let all = self.usual()?;
        let sum = |of: fn(&AckInterval) -> f64| all.iter().map(of).sum::<f64>();
        let (time, length) = (sum(|one| one.gap), sum(|one| one.length));
        let acked = sum(|one| one.acked);
        if time <= 0.0 || acked <= 0.0 {
            return None;
        }
        let unexplained = |of: fn(&AckInterval) -> f64, whole: f64| {
            let off = all.iter().map(|one| (one.gap - of(one) * time / whole).abs());
            off.sum::<f64>() / time
        };
        let by_length = unexplained(|one| one.length, length);
        let by_acked = unexplained(|one| one.acked, acked);
        let is_of_return = by_length <= EXACT && by_acked >= WORSE * by_length + MARGIN;
        let (before, count) = self.unqueued;
        let is_thinned = acked / all.len() as f64 * count as f64 >= THINNED * before as f64;
        let is_thinned = is_thinned && count > 0;
        is_of_return.then(|| ReturnPath { rate: length * 1e9 / time, is_thinned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ACKs of 40 bytes for one to four packets, whose spacing follows from their length or from what they acknowledge.
    #[test]
    fn the_ratio_that_is_constant_shows_the_bottleneck() {
        for of_return in [true, false] {
            let mut meter = ReturnMeter::default();
            let mut at = Instant::ZERO;
            let waited = (true, Duration::from_millis(100));
            for n in 0..100_u64 {
                let acked = (1 + n % 4) * 1_200;
                let gap = if of_return { 68 * 100_000 } else { acked * 1_000 };
                at += Duration::from_nanos(gap);
                meter.ack(at, Some(40), acked, waited);
            }
            assert_eq!(meter.found().is_some(), of_return);
        }
    }

    /// ACKs of one length for two packets each: the handshake shows whether they waited on the way back.
    #[test]
    fn the_handshake_shows_what_even_acks_do_not() {
        let mut meter = ReturnMeter::default();
        let mut at = Instant::ZERO;
        for _ in 0..100_u64 {
            at += Duration::from_nanos(68 * 100_000);
            meter.ack(at, Some(40), 2 * 1_200, (true, Duration::from_millis(100)));
        }
        assert_eq!(meter.found(), None);
        // 68 bytes in 6.8 ms.
        let back = meter.steady(9_000.0).unwrap();
        assert!((back.rate - 10_000.0).abs() < 1.0, "{back:?}");
        assert_eq!(meter.steady(20_000.0), None);
    }

    /// ACKs of two packets each on a way back of 50 kB/s, by a clock of 1 ms; the handshake took as long.
    #[test]
    fn a_coarse_clock_shows_the_time_of_many_acks() {
        let mut meter = ReturnMeter::default();
        for n in 1..=2_000_u64 {
            let at = n * 1_360_000 / 1_000_000 * 1_000_000;
            let waited = (true, Duration::from_millis(100));
            meter.ack(Instant::from_nanos(at), Some(40), 2 * 1_200, waited);
        }
        assert!(meter.is_coarse());
        let back = meter.steady(45_000.0).unwrap();
        assert!((back.rate / 50_000.0 - 1.0).abs() < 0.02, "{back:?}");
    }

    /// ACKs that are late in half of the cases, as those of a queue of the data: the others show the way back.
    #[test]
    fn acks_that_did_not_wait_do_not_hide_the_way_back() {
        for shortest in [6_800_000, 3_000_000] {
            let mut meter = ReturnMeter::default();
            let mut at = Instant::ZERO;
            for n in 0..200_u64 {
                let gap = if n % 2 == 0 { 6_800_000 } else { shortest + n % 7 * 1_500_000 };
                at += Duration::from_nanos(gap);
                let waited = (true, Duration::from_millis(100));
                meter.ack(at, Some(40), (1 + n % 4) * 1_200, waited);
            }
            // Nothing passes a link faster than it carries.
            assert_eq!(meter.found().is_some(), shortest == 6_800_000);
        }
    }

    /// ACKs of 60 bytes at first and of 66 to 68 later, on a way back of 10 kB/s: the log has no lengths.
    #[test]
    fn lengths_that_are_not_known_may_differ_a_little() {
        for is_length_inferred in [false, true] {
            let mut meter = ReturnMeter { is_length_inferred, ..ReturnMeter::default() };
            let mut at = Instant::ZERO;
            for n in 0..200_u64 {
                let length = if n < 25 { 60 } else { 66 + n % 3 };
                at += Duration::from_nanos(length * 100_000);
                let acked = if n % 9 == 0 { 1_200 } else { 2_400 };
                meter.ack(at, Some(34), acked, (true, Duration::from_millis(100)));
            }
            assert_eq!(meter.found().is_some(), is_length_inferred);
        }
    }
}
