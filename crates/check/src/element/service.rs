//! A line that takes the queued packets in any order: the departure time of the present one follows
//! from the data sent so far.
//!
//! A line with a rate is computed by busy periods, as in [`super`]. For a line that follows a
//! trace, only the index of a packet's last byte among all bytes that it could have sent since time
//! zero matters.

use units::{Duration, Instant};

use super::{NANOS, nanos};
use crate::invariants::Line;

const MS: u64 = 1_000_000;
const OPPORTUNITY: u128 = 1_500;

#[derive(Debug, Clone)]
pub(super) struct LineService {
    line: Line,
    moments: Vec<u32>,
    /// Start of the busy period, and the bits sent in it.
    since: Instant,
    bits: u128,
    /// With a trace: bytes of all past opportunities, used or not.
    gone: u128,
    /// When the line took its present packet: at the previous departure, or on arrival at an idle
    /// line.
    taken: Instant,
    /// Size of the largest packet so far.
    largest: u64,
    /// Whether an overdue packet has been reported.
    reported: bool,
}

impl LineService {
    pub(super) fn new(line: Line, traces: &[Vec<u32>]) -> Self {
        let moments = match line {
            Line::Rate(_) => Vec::new(),
            Line::Trace(trace) => traces.get(trace).cloned().unwrap_or_default(),
        };
        Self {
            line,
            moments,
            since: Instant::ZERO,
            bits: 0,
            gone: 0,
            taken: Instant::ZERO,
            largest: 0,
            reported: false,
        }
    }

    /// A packet enters; `idle`: the element is empty.
    pub(super) fn enter(&mut self, now: Instant, size: u64, idle: bool) {
        self.largest = self.largest.max(size);
        if idle {
            (self.since, self.bits, self.taken) = (now, 0, now);
            self.gone = self.gone.max(self.opportunities_before(now) * OPPORTUNITY);
        }
    }

    /// A packet leaves: returns when the line took it, and when it must leave.
    pub(super) fn leave(&mut self, now: Instant, size: u64) -> (Instant, Instant) {
        let (begin, end) = (self.taken, self.end_of(size));
        self.bits += u128::from(size) * 8;
        self.gone += u128::from(size);
        self.taken = now;
        (begin, end)
    }

    /// Returns whether the line takes its next packet at this instant.
    pub(super) fn is_dequeueing(&self, now: Instant) -> bool {
        self.taken == now
    }

    /// While packets wait: returns when even the largest would have left, if that is past; only
    /// once.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Instant> {
        let due = self.end_of(self.largest);
        let late = !self.reported && now > due;
        self.reported |= late;
        late.then_some(due)
    }

    /// Returns when the present packet leaves, if it is of `size`.
    fn end_of(&self, size: u64) -> Instant {
        match self.line {
            Line::Rate(rate) => {
                let bits = self.bits + u128::from(size) * 8;
                self.since + nanos(bits * NANOS / u128::from(rate.bits_per_second()))
            }
            Line::Trace(_) => {
                let last = (self.gone + u128::from(size)).div_ceil(OPPORTUNITY).max(1) - 1;
                let of = self.moments.len().max(1) as u128;
                let (round, place) = (last / of, (last % of) as usize);
                let at = |place: usize| self.moments.get(place).copied().unwrap_or_default();
                let period = u128::from(at(self.moments.len().saturating_sub(1)));
                nanos_at((round * period + u128::from(at(place))) * u128::from(MS))
            }
        }
    }

    /// Opportunities of the repeating trace before `now`.
    fn opportunities_before(&self, now: Instant) -> u128 {
        let Some(&period) = self.moments.last() else { return 0 };
        let before = |ns: u64| self.moments.partition_point(|&at| u64::from(at) * MS < ns) as u128;
        let (now, period) = (now.as_nanos(), u64::from(period) * MS);
        // Rounds that have started before this instant.
        let (rounds, into) = (now / period, now % period);
        let whole = u128::from(rounds) * self.moments.len() as u128;
        // The end of a round is not before itself.
        let at_end =
            if rounds > 0 && into == 0 { self.moments.len() as u128 - before(period) } else { 0 };
        whole - at_end + before(into)
    }
}

fn nanos_at(n: u128) -> Instant {
    Instant::ZERO + Duration::from_nanos(u64::try_from(n).unwrap_or(u64::MAX))
}
