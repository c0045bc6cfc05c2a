//! A line that follows a recording, in the form of mahimahi's link emulator (Netravali et al.,
//! USENIX ATC 2015; mm-link(1)): a moment in milliseconds for each opportunity to send 1,500 bytes,
//! begun anew when it is over.
//!
//! Bytes count, not packets: an opportunity takes several small packets, and a packet may take the
//! rest of one and wait for the next. What is not used is gone.

use std::sync::Arc;

use units::{Bytes, Duration, Instant, Rate};

/// Bytes of an opportunity.
pub const OPPORTUNITY: Bytes = Bytes(1_500);

const MS: u64 = 1_000_000;

/// A recording: when there is an opportunity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Arc<[u32]>);

/// Why a text is no recording. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadTrace {
    /// A line is no whole number of milliseconds up to 4,294,967,295.
    NotANumber {
        /// The line.
        line: usize,
    },
    /// A line is less than the one before it.
    RunsBack {
        /// The line.
        line: usize,
    },
    /// There is none.
    Empty,
    /// All opportunities are at 0: it would be over before it began.
    NoTime,
}

impl core::fmt::Display for BadTrace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotANumber { line } => {
                write!(f, "line {line}: expected a whole number of milliseconds up to 4294967295")
            }
            Self::RunsBack { line } => {
                write!(f, "line {line}: this moment is earlier than that of the line before")
            }
            Self::Empty => f.write_str("no opportunity to send"),
            Self::NoTime => f.write_str("it lasts 0 ms"),
        }
    }
}

impl core::error::Error for BadTrace {}

impl Schedule {
    /// Opportunities at these milliseconds, of which the last is the length of the recording.
    ///
    /// # Errors
    /// [`BadTrace`] if there is none, time runs back, or none passes.
    pub fn new(at: Vec<u32>) -> Result<Self, BadTrace> {
        if let Some(place) = at.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(BadTrace::RunsBack { line: place + 2 });
        }
        match at.last() {
            None => Err(BadTrace::Empty),
            Some(0) => Err(BadTrace::NoTime),
            Some(_) => Ok(Self(at.into())),
        }
    }

    /// Reads a file of mahimahi: a whole number in each line, none of which may be empty but the
    /// last.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, BadTrace> {
        let number = |(index, line): (usize, &str)| {
            let found = line.trim_end_matches('\r');
            let digits = !found.is_empty() && found.bytes().all(|byte| byte.is_ascii_digit());
            let wrong = || BadTrace::NotANumber { line: index + 1 };
            digits.then_some(found).and_then(|found| found.parse().ok()).ok_or_else(wrong)
        };
        Self::new(text.lines().enumerate().map(number).collect::<Result<_, _>>()?)
    }

    /// The moments, in milliseconds.
    pub fn moments(&self) -> &[u32] {
        &self.0
    }

    /// After so much time it begins anew.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.0.last().copied().unwrap_or(1)))
    }

    /// Mean rate; at least 1 bit/s.
    pub fn mean(&self) -> Rate {
        let bits = self.0.len() as u128 * u128::from(OPPORTUNITY.get()) * 8 * 1_000;
        let rate = bits / u128::from(self.period().as_millis().max(1));
        let least = const { Rate::from_bits_per_second(1).unwrap() };
        Rate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX)).unwrap_or(least)
    }
}

/// A line that follows a [`Schedule`] from the beginning of a run on.
#[derive(Debug, Clone)]
pub(crate) struct TraceLine {
    schedule: Schedule,
    /// When the present round through the recording began.
    round: Instant,
    /// The next opportunity of it.
    next: usize,
    /// The opportunity used last, and what is left of it.
    current: Instant,
    left: Bytes,
}

impl TraceLine {
    pub(crate) const fn new(schedule: Schedule) -> Self {
        let left = Bytes::ZERO;
        Self { schedule, round: Instant::ZERO, next: 0, current: Instant::ZERO, left }
    }

    /// When a packet that is the line's from `now` on is out.
    pub(crate) fn send(&mut self, now: Instant, size: Bytes) -> Instant {
        if self.current < now {
            self.left = Bytes::ZERO;
            self.skip_to(now);
        }
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.current = self.take();
            self.left = OPPORTUNITY;
        }
        self.left -= rest;
        self.current
    }

    /// The moment of the next opportunity, which is then gone.
    fn take(&mut self) -> Instant {
        let at = self.round + Duration::from_nanos(u64::from(self.schedule.0[self.next]) * MS);
        self.next += 1;
        if self.next == self.schedule.0.len() {
            (self.next, self.round) = (0, self.round + self.schedule.period());
        }
        at
    }

    /// Passes over all opportunities before `now`.
    fn skip_to(&mut self, now: Instant) {
        if now <= self.round {
            return;
        }
        let (behind, period) =
            (now.since(self.round).as_nanos(), self.schedule.period().as_nanos());
        // The last opportunity of a round is at its end, where the next one begins.
        let rounds = (behind - 1) / period;
        if rounds > 0 {
            self.round += Duration::from_nanos(rounds * period);
            self.next = 0;
        }
        let into = now.since(self.round).as_nanos();
        let first = self.schedule.0.partition_point(|&at| u64::from(at) * MS < into);
        self.next = self.next.max(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    fn line(moments: &[u32]) -> TraceLine {
        TraceLine::new(Schedule::new(moments.to_vec()).unwrap())
    }

    #[test]
    fn each_opportunity_takes_1500_bytes_and_the_recording_begins_anew() {
        let mut line = line(&[2, 2, 5]);
        let out = [0; 7].map(|_: u64| line.send(Instant::ZERO, Bytes(1_500)));
        assert_eq!(out, [2, 2, 5, 7, 7, 10, 12].map(at));
        // A moment of 0 falls on the end of the round before.
        let mut line = self::line(&[0, 5]);
        let out = [0; 5].map(|_: u64| line.send(Instant::ZERO, Bytes(1_500)));
        assert_eq!(out, [0, 5, 5, 10, 10].map(at));
    }

    #[test]
    fn bytes_count_not_packets() {
        let mut line = line(&[1, 2, 3]);
        let sizes = [500, 500, 500, 1_000, 1_000, 3_000].map(Bytes);
        let out = sizes.map(|size| line.send(Instant::ZERO, size));
        assert_eq!(out, [1, 1, 1, 2, 3, 5].map(at));
    }

    #[test]
    fn what_is_not_used_is_gone() {
        let mut line = line(&[1, 2, 3, 10]);
        assert_eq!(line.send(at(0), Bytes(100)), at(1));
        // The rest of the opportunity at 1 ms is still there at 1 ms, not later.
        assert_eq!(line.send(at(1), Bytes(100)), at(1));
        assert_eq!(line.send(Instant::from_nanos(MS + 1), Bytes(100)), at(2));
        assert_eq!(line.send(at(3), Bytes(1_500)), at(3));
        assert_eq!(line.send(at(4), Bytes(1_500)), at(10));
        // However long the pause.
        assert_eq!(line.send(at(1_000_003), Bytes(1_500)), at(1_000_003));
        assert_eq!(line.send(at(1_000_003), Bytes(1_500)), at(1_000_010));
        assert_eq!(line.send(at(2_000_010), Bytes(1_500)), at(2_000_010));
        assert_eq!(line.send(at(2_000_010), Bytes(1_500)), at(2_000_011));
    }

    #[test]
    fn a_text_that_is_no_recording_is_refused_with_its_line() {
        assert_eq!(Schedule::parse("1\n2\r\n2\n").unwrap().moments(), [1, 2, 2]);
        let wrong = |line| BadTrace::NotANumber { line };
        assert_eq!(Schedule::parse("1\nx\n").unwrap_err(), wrong(2));
        assert_eq!(Schedule::parse("1\n\n3\n").unwrap_err(), wrong(2));
        assert_eq!(Schedule::parse("+1\n").unwrap_err(), wrong(1));
        assert_eq!(Schedule::parse("4294967296\n").unwrap_err(), wrong(1));
        let back = BadTrace::RunsBack { line: 3 };
        assert_eq!(Schedule::parse("1\n5\n4\n").unwrap_err(), back);
        assert_eq!(Schedule::parse("").unwrap_err(), BadTrace::Empty);
        assert_eq!(Schedule::parse("0\n0\n").unwrap_err(), BadTrace::NoTime);
    }

    #[test]
    fn the_mean_rate_counts_what_can_be_sent() {
        // Ten opportunities in 12 ms: 10 Mbit/s.
        let ten = Schedule::new((3..=12).collect()).unwrap();
        assert_eq!(ten.mean().bits_per_second(), 10_000_000);
    }
}
