//! Round trips of the sender, measured and logged, and what they show of a queue.

use units::{Duration, Instant};

/// Timer granularity (RFC 9002 section 6.1.2).
pub(super) const GRANULARITY: Duration = Duration::from_millis(1);
/// Most by which a round trip may exceed the minimum without a queue (RFC 9406 section 4.2).
const MAX_QUEUE_THRESHOLD: Duration = Duration::from_millis(16);
/// Initial RTT (RFC 9002 section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Where the round trips come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RttSource {
    /// The log.
    #[default]
    Log,
    /// Acknowledgments.
    Acks,
}

/// Round trips of the sender.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    pub(super) min: Option<Duration>,
    pub(super) smoothed: Option<Duration>,
    variance: Option<Duration>,
    /// The last one was lengthened by a queue.
    pub(super) is_queued: bool,
    source: RttSource,
    /// Smoothed round trip times time, in ns squared, and that time.
    integral: u128,
    time: Duration,
}

impl RoundTrips {
    /// Adds the time of an interval to the mean.
    pub(super) fn advance(&mut self, time: Duration) {
        if let Some(smoothed) = self.smoothed {
            self.integral += u128::from(smoothed.as_nanos()) * u128::from(time.as_nanos());
            self.time += time;
        }
    }

    /// The mean over time of the smoothed round trip; `None` without one.
    pub(super) fn mean(&self) -> Option<Duration> {
        let mean = self.integral.checked_div(u128::from(self.time.as_nanos()))?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// Takes the round trip `raw` of an acknowledgment that the peer delayed by `delay` (RFC 9002
    /// section 5.3); returns the smoothed one. With the bytes delivered in it, and the size of a
    /// datagram: a queue holds at least one.
    pub(super) fn sample(
        &mut self,
        raw: Duration,
        delay: Duration,
        (delivered, datagram): (u64, u64),
    ) -> Duration {
        let min = self.min.map_or(raw, |min| min.min(raw));
        self.min = Some(min);
        let adjusted = if raw >= min + delay { raw - delay } else { raw };
        let (smoothed, variance) = match (self.smoothed, self.variance) {
            (Some(smoothed), Some(variance)) => {
                let [old, new] = [smoothed, adjusted].map(Duration::as_nanos);
                let off = Duration::from_nanos(old.abs_diff(new));
                let smoothed = (7 * u128::from(old) + u128::from(new)) / 8;
                (Duration::from_nanos(smoothed as u64), variance - variance / 4 + off / 4)
            }
            _ => (adjusted, adjusted / 2),
        };
        (self.smoothed, self.variance) = (Some(smoothed), Some(variance));
        self.source = RttSource::Acks;
        let waiting = u128::from(delivered) * u128::from(adjusted.saturating_sub(min).as_nanos());
        let holds = waiting >= u128::from(datagram) * u128::from(raw.as_nanos());
        self.is_queued = holds && is_queue(min, adjusted);
        smoothed
    }

    /// Takes logged values: the shortest so far, the latest if it is logged, the smoothed one and its
    /// variation.
    pub(super) fn on_logged(
        &mut self,
        min: Duration,
        latest: Option<Duration>,
        smoothed: Option<Duration>,
        variance: Option<Duration>,
    ) {
        self.min = Some(min);
        self.smoothed = smoothed.filter(|rtt| !rtt.is_zero()).or(self.smoothed);
        self.variance = variance.or(self.variance);
        // The own samples lack the peer's ACK delay, which the logged ones have.
        if let Some(latest) = latest.filter(|_| self.source == RttSource::Log) {
            self.is_queued = is_queue(min, latest);
        }
    }

    /// Probe timeout (RFC 9002 section 6.2.1).
    pub(super) fn timeout(&self, max_ack_delay: Duration) -> Duration {
        let smoothed = self.smoothed.unwrap_or(INITIAL_RTT);
        let variance = self.variance.unwrap_or(smoothed / 2);
        smoothed + (variance * 4).max(GRANULARITY) + max_ack_delay
    }
}

/// Whether a round trip shows a queue.
fn is_queue(min: Duration, sample: Duration) -> bool {
    sample >= min + (min / 8).clamp(GRANULARITY, MAX_QUEUE_THRESHOLD)
}

/// When the pacer lets the next packet leave.
#[derive(Debug)]
pub(super) struct PacerMeter {
    /// Logged rate, in bit/s.
    pub(super) rate: Option<u64>,
    pub(super) not_before: Instant,
}

impl Default for PacerMeter {
    fn default() -> Self {
        Self { rate: None, not_before: Instant::ZERO }
    }
}

/// Pacing at 1.25 windows per round trip (RFC 9002 section 7.7), if the log has no rate.
const PACING_GAIN: f64 = 1.25;

impl PacerMeter {
    /// Counts `bytes` sent at `at`; the pacer spreads `window` over the round trip if the log has no
    /// rate.
    pub(super) fn on_sent(
        &mut self,
        at: Instant,
        bytes: u64,
        window: Option<u64>,
        smoothed: Option<Duration>,
    ) {
        let rate = match (self.rate, window, smoothed) {
            (Some(rate), ..) => rate as f64 / 8.0,
            (None, Some(window), Some(smoothed)) if !smoothed.is_zero() => {
                PACING_GAIN * window as f64 * 1e9 / smoothed.as_nanos() as f64
            }
            _ => return,
        };
        if rate > 0.0 {
            let gap = Duration::from_nanos((bytes as f64 * 1e9 / rate).min(1e12) as u64);
            self.not_before = self.not_before.max(at) + gap;
        }
    }

    /// Pacing rate over the rate of the window, if the log has a pacing rate.
    pub(super) fn ratio(&self, window: Option<u64>, smoothed: Option<Duration>) -> Option<f64> {
        let window = window.filter(|&window| window > 0)?;
        let (rate, smoothed) = (self.rate?, smoothed?.as_nanos());
        Some(rate as f64 / 8.0 * smoothed as f64 / 1e9 / window as f64)
    }
}
