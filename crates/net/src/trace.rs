//! A line that follows a trace in the format of mahimahi's link emulator (Netravali et al., USENIX
//! ATC 2015; mm-link(1)): one time in milliseconds per opportunity to send 1,500 bytes. The trace
//! repeats from its start when it ends.
//!
//! Bytes count, not packets: an opportunity takes several small packets, and a packet may take the
//! rest of one and wait for the next. Unused opportunities are lost.

use std::sync::Arc;

use units::{Bytes, Duration, Instant, Rate};

/// Bytes per opportunity.
pub const OPPORTUNITY: Bytes = Bytes(1_500);

const MS: u64 = 1_000_000;

/// A link trace: the times of the opportunities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTrace(Arc<[u32]>);

/// Reason why a text is not a valid trace. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTraceError {
    /// A line is not a whole number of milliseconds up to 4,294,967,295.
    NotANumber {
        /// The line.
        line: usize,
    },
    /// A line is less than the one before it.
    RunsBack {
        /// The line.
        line: usize,
    },
    /// The trace has no opportunity.
    Empty,
    /// All opportunities are at 0 ms, so the trace has no duration.
    NoDuration,
}

impl core::fmt::Display for LinkTraceError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotANumber { line } => {
                write!(f, "line {line}: expected a whole number of milliseconds up to 4294967295")
            }
            Self::RunsBack { line } => {
                write!(f, "line {line}: this moment is earlier than that of the line before")
            }
            Self::Empty => f.write_str("no opportunity to send"),
            Self::NoDuration => f.write_str("it lasts 0 ms"),
        }
    }
}

impl core::error::Error for LinkTraceError {}

impl LinkTrace {
    /// Creates a trace with opportunities at these milliseconds, the last of which is its length.
    ///
    /// # Errors
    /// [`LinkTraceError`] if there is no opportunity, times decrease, or all are 0.
    pub fn new(at: Vec<u32>) -> Result<Self, LinkTraceError> {
        if let Some(place) = at.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(LinkTraceError::RunsBack { line: place + 2 });
        }
        match at.last() {
            None => Err(LinkTraceError::Empty),
            Some(0) => Err(LinkTraceError::NoDuration),
            Some(_) => Ok(Self(at.into())),
        }
    }

    /// Parses a mahimahi trace file: one whole number per line. Only the last line may be empty.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Self, LinkTraceError> {
        let number = |(index, line): (usize, &str)| {
            let found = line.trim_end_matches('\r');
            let digits = !found.is_empty() && found.bytes().all(|byte| byte.is_ascii_digit());
            let wrong = || LinkTraceError::NotANumber { line: index + 1 };
            digits.then_some(found).and_then(|found| found.parse().ok()).ok_or_else(wrong)
        };
        Self::new(text.lines().enumerate().map(number).collect::<Result<_, _>>()?)
    }

    /// Times of the opportunities in milliseconds.
    pub fn opportunities_ms(&self) -> &[u32] {
        &self.0
    }

    /// Time after which the trace repeats.
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

/// A line that follows a [`LinkTrace`] from the start of a run.
#[derive(Debug, Clone)]
pub(crate) struct TraceTransmitter {
    schedule: LinkTrace,
    /// Start of the current round through the trace.
    round: Instant,
    /// Index of the next opportunity in the round.
    next: usize,
    /// The opportunity used last, and its remaining bytes.
    current: Instant,
    left: Bytes,
}

impl TraceTransmitter {
    pub(crate) const fn new(schedule: LinkTrace) -> Self {
        let left = Bytes::ZERO;
        Self { schedule, round: Instant::ZERO, next: 0, current: Instant::ZERO, left }
    }

    /// Returns when the last bit of a packet leaves that the line can send from `now` on.
    pub(crate) fn send(&mut self, now: Instant, size: Bytes) -> Instant {
        if self.current < now {
            self.left = Bytes::ZERO;
            self.skip_to(now);
        }
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.current = self.next_opportunity();
            self.left = OPPORTUNITY;
        }
        self.left -= rest;
        self.current
    }

    /// Consumes the next opportunity and returns its time.
    fn next_opportunity(&mut self) -> Instant {
        let at = self.round + Duration::from_nanos(u64::from(self.schedule.0[self.next]) * MS);
        self.next += 1;
        if self.next == self.schedule.0.len() {
            (self.next, self.round) = (0, self.round + self.schedule.period());
        }
        at
    }

    /// Skips all opportunities before `now`.
    fn skip_to(&mut self, now: Instant) {
        if now <= self.round {
            return;
        }
        let (behind, period) =
            (now.since(self.round).as_nanos(), self.schedule.period().as_nanos());
        // The last opportunity of a round is at its end, where the next round begins.
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

    fn line(moments: &[u32]) -> TraceTransmitter {
        TraceTransmitter::new(LinkTrace::new(moments.to_vec()).unwrap())
    }

    #[test]
    fn each_opportunity_takes_1500_bytes_and_the_trace_repeats() {
        let mut line = line(&[2, 2, 5]);
        let out = [0; 7].map(|_: u64| line.send(Instant::ZERO, Bytes(1_500)));
        assert_eq!(out, [2, 2, 5, 7, 7, 10, 12].map(at));
        // An opportunity at 0 coincides with the end of the round before.
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
    fn unused_opportunities_are_lost() {
        let mut line = line(&[1, 2, 3, 10]);
        assert_eq!(line.send(at(0), Bytes(100)), at(1));
        // The rest of the opportunity at 1 ms is available at 1 ms, not later.
        assert_eq!(line.send(at(1), Bytes(100)), at(1));
        assert_eq!(line.send(Instant::from_nanos(MS + 1), Bytes(100)), at(2));
        assert_eq!(line.send(at(3), Bytes(1_500)), at(3));
        assert_eq!(line.send(at(4), Bytes(1_500)), at(10));
        // The same holds after any pause.
        assert_eq!(line.send(at(1_000_003), Bytes(1_500)), at(1_000_003));
        assert_eq!(line.send(at(1_000_003), Bytes(1_500)), at(1_000_010));
        assert_eq!(line.send(at(2_000_010), Bytes(1_500)), at(2_000_010));
        assert_eq!(line.send(at(2_000_010), Bytes(1_500)), at(2_000_011));
    }

    #[test]
    fn an_invalid_trace_is_rejected_with_its_line() {
        assert_eq!(LinkTrace::parse("1\n2\r\n2\n").unwrap().opportunities_ms(), [1, 2, 2]);
        let wrong = |line| LinkTraceError::NotANumber { line };
        assert_eq!(LinkTrace::parse("1\nx\n").unwrap_err(), wrong(2));
        assert_eq!(LinkTrace::parse("1\n\n3\n").unwrap_err(), wrong(2));
        assert_eq!(LinkTrace::parse("+1\n").unwrap_err(), wrong(1));
        assert_eq!(LinkTrace::parse("4294967296\n").unwrap_err(), wrong(1));
        let back = LinkTraceError::RunsBack { line: 3 };
        assert_eq!(LinkTrace::parse("1\n5\n4\n").unwrap_err(), back);
        assert_eq!(LinkTrace::parse("").unwrap_err(), LinkTraceError::Empty);
        assert_eq!(LinkTrace::parse("0\n0\n").unwrap_err(), LinkTraceError::NoDuration);
    }

    #[test]
    fn the_mean_rate_counts_opportunities() {
        // Ten opportunities in 12 ms: 10 Mbit/s.
        let ten = LinkTrace::new((3..=12).collect()).unwrap();
        assert_eq!(ten.mean().bits_per_second(), 10_000_000);
    }
}
