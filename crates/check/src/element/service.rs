//! A line that takes the queued packets in any order: the departure time of the present one follows
//! from the data sent so far.
//!
//! A line with a rate is computed by busy periods, as in [`super`]. For a line that follows a
//! trace, only the index of a packet's last byte among all bytes that it could have sent since time
//! zero matters.

use units::{Duration, Instant};

use super::{NANOS, nanos};
use crate::invariants::{Changes, Line};

const MS: u64 = 1_000_000;
const OPPORTUNITY: u128 = 1_500;

#[derive(Debug, Clone)]
pub(super) struct LineService {
    line: Line,
    moments: Vec<u32>,
    /// The rate, if it changes.
    supply: Option<Supply>,
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
    pub(super) fn new(line: Line, traces: &[Vec<u32>], rate: Option<Changes<u64>>) -> Self {
        let moments = match line {
            Line::Rate(_) => Vec::new(),
            Line::Trace(trace) => traces.get(trace).cloned().unwrap_or_default(),
        };
        Self {
            line,
            moments,
            supply: rate.map(Supply::new),
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
                if let Some(supply) = &self.supply {
                    return supply.time_of(supply.until(self.since) + bits * NANOS);
                }
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

/// What a line of a changing rate could have sent since time zero, in bits times 10^9.
#[derive(Debug, Clone)]
struct Supply {
    rate: Changes<u64>,
    /// For each step, the supply of a period before it.
    before: Vec<u128>,
    /// The supply of a whole period; `None` if the steps do not repeat.
    of_period: Option<u128>,
}

impl Supply {
    fn new(rate: Changes<u64>) -> Self {
        let mut before = vec![0];
        let mut sum = 0;
        for pair in rate.steps.windows(2) {
            sum += u128::from(pair[0].1) * u128::from(pair[1].0.since(pair[0].0).as_nanos());
            before.push(sum);
        }
        let last = rate.steps[rate.steps.len() - 1];
        let of_period = rate.period.map(|period| {
            sum + u128::from(last.1) * u128::from(period.as_nanos() - last.0.as_nanos())
        });
        Self { rate, before, of_period }
    }

    /// The supply from time zero to an instant.
    fn until(&self, at: Instant) -> u128 {
        let (rounds, into) = self.rate.split(at);
        let step = self.rate.steps.partition_point(|(at, _)| at.as_nanos() <= into).max(1) - 1;
        let (from, rate) = self.rate.steps[step];
        let rounds = u128::from(rounds) * self.of_period.unwrap_or(0);
        rounds + self.before[step] + u128::from(rate) * u128::from(into - from.as_nanos())
    }

    /// The nanosecond in which the supply reaches an amount above 0.
    fn time_of(&self, amount: u128) -> Instant {
        let (rounds, rest) = match self.of_period {
            Some(0) => return Instant::MAX,
            // An amount that ends with a period is not of the next.
            Some(of_period) => ((amount - 1) / of_period, (amount - 1) % of_period + 1),
            None => (0, amount),
        };
        let step = self.before.partition_point(|&before| before < rest).max(1) - 1;
        let (from, rate) = self.rate.steps[step];
        if rate == 0 {
            return Instant::MAX;
        }
        let period = self.rate.period.map_or(0, |period| u128::from(period.as_nanos()));
        let into = u128::from(from.as_nanos()) + (rest - self.before[step]) / u128::from(rate);
        nanos_at(rounds * period + into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 bit/s for half of each second, beginning with the second half of a step.
    #[test]
    fn amounts_and_instants_correspond() {
        let at = Instant::from_nanos;
        let steps = vec![(at(0), 8), (at(250_000_000), 0), (at(750_000_000), 8)];
        let supply = Supply::new(Changes { steps, period: Some(Duration::from_secs(1)) });
        let bits = |n: u128| n * NANOS;
        assert_eq!(supply.until(at(2_800_000_000)), bits(10) + NANOS / 10 * 4);
        // The second bit pair ends at 0.25 s, not after the suspension.
        assert_eq!(supply.time_of(bits(2)), at(250_000_000));
        assert_eq!(supply.time_of(bits(3)), at(875_000_000));
        assert_eq!(supply.time_of(bits(4)), at(1_000_000_000));
        assert_eq!(supply.time_of(bits(10)), at(2_750_000_000 - 500_000_000));
        let steps = vec![(at(0), 8), (at(1_000_000_000), 0)];
        let once = Supply::new(Changes { steps, period: None });
        assert_eq!(once.time_of(bits(8)), at(1_000_000_000));
        assert_eq!(once.time_of(bits(9)), Instant::MAX);
    }
}
