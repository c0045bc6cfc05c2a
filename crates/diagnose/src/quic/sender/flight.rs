//! Bytes in flight, and their delivery.

use units::{Duration, Instant};

use crate::quic::packets::SentPacket;

/// What the log shows of the bytes in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FlightSource {
    /// Nothing so far.
    #[default]
    None,
    /// The lengths of packets.
    Lengths,
    /// The sum.
    Sums,
    /// Both.
    LengthsAndSums,
}

/// Bytes in flight: the own count of packets, corrected in both directions by the log's.
///
/// A log may report the bytes in flight before the packet or the ACK that changes them (quic-go: before the
/// `packet_received`), or after it. So the difference between both counts is kept, and the next change of the own
/// count that narrows it is taken for the one that the log has reported already.
#[derive(Debug, Default)]
pub(super) struct FlightMeter {
    /// Bytes of the packets in flight by the own count.
    counted: u64,
    /// What the log counted more than that (positive) or less.
    correction: i64,
    source: FlightSource,
}

impl FlightMeter {
    pub(super) const fn bytes(&self) -> u64 {
        self.counted.saturating_add_signed(self.correction)
    }

    /// Whether nothing is in flight. Bytes that only the log counts are those of a packet that it reports next.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0 || self.counted == 0 && self.source != FlightSource::Sums
    }

    /// Whether the log shows the bytes in flight.
    pub(super) fn is_known(&self) -> bool {
        self.source != FlightSource::None
    }

    /// Bytes in flight; `None` if the log does not show them.
    pub(super) fn known(&self) -> Option<u64> {
        self.is_known().then_some(self.bytes())
    }

    /// The log has the length of a packet.
    pub(super) const fn on_length(&mut self) {
        self.source = match self.source {
            FlightSource::None | FlightSource::Lengths => FlightSource::Lengths,
            FlightSource::Sums | FlightSource::LengthsAndSums => FlightSource::LengthsAndSums,
        };
    }

    /// The log has the bytes in flight.
    pub(super) const fn on_sum(&mut self, logged: u64) {
        self.source = match self.source {
            FlightSource::None | FlightSource::Sums => FlightSource::Sums,
            FlightSource::Lengths | FlightSource::LengthsAndSums => FlightSource::LengthsAndSums,
        };
        self.correction = logged.cast_signed().saturating_sub(self.counted.cast_signed());
    }

    /// Adds a packet that was sent.
    pub(super) fn add(&mut self, bytes: u64) {
        self.counted = self.counted.saturating_add(bytes);
        if self.correction > 0 {
            self.correction = self.correction.saturating_sub_unsigned(bytes).max(0);
        }
    }

    /// Removes packets that are in flight no longer.
    pub(super) fn remove(&mut self, bytes: u64) {
        self.counted = self.counted.saturating_sub(bytes);
        if self.correction < 0 {
            self.correction = self.correction.saturating_add_unsigned(bytes).min(0);
        }
    }
}

/// Since when the bottleneck has not been idle: each packet waited there for at least the time since the one before it
/// arrived. A short flight waits behind itself, but not behind the flight before.
#[derive(Debug, Default)]
pub(super) struct BusyMeter {
    since: Option<Instant>,
    last: Option<Instant>,
}

impl BusyMeter {
    /// A packet arrived at `at`, as its acknowledgment shows, after it had waited on the path; returns for how long the
    /// bottleneck had been idle since the packet before.
    pub(super) fn arrived(&mut self, at: Instant, waited: Duration) -> Duration {
        let gap = self.last.map_or(Duration::ZERO, |last| at.since(last));
        if waited.is_zero() {
            self.since = None;
        } else if waited < gap || self.since.is_none() {
            self.since = Some(at);
        }
        self.last = self.last.max(Some(at));
        gap.saturating_sub(waited)
    }

    /// Whether it was busy from then on.
    pub(super) fn is_busy_since(&self, from: Instant) -> bool {
        self.since.is_some_and(|since| since <= from)
    }
}

/// Bytes that were delivered, and the largest rate of them.
#[derive(Debug)]
pub(super) struct DeliveryMeter {
    pub(super) bytes: u64,
    pub(super) at: Instant,
    /// When the packet was sent whose acknowledgment delivered them.
    pub(super) first_sent: Instant,
    /// Largest rate with a queue at the bottleneck, in bytes per second; 0 without one.
    pub(super) rate: f64,
    /// Largest rate at any time.
    pub(super) largest: f64,
    /// Moving average of these rates.
    recent: f64,
    /// Bytes that wait at the bottleneck by that rate, at the time `backlog_at`.
    backlog: f64,
    backlog_at: Instant,
    /// Bytes delivered until which rates are those of the application.
    limited_until: u64,
}

/// A rate above this many times that of a queue shows that the queue is none of the bottleneck.
const CONTRADICTED: f64 = 1.25;
/// Weight of a rate in their moving average.
const WEIGHT: f64 = 0.125;

impl Default for DeliveryMeter {
    fn default() -> Self {
        Self {
            bytes: 0,
            at: Instant::ZERO,
            first_sent: Instant::ZERO,
            rate: 0.0,
            largest: 0.0,
            recent: 0.0,
            backlog: 0.0,
            backlog_at: Instant::ZERO,
            limited_until: 0,
        }
    }
}

impl DeliveryMeter {
    /// A packet is sent with nothing in flight: the interval of its rate begins with it.
    pub(super) const fn restart(&mut self, at: Instant) {
        (self.first_sent, self.at) = (at, at);
    }

    /// Counts `bytes` that an acknowledgment delivers; `newest` is the last of its packets that was sent.
    /// Takes a rate from it over at least `min_rtt`: of the bottleneck if something shows that it was busy all the time.
    pub(super) fn add(
        &mut self,
        at: Instant,
        bytes: u64,
        newest: &SentPacket,
        (min_rtt, is_busy): (Option<Duration>, bool),
    ) {
        self.bytes += bytes;
        self.at = at;
        self.first_sent = newest.at;
        let elapsed = newest.at.since(newest.first_sent).max(at.since(newest.delivered_at));
        if min_rtt.is_some_and(|min| elapsed >= min && !elapsed.is_zero()) {
            let delivered = (self.bytes - newest.delivered) as f64;
            let rate = delivered * 1e9 / elapsed.as_nanos() as f64;
            self.largest = self.largest.max(rate);
            if !is_busy {
                return;
            }
            self.rate = self.rate.max(rate);
            let first = self.recent <= 0.0;
            // The application's rate says only that the path carries as much.
            let is_limited = newest.delivered < self.limited_until;
            self.recent = match is_limited {
                true => self.recent.max(rate),
                false if first => rate,
                false => self.recent + WEIGHT * (rate - self.recent),
            };
        }
    }

    /// Largest rate in bytes per second with a queue; `None` without one. If more was delivered at other times, what looked
    /// like a queue was none of the bottleneck, or others shared it then: if it `lasts` they did, and the path carries more.
    pub(super) fn bottleneck(&self, lasts: bool) -> Option<f64> {
        match self.exceeds(self.rate) {
            _ if self.rate <= 0.0 => None,
            false => Some(self.rate),
            true => lasts.then_some(self.largest),
        }
    }

    /// Whether far more was delivered in a round trip than this rate in bytes per second.
    pub(super) fn exceeds(&self, rate: f64) -> bool {
        self.largest > rate * CONTRADICTED
    }

    /// The application has nothing to send while `flight` bytes are in flight.
    pub(super) const fn on_application_limit(&mut self, flight: u64) {
        self.limited_until = self.bytes.saturating_add(flight).saturating_add(1);
    }

    /// Counts a packet sent into the backlog of the bottleneck.
    pub(super) fn on_sent(&mut self, at: Instant, bytes: u64, rate: Option<f64>) {
        let drained = rate.unwrap_or(self.recent) * at.since(self.backlog_at).as_secs_f64();
        self.backlog = (self.backlog - drained).max(0.0) + bytes as f64;
        self.backlog_at = at;
    }

    /// Time that bytes take at the rate of the bottleneck, `rate` or that of the deliveries; `None` if it is not known.
    pub(super) fn time_of(&self, bytes: u64, rate: Option<f64>) -> Option<Duration> {
        let rate = rate.unwrap_or(self.recent);
        let ns = bytes as f64 * 1e9 / rate;
        (rate > 0.0 && ns < 1e15).then(|| Duration::from_nanos(ns as u64))
    }

    /// Bytes that the bottleneck carries in a time, as far as its rate is known.
    pub(super) fn bytes_in(&self, time: Duration, rate: Option<f64>) -> u64 {
        (rate.unwrap_or(self.recent) * time.as_secs_f64()) as u64
    }

    /// When the bottleneck has carried all that was sent, as far as its rate is known: `rate`, or that of the deliveries.
    pub(super) fn busy_until(&self, rate: Option<f64>) -> Instant {
        let rate = rate.unwrap_or(self.recent);
        if rate <= 0.0 {
            return Instant::ZERO;
        }
        let left = (self.backlog * 1e9 / rate).min(1e15);
        self.backlog_at + Duration::from_nanos(left as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_corrects_the_count_in_both_directions() {
        let mut flight = FlightMeter::default();
        flight.on_length();
        flight.add(3_000);
        flight.on_sum(2_000);
        assert_eq!(flight.bytes(), 2_000);
        flight.on_sum(5_000);
        assert_eq!(flight.bytes(), 5_000);
    }

    #[test]
    fn what_the_log_reported_before_its_reason_is_not_counted_twice() {
        let mut flight = FlightMeter::default();
        flight.on_length();
        flight.add(10_000);
        // The metrics, then the ACK that they follow from.
        flight.on_sum(8_000);
        flight.remove(2_000);
        assert_eq!(flight.bytes(), 8_000);
        // The metrics, then the packet.
        flight.on_sum(9_000);
        flight.add(1_000);
        assert_eq!(flight.bytes(), 9_000);
        // Without metrics the count goes on.
        flight.add(1_000);
        flight.remove(4_000);
        assert_eq!(flight.bytes(), 6_000);
    }

    #[test]
    fn a_flight_that_waits_behind_itself_does_not_keep_the_bottleneck_busy() {
        let ms = Duration::from_millis;
        let at = |n| Instant::ZERO + ms(n);
        // 20 packets 1 ms apart each 60 ms, whose waits grow from 1 to 20 ms.
        let mut busy = BusyMeter::default();
        for flight in 0..5 {
            for n in 1..=20 {
                busy.arrived(at(100 + 60 * flight + n), ms(n));
            }
        }
        assert!(busy.is_busy_since(at(342)) && !busy.is_busy_since(at(320)));
        // A packet that waited 10 ms, 40 ms after another one, shows that nothing was served for 30 ms.
        let mut busy = BusyMeter::default();
        assert_eq!(busy.arrived(at(100), ms(20)), Duration::ZERO);
        assert_eq!(busy.arrived(at(140), ms(10)), ms(30));
        // A window of 80 ms of queue, packets 1 ms apart.
        let mut busy = BusyMeter::default();
        for n in 0..200 {
            busy.arrived(at(100 + n), ms(80));
        }
        assert!(busy.is_busy_since(at(100)));
    }
}
