//! Delay of a congested Wi-Fi channel: the model of Huitema's C4 tests (private-octopus/c4,
//! doc/c4-tests.md, "Handling of High Jitter Environments").
//!
//! A packet waits for N1 intervals of 1 ms, N1 from a Poisson law of mean 1 (collision deferral),
//! less a uniform part of the last of them (collision avoidance), and for N2 intervals of 7.5 ms: N2
//! is from a Poisson law of mean 12 (retransmission on the radio link) for a fraction x of the
//! packets, otherwise 0. The target average J gives x = (J - 1 ms) / 90 ms, from 0 to 1.
//!
//! Counts end at `MOST_DEFERRALS` and `MOST_RETRANSMISSIONS`, whose probability is below 10^-14,
//! so that every delay has a bound.

use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant, RandomStream};

use crate::schedule::Schedule;
use crate::selection::RandomSource;

const DEFERRAL: Duration = Duration::from_millis(1);
const RETRANSMISSION: Duration = Duration::from_micros(7_500);

/// Maximum of N1.
const MOST_DEFERRALS: u64 = 16;
/// Maximum of N2.
const MOST_RETRANSMISSIONS: u64 = 48;

/// 2^64 times e^-1 and e^-12.
const EXP_1: u64 = 6_786_177_901_268_885_274;
const EXP_12: u64 = 113_340_712_816_370;

/// Average delay from which all packets are retransmitted on the radio link.
const FULL: Duration = Duration::from_millis(91);

/// The longest delay of the model for an average of `average` at most.
pub fn longest_delay(average: Duration) -> Duration {
    let retransmissions = if average > DEFERRAL { MOST_RETRANSMISSIONS } else { 0 };
    DEFERRAL.saturating_mul(MOST_DEFERRALS) + RETRANSMISSION.saturating_mul(retransmissions)
}

/// Delays packets as a congested Wi-Fi channel; a packet that would overtake leaves with the one
/// before it instead, so order is kept.
#[derive(Debug, Clone)]
pub struct WifiJitter {
    average: Schedule<Duration>,
    deferrals: RandomStream,
    avoidance: RandomStream,
    choice: RandomStream,
    retransmissions: RandomStream,
    held: VecDeque<(Instant, PacketId)>,
}

impl WifiJitter {
    /// Creates an element that holds no packet; `average` is the target average delay.
    pub fn new(average: Schedule<Duration>, random_source: &RandomSource<'_>) -> Self {
        Self {
            average,
            deferrals: random_source.stream("deferral"),
            avoidance: random_source.stream("avoidance"),
            choice: random_source.stream("choice"),
            retransmissions: random_source.stream("retransmission"),
            held: VecDeque::new(),
        }
    }

    fn draw(&mut self, average: Duration) -> Duration {
        let deferrals = poisson(EXP_1, MOST_DEFERRALS, &mut self.deferrals);
        let part = Duration::from_nanos(self.avoidance.below(DEFERRAL.as_nanos()));
        let less = if deferrals > 0 { part } else { Duration::ZERO };
        let above = average.saturating_sub(DEFERRAL).as_nanos();
        let retransmitted = self.choice.below(FULL.saturating_sub(DEFERRAL).as_nanos()) < above;
        let retransmissions = match retransmitted {
            true => poisson(EXP_12, MOST_RETRANSMISSIONS, &mut self.retransmissions),
            false => 0,
        };
        let waits = DEFERRAL.saturating_mul(deferrals).saturating_sub(less);
        waits + RETRANSMISSION.saturating_mul(retransmissions)
    }
}

/// Draws from a Poisson law: multiplies uniform numbers until the product is at most e^-mean (Knuth,
/// The Art of Computer Programming 2, 3.4.1), in units of 2^-64.
fn poisson(exp_mean: u64, most: u64, draws: &mut RandomStream) -> u64 {
    let mut product = u64::MAX;
    for count in 0..most {
        product = ((u128::from(product) * u128::from(draws.next_u64())) >> 64) as u64;
        if product <= exp_mean {
            return count;
        }
    }
    most
}

impl Element for WifiJitter {
    fn accept(&mut self, now: Instant, packet: PacketId, _: &PacketView) -> PacketVerdict {
        let due = now + self.draw(self.average.at(now));
        let at = self.held.back().map_or(due, |&(before, _)| due.max(before));
        self.held.push_back((at, packet));
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        self.held.front().map(|&(at, _)| at)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.held.pop_front_if(|&mut (at, _)| at <= now).map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    /// Delays in ms of `n` packets, too far apart to wait for each other.
    fn delays(average: u64, n: u64) -> Vec<f64> {
        let average = Schedule::new(vec![(Duration::ZERO, Duration::from_millis(average))], None);
        let mut wifi = WifiJitter::new(average.unwrap(), &RNG);
        let mut delay = |k: u64| {
            let now = Instant::from_nanos(k * 1_000_000_000);
            wifi.accept(now, PacketId(0), &data(1_500));
            (drain(&mut wifi)[0].0 - now.as_nanos()) as f64 / 1e6
        };
        (0..n).map(&mut delay).collect()
    }

    /// N1 - r [N1 > 0] has the mean 1 - (1 - 1/e) / 2 = 0.68394 ms, x N2 7.5 ms the mean
    /// x 90 ms. Variances: at most 1.1 ms^2, and for x = 1/15 of 7.5^2 (x (12 + 144) - (12 x)^2) =
    /// 549 ms^2, for x = 1 of 675 ms^2.
    #[test]
    fn means_are_those_of_the_model() {
        let n = 100_000;
        for (average, mean, variance) in [
            (1, 0.683_94, 1.1),
            (7, 6.683_94, 550.2),
            (91, 90.683_94, 676.2),
            (200, 90.683_94, 676.2),
        ] {
            let delays = delays(average, n);
            let found = delays.iter().sum::<f64>() / n as f64;
            let sigma = (variance / n as f64).sqrt();
            assert!((found - mean).abs() < 4.0 * sigma, "{average} ms: {found}, not {mean}");
            let longest = longest_delay(Duration::from_millis(average)).as_secs_f64() * 1e3;
            assert!(delays.iter().all(|delay| *delay <= longest));
        }
    }

    /// Without N2, e^-1 of the packets have no delay, and P(N1 = 1) = e^-1 of them less than 1 ms.
    #[test]
    fn deferrals_follow_a_poisson_law() {
        let n = 100_000;
        let delays = delays(1, n);
        let none = delays.iter().filter(|delay| **delay == 0.0).count() as f64;
        let one = delays.iter().filter(|delay| **delay > 0.0 && **delay <= 1.0).count() as f64;
        let (mean, sigma) = (n as f64 * 0.367_879, (n as f64 * 0.367_879 * 0.632_121).sqrt());
        assert!((none - mean).abs() < 4.0 * sigma, "{none}");
        assert!((one - mean).abs() < 4.0 * sigma, "{one}");
    }
}
