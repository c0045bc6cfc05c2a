//! Recordings of a cellular line, made by rule: the model that Sprout has of one (Winstein,
//! Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over
//! Cellular Networks", NSDI 2013, section 3), without its outages.
//!
//! Packets leave as a Poisson process whose rate wanders: a Brownian motion with a deviation of
//! 200 packets per second after a second, between 0 and 1,000 packets of 1,500 bytes per second
//! (12 Mbit/s), looked at every 20 ms and thrown back at both ends. The way up has a quarter of it,
//! since terminals send with less power. No measurement is copied: every number but these is
//! drawn.

use std::sync::LazyLock;

use net::trace::Schedule;
use units::Stream;

/// A tick of the rate, in milliseconds.
const TICK: u32 = 20;
/// Length of a recording, in milliseconds.
const LENGTH: u32 = 60_000;
/// Parts of a millisecond in each of which a packet may go: few enough go for chance to be that of
/// a Poisson process.
const PARTS: u64 = 50;

/// Towards the terminal.
pub(super) fn down() -> Schedule {
    // Three million draws: made once, however many scenarios name it.
    static MADE: LazyLock<Schedule> = LazyLock::new(|| recording("lte-down", 1_000_000));
    MADE.clone()
}

/// From the terminal.
pub(super) fn up() -> Schedule {
    static MADE: LazyLock<Schedule> = LazyLock::new(|| recording("lte-up", 250_000));
    MADE.clone()
}

/// Rates are thousandths of a packet per second.
fn recording(owner: &str, most: u64) -> Schedule {
    let mut steps = Stream::named(1, owner, "rate");
    let mut goes = Stream::named(1, owner, "packets");
    // The motion begins in the middle.
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
    // The recording is as long as it is, whether or not a packet can go at its end.
    moments.push(LENGTH);
    // Time runs forward, and there is at least that last moment.
    Schedule::new(moments).unwrap_or_else(|_| unreachable!())
}

/// The rate a tick later.
fn next_rate(rate: u64, most: u64, steps: &mut Stream) -> u64 {
    // The deviation of a tick: a fifth of the most, times the root of 0.02 (0.141421).
    let deviation = most / 5 * 141_421 / 1_000_000;
    // Twelve uniform draws have the variance 1 and nearly the bell's shape.
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
    fn a_recording_is_made_once() {
        for make in [down, up] {
            assert!(core::ptr::eq(make().moments(), make().moments()));
        }
    }

    #[test]
    fn the_recordings_keep_to_their_rule() {
        for (schedule, most) in [(down(), 1_000), (up(), 250)] {
            let moments = schedule.moments();
            assert_eq!(schedule.period().as_millis(), u64::from(LENGTH));
            let seconds: Vec<usize> = (0..60)
                .map(|s| moments.iter().filter(|&&at| at.saturating_sub(1) / 1_000 == s).count())
                .collect();
            // No second beyond the most by more than chance gives a Poisson count: five deviations.
            let bound = f64::from(most) + 5.0 * f64::from(most).sqrt();
            assert!(seconds.iter().all(|&n| (n as f64) < bound), "{seconds:?}");
            // It wanders: the best second has twice the worst and more.
            let (least, best) = (seconds.iter().min().unwrap(), seconds.iter().max().unwrap());
            assert!(best > &(2 * least), "{seconds:?}");
            assert!(*best > most as usize / 3, "{seconds:?}");
        }
    }
}
