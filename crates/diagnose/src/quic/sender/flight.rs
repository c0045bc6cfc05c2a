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

/// Bytes in flight: the own count, corrected by the log's.
#[derive(Debug, Default)]
pub(super) struct FlightMeter {
    bytes: u64,
    source: FlightSource,
}

impl FlightMeter {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether the log shows the bytes in flight.
    pub(super) fn is_known(&self) -> bool {
        self.source != FlightSource::None
    }

    /// Bytes in flight; `None` if the log does not show them.
    pub(super) fn known(&self) -> Option<u64> {
        self.is_known().then_some(self.bytes)
    }

    /// The log has the length of a packet.
    pub(super) const fn on_length(&mut self) {
        self.source = match self.source {
            FlightSource::None | FlightSource::Lengths => FlightSource::Lengths,
            FlightSource::Sums | FlightSource::LengthsAndSums => FlightSource::LengthsAndSums,
        };
    }

    /// The log has the bytes in flight. Logs that report the bytes of a packet before the packet itself
    /// must not count it twice, so only a lower value corrects the own count.
    pub(super) fn on_sum(&mut self, logged: u64) {
        (self.bytes, self.source) = match self.source {
            FlightSource::None | FlightSource::Sums => (logged, FlightSource::Sums),
            FlightSource::Lengths | FlightSource::LengthsAndSums => {
                (self.bytes.min(logged), FlightSource::LengthsAndSums)
            }
        };
    }

    pub(super) const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) const fn remove(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
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
}

impl Default for DeliveryMeter {
    fn default() -> Self {
        Self { bytes: 0, at: Instant::ZERO, first_sent: Instant::ZERO, rate: 0.0 }
    }
}

impl DeliveryMeter {
    /// A packet is sent with nothing in flight: the interval of its rate begins with it.
    pub(super) const fn restart(&mut self, at: Instant) {
        (self.first_sent, self.at) = (at, at);
    }

    /// Counts `bytes` that an acknowledgment delivers; `newest` is the last of its packets that was sent.
    /// Takes a rate from it over at least `min_rtt`, which is `None` if no queue shows that the
    /// bottleneck was busy.
    pub(super) fn add(
        &mut self,
        at: Instant,
        bytes: u64,
        newest: &SentPacket,
        min_rtt: Option<Duration>,
    ) {
        self.bytes += bytes;
        self.at = at;
        self.first_sent = newest.at;
        let elapsed = newest.at.since(newest.first_sent).max(at.since(newest.delivered_at));
        if min_rtt.is_some_and(|min| elapsed >= min && !elapsed.is_zero()) {
            let delivered = (self.bytes - newest.delivered) as f64;
            self.rate = self.rate.max(delivered * 1e9 / elapsed.as_nanos() as f64);
        }
    }
}
