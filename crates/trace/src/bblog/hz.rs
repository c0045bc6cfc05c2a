//! Estimates `kern.hz` from ticks and times: no file has it, and the default stack's `srtt` needs
//! it.

use core::fmt;

use super::TcpLogBuffer;

/// Usual values of `kern.hz`.
const USUAL: [u32; 9] = [100, 128, 250, 500, 1_000, 1_024, 2_000, 4_000, 10_000];

/// Estimate of the ticks per second of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hz {
    /// Smallest value consistent with the ticks, in thousandths.
    pub least_milli: u64,
    /// Largest value consistent with the ticks, in thousandths.
    pub most_milli: u64,
    /// The value, if unique: the only usual one in the range, or the only whole number.
    pub value: Option<u32>,
}

impl Hz {
    /// Converts `srtt` of the default stack (ticks * 32) to nanoseconds.
    pub fn srtt_nanos(&self, srtt: u32) -> Option<u64> {
        let per_second = u64::from(self.value?) * 32;
        Some((u64::from(srtt) * 1_000_000_000 + per_second / 2) / per_second)
    }

    /// Estimates from `ticks` counted in `micros`, with an error of one tick.
    fn between(ticks: u32, micros: u64) -> Option<Self> {
        let ticks = u64::from(ticks);
        // A tick is at least ten microseconds, and fewer than ten ticks are too few.
        if ticks < 10 || micros == 0 || ticks > micros / 10 {
            return None;
        }
        let milli = |ticks: u64| u128::from(ticks) * 1_000_000_000 / u128::from(micros);
        let least_milli = milli(ticks - 1) as u64;
        let most_milli = milli(ticks + 1) as u64 + 1;
        let within = |hz: &&u32| (least_milli..=most_milli).contains(&(u64::from(**hz) * 1_000));
        let mut usual = USUAL.iter().filter(within);
        let value = match (usual.next(), usual.next()) {
            (Some(&only), None) => Some(only),
            (Some(_), Some(_)) => None,
            (None, _) => {
                let (first, last) = (least_milli.div_ceil(1_000), most_milli / 1_000);
                // A kernel clock has at least one tick a second.
                (first == last && first > 0).then_some(first as u32)
            }
        };
        Some(Self { least_milli, most_milli, value })
    }
}

impl fmt::Display for Hz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(hz) => write!(f, "{hz}"),
            None => {
                write!(f, "{} to {}", self.least_milli / 1_000, self.most_milli.div_ceil(1_000))
            }
        }
    }
}

/// Collects ticks and times of a log.
#[derive(Debug, Clone, Default)]
pub(super) struct HzEstimator {
    /// First and latest record of the current run, in which both clocks advance.
    run: Option<(TickSample, TickSample)>,
    /// The longest earlier run: ticks, microseconds.
    longest: Option<(u32, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct TickSample {
    ticks: u32,
    micros: i64,
}

impl HzEstimator {
    pub(super) fn see(&mut self, info: &TcpLogBuffer) {
        let Some(micros) = info.uptime_micros() else { return };
        let now = TickSample { ticks: info.ticks, micros };
        self.run = match self.run {
            Some((first, last)) if follows(last, now) => Some((first, now)),
            Some(_) => {
                self.longest = self.span();
                Some((now, now))
            }
            None => Some((now, now)),
        };
    }

    pub(super) fn hz(&self) -> Option<Hz> {
        let (ticks, micros) = self.span()?;
        Hz::between(ticks, micros)
    }

    fn span(&self) -> Option<(u32, u64)> {
        let run = self.run.map(|(first, last)| {
            (last.ticks.wrapping_sub(first.ticks), last.micros.abs_diff(first.micros))
        });
        run.max_by_micros(self.longest)
    }
}

/// Whether both clocks advanced from `last` to `now`, at a plausible rate.
fn follows(last: TickSample, now: TickSample) -> bool {
    let ticks = u64::from(now.ticks.wrapping_sub(last.ticks));
    let Some(micros) = now.micros.checked_sub(last.micros) else { return false };
    // A day between two records, or more than a hundred thousand ticks a second, is damage.
    (0..86_400_000_000).contains(&micros) && ticks <= micros as u64 / 10 + 1
}

trait Longer {
    fn max_by_micros(self, other: Self) -> Self;
}

impl Longer for Option<(u32, u64)> {
    fn max_by_micros(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(if b.1 > a.1 { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(micros: i64, ticks: u32) -> TcpLogBuffer {
        TcpLogBuffer {
            tv_sec: micros.div_euclid(1_000_000),
            tv_usec: micros.rem_euclid(1_000_000),
            ticks,
            ..TcpLogBuffer::default()
        }
    }

    #[test]
    fn ten_ticks_in_hours_are_no_clock() {
        let slow = Hz::between(10, 86_400_000_000).unwrap();
        assert_eq!((slow.value, slow.srtt_nanos(32)), (None, None));
    }

    #[test]
    fn ticks_over_time_are_hz() {
        for hz in [100_u64, 128, 250, 1_000, 1_024] {
            let mut clocks = HzEstimator::default();
            for micros in (5_000_000_u64..8_000_000).step_by(7_321) {
                // The counter wraps on the way.
                let ticks = (u64::from(u32::MAX) + micros * hz / 1_000_000) as u32;
                clocks.see(&info(micros as i64, ticks));
            }
            let found = clocks.hz().unwrap();
            assert_eq!(found.value, Some(hz as u32), "{found:?}");
            assert!(found.least_milli <= hz * 1_000 && hz * 1_000 <= found.most_milli);
        }
    }

    #[test]
    fn an_odd_value_needs_a_longer_log() {
        let odd = |seconds: i64| {
            let mut clocks = HzEstimator::default();
            clocks.see(&info(0, 0));
            clocks.see(&info(seconds * 1_000_000, 333 * seconds as u32));
            clocks.hz().unwrap()
        };
        // After a second 332, 333 and 334 are possible, after ten only 333 is.
        assert_eq!(odd(1).value, None);
        assert_eq!(odd(1).to_string(), "332 to 335");
        assert_eq!(odd(10).value, Some(333));
    }

    #[test]
    fn a_short_log_gives_no_hz() {
        let mut clocks = HzEstimator::default();
        clocks.see(&info(0, 0));
        clocks.see(&info(5_000, 5));
        assert_eq!(clocks.hz(), None);
    }

    #[test]
    fn damage_starts_a_new_run_and_the_longest_counts() {
        let mut clocks = HzEstimator::default();
        for second in 0..10 {
            clocks.see(&info(second * 1_000_000, second as u32 * 1_000));
        }
        clocks.see(&info(4_000_000, 77));
        clocks.see(&info(i64::MAX, 0));
        clocks.see(&info(11_000_000, 11_000));
        assert_eq!(clocks.hz().unwrap().value, Some(1_000));
    }

    #[test]
    fn srtt_is_in_thirty_seconds_of_a_tick() {
        let hz = Hz { least_milli: 0, most_milli: 0, value: Some(1_000) };
        // 3,201 / 32 ms.
        assert_eq!(hz.srtt_nanos(3_201), Some(100_031_250));
        assert_eq!(Hz { value: None, ..hz }.srtt_nanos(3_201), None);
    }
}
