//! Generated traces of a cellular link by Sprout's model (Winstein, Sivaraman and Balakrishnan,
//! "Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013,
//! section 3), without its outages.
//!
//! Deliveries are a Poisson process whose rate follows a Brownian motion with a standard deviation
//! of 200 packets per second after one second, sampled every 20 ms and reflected at 0 and 1,000
//! packets of 1,500 bytes per second (12 Mbit/s). The uplink has a quarter of these rates, since
//! terminals transmit with less power. The traces contain no measured data.

use std::sync::LazyLock;

use net::trace::LinkTrace;
use units::RandomStream;

/// Sampling interval of the rate, in milliseconds.
const TICK: u32 = 20;
/// Length of a trace, in milliseconds.
const LENGTH: u32 = 60_000;
/// Bernoulli trials per millisecond; enough to approximate a Poisson process.
const PARTS: u64 = 50;

/// Returns the downlink trace.
pub(super) fn down() -> LinkTrace {
    // Three million random draws: generated once per process.
    static MADE: LazyLock<LinkTrace> = LazyLock::new(|| generate_trace("lte-down", 1_000_000));
    MADE.clone()
}

/// Returns the uplink trace.
pub(super) fn up() -> LinkTrace {
    static MADE: LazyLock<LinkTrace> = LazyLock::new(|| generate_trace("lte-up", 250_000));
    MADE.clone()
}

/// Generates a trace; `most` is the maximum rate in thousandths of a packet per second.
fn generate_trace(owner: &str, most: u64) -> LinkTrace {
    let mut steps = RandomStream::named(1, owner, "rate");
    let mut goes = RandomStream::named(1, owner, "packets");
    // The rate starts at half the maximum.
    let mut rate = most / 2;
    let mut moments = Vec::new();
    for tick in 0..LENGTH / TICK {
        rate = next_rate(rate, most, &mut steps);
        for at in tick * TICK + 1..=(tick + 1) * TICK {
            let chance = |_: &u64| goes.below(1_000_000 * PARTS) < rate;
            let packets = (0..PARTS).filter(chance).count();
            moments.extend(core::iter::repeat_n(at, packets));
        }
    }
    // A final opportunity fixes the length of the trace.
    moments.push(LENGTH);
    // The times ascend, and the last one is always present.
    LinkTrace::new(moments).unwrap_or_else(|_| unreachable!())
}

/// Returns the rate of the next interval.
fn next_rate(rate: u64, most: u64, steps: &mut RandomStream) -> u64 {
    // Standard deviation per interval: a fifth of the maximum times sqrt(0.02) (0.141421).
    let deviation = most / 5 * 141_421 / 1_000_000;
    // The sum of twelve uniform draws has variance 1 and is nearly normal.
    let sum: u64 = (0..12).map(|_| steps.below(1_000_001)).sum();
    let bell = sum as i64 - 6_000_000;
    let step = bell * deviation as i64 / 1_000_000;
    let (next, most) = (rate as i64 + step, most as i64);
    let thrown_back = if next > most { 2 * most - next } else { next.abs() };
    thrown_back.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_generated_once() {
        for make in [down, up] {
            assert!(core::ptr::eq(make().opportunities_ms(), make().opportunities_ms()));
        }
    }

    #[test]
    fn the_traces_follow_the_model() {
        for (schedule, most) in [(down(), 1_000), (up(), 250)] {
            let moments = schedule.opportunities_ms();
            assert_eq!(schedule.period().as_millis(), u64::from(LENGTH));
            let seconds: Vec<usize> = (0..60)
                .map(|s| moments.iter().filter(|&&at| at.saturating_sub(1) / 1_000 == s).count())
                .collect();
            // No second exceeds the maximum by more than five standard deviations (Poisson).
            let bound = f64::from(most) + 5.0 * f64::from(most).sqrt();
            assert!(seconds.iter().all(|&n| (n as f64) < bound), "{seconds:?}");
            // The rate varies: the best second has more than twice the packets of the worst.
            let (least, best) = (seconds.iter().min().unwrap(), seconds.iter().max().unwrap());
            assert!(best > &(2 * least), "{seconds:?}");
            assert!(*best > most as usize / 3, "{seconds:?}");
        }
    }
}
