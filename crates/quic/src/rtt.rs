//! Round-trip times: RFC 9002 section 5.

use units::{Duration, Instant};

/// Arithmetic of an estimator of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttArithmetic {
    /// Whole nanoseconds; the latest sample includes the peer's delay (RFC 9002 section 5).
    Nanoseconds,
    /// Smoothed values are single-precision floats of microseconds, truncated to whole ones, and the latest sample is
    /// without the peer's delay (quic-go, `UpdateRTT`).
    Microseconds,
}

/// The estimator of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rtt {
    arithmetic: RttArithmetic,
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    /// The latest sample without the peer's delay.
    adjusted: Duration,
    first_sample: Option<Instant>,
}

impl Rtt {
    /// An estimator without samples: it assumes `initial` (section 6.2.2).
    pub(crate) fn new(initial: Duration, arithmetic: RttArithmetic) -> Self {
        Self {
            arithmetic,
            latest: Duration::ZERO,
            smoothed: initial,
            variance: half(initial),
            min: Duration::ZERO,
            adjusted: Duration::ZERO,
            first_sample: None,
        }
    }

    /// Adds a sample. `delay` is the reported ACK delay, already capped.
    pub(crate) fn on_sample(&mut self, now: Instant, latest: Duration, delay: Duration) {
        self.latest = latest;
        self.adjusted = latest;
        if self.first_sample.is_none() {
            // Section 5.3: the first sample replaces the estimate.
            self.first_sample = Some(now);
            self.min = latest;
            self.smoothed = latest;
            self.variance = half(latest);
            return;
        }
        self.min = self.min.min(latest);
        // The delay is subtracted unless the result would be below the minimum.
        let plausible = latest >= self.min + delay;
        let adjusted = if plausible { latest - delay } else { latest };
        self.adjusted = adjusted;
        if self.arithmetic == RttArithmetic::Microseconds {
            self.latest = adjusted;
            self.smooth_in_floats();
            return;
        }
        let (smoothed, adjusted) = (self.smoothed.as_nanos(), adjusted.as_nanos());
        let variance = (3 * self.variance.as_nanos() + smoothed.abs_diff(adjusted)) / 4;
        self.variance = Duration::from_nanos(variance);
        self.smoothed = Duration::from_nanos((7 * smoothed + adjusted) / 8);
    }

    /// Adds the latest sample with the arithmetic of quic-go.
    fn smooth_in_floats(&mut self) {
        let micros = |span: Duration| span.as_micros() as f32;
        let apart = self.smoothed.as_nanos().abs_diff(self.latest.as_nanos());
        let variance = 0.75 * micros(self.variance) + 0.25 * micros(Duration::from_nanos(apart));
        let smoothed = micros(self.smoothed) * 0.875 + micros(self.latest) * 0.125;
        self.variance = Duration::from_micros(variance as u64);
        self.smoothed = Duration::from_micros(smoothed as u64);
    }

    /// When the first sample was taken, if any.
    pub(crate) const fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    pub(crate) const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(crate) const fn min(&self) -> Duration {
        self.min
    }

    /// The latest sample, less the peer's delay where that is plausible.
    pub(crate) const fn adjusted(&self) -> Duration {
        self.adjusted
    }

    /// The larger of the latest sample and the smoothed value.
    pub(crate) fn largest(&self) -> Duration {
        self.latest.max(self.smoothed)
    }

    /// `smoothed + max(4 variance, granularity)` (section 6.2.1, without the peer's delay).
    pub(crate) fn timeout(&self, granularity: Duration) -> Duration {
        self.smoothed + self.variance.saturating_mul(4).max(granularity)
    }
}

const fn half(span: Duration) -> Duration {
    Duration::from_nanos(span.as_nanos() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn sampled(samples: &[(u64, u64)]) -> Rtt {
        let mut rtt = Rtt::new(ms(333), RttArithmetic::Nanoseconds);
        for &(latest, delay) in samples {
            rtt.on_sample(Instant::ZERO, ms(latest), ms(delay));
        }
        rtt
    }

    #[test]
    fn the_first_sample_replaces_the_guess_section_5_3() {
        assert_eq!(Rtt::new(ms(333), RttArithmetic::Nanoseconds).timeout(ms(1)), ms(999));
        let rtt = sampled(&[(100, 50)]);
        assert_eq!((rtt.smoothed, rtt.variance, rtt.min), (ms(100), ms(50), ms(100)));
        assert_eq!(rtt.timeout(ms(1)), ms(300));
    }

    #[test]
    fn later_samples_are_weighed_without_the_peers_delay() {
        let rtt = sampled(&[(100, 0), (140, 20)]);
        // 3/4 of 50 and 1/4 of 20; 7/8 of 100 and 1/8 of 120.
        assert_eq!(rtt.variance, Duration::from_micros(42_500));
        assert_eq!(rtt.smoothed, Duration::from_micros(102_500));
    }

    #[test]
    fn a_delay_that_would_undercut_the_minimum_is_ignored() {
        assert_eq!(sampled(&[(100, 0), (110, 20)]).smoothed, Duration::from_micros(101_250));
        // Just plausible: 120 - 20 is the least.
        assert_eq!(sampled(&[(100, 0), (120, 20)]).smoothed, ms(100));
    }

    /// 12,345.678 and 23,456.789 us: 7/8 of 12,345 and 1/8 of 23,456 are 13,733.875; the difference of 11,111.111.
    #[test]
    fn quic_go_smooths_whole_microseconds() {
        let mut rtt = Rtt::new(ms(100), RttArithmetic::Microseconds);
        rtt.on_sample(Instant::ZERO, Duration::from_nanos(12_345_678), Duration::ZERO);
        assert_eq!(rtt.smoothed, Duration::from_nanos(12_345_678));
        rtt.on_sample(Instant::ZERO, Duration::from_nanos(24_456_789), ms(1));
        assert_eq!(rtt.smoothed, Duration::from_micros(13_733));
        // 3/4 of 6,172 and 1/4 of 11,111.
        assert_eq!(rtt.variance, Duration::from_micros(7_406));
        // The latest sample has lost the peer's delay too.
        assert_eq!(rtt.largest(), Duration::from_nanos(23_456_789));
    }

    #[test]
    fn the_least_sample_ignores_delays_section_5_2() {
        assert_eq!(sampled(&[(100, 0), (90, 25), (95, 0)]).min, ms(90));
    }
}
