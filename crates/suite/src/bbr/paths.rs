//! The paths of the suite: "a variety of RTTs (e.g., < 1 ms to 1 s) and bandwidths (e.g., 64 kbit/s to 10 Gbit/s)".

use units::Duration;

/// A bottleneck and a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BbrPath {
    /// Its name.
    pub name: &'static str,
    /// Rate of the bottleneck in bit/s.
    pub rate: u64,
    /// Round trip without queue and transmission.
    pub rtt: Duration,
}

/// Bytes of the largest IP packet.
pub(super) const MTU: u64 = 1_500;

/// All paths, the slowest first.
pub static PATHS: [BbrPath; 8] = [
    path("64k-1ms", 64_000, 1),
    path("64k-1s", 64_000, 1_000),
    path("1M-100ms", 1_000_000, 100),
    path("10M-40ms", 10_000_000, 40),
    path("10M-1s", 10_000_000, 1_000),
    path("100M-10ms", 100_000_000, 10),
    path("1G-10ms", 1_000_000_000, 10),
    path("10G-1ms", 10_000_000_000, 1),
];

const fn path(name: &'static str, rate: u64, ms: u64) -> BbrPath {
    BbrPath { name, rate, rtt: Duration::from_millis(ms) }
}

impl BbrPath {
    /// Bytes of a bandwidth-delay product.
    pub fn bdp(&self) -> u64 {
        (u128::from(self.rate) * u128::from(self.rtt.as_nanos()) / 8_000_000_000) as u64
    }

    /// The same in packets.
    pub fn packets(&self) -> u64 {
        self.bdp() / MTU
    }

    /// The round trip with the transmission of one packet.
    pub fn base_rtt(&self) -> Duration {
        self.rtt + self.packet_times(1)
    }

    /// Some round trips.
    pub(super) fn rounds(&self, count: u64) -> Duration {
        self.base_rtt().saturating_mul(count)
    }

    /// Time of some packets at the bottleneck.
    pub(super) fn packet_times(&self, count: u64) -> Duration {
        Duration::from_nanos(count * MTU * 8 * 1_000_000_000 / self.rate)
    }

    /// Time by which Startup is over: 40 round trips, or 400 packets where a window makes the round trip longer.
    pub(super) fn startup(&self) -> Duration {
        self.rounds(40).max(self.packet_times(400)) + Duration::from_millis(100)
    }

    /// Longest time from one probe for bandwidth to the next, with the probe.
    pub(super) fn cycle(&self) -> Duration {
        let wait = Duration::from_secs(3).min(self.rounds(64));
        wait + self.rounds(16).max(self.packet_times(200))
    }

    /// Bytes per second of full packets of which `size` bytes count.
    pub(super) fn bytes_per_second(&self, size: u64) -> f64 {
        self.rate as f64 / 8.0 * size as f64 / MTU as f64
    }
}
