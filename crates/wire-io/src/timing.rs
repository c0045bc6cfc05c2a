//! Lateness of the machine: from the time a packet was due to its delivery to the kernel.

use units::Duration;

/// Packets later than this are reported as too late.
pub const TOO_LATE: Duration = Duration::from_millis(1);

/// Lateness of every packet written.
#[derive(Debug, Clone, Default)]
pub struct Lateness {
    nanos: Vec<u32>,
}

impl Lateness {
    /// Records the lateness of a packet.
    #[inline]
    pub fn note(&mut self, late: Duration) {
        self.nanos.push(u32::try_from(late.as_nanos()).unwrap_or(u32::MAX));
    }

    /// Returns the statistics.
    pub fn timing(&self) -> Timing {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        let at = |share: usize| {
            let offset = (sorted.len() * share / 1_000).min(sorted.len().saturating_sub(1));
            Duration::from_nanos(sorted.get(offset).copied().unwrap_or(0).into())
        };
        let in_time = sorted.partition_point(|&ns| u64::from(ns) <= TOO_LATE.as_nanos());
        Timing {
            packets: sorted.len() as u64,
            p50: at(500),
            p99: at(990),
            worst: at(1_000),
            too_late: (sorted.len() - in_time) as u64,
        }
    }
}

/// Lateness of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// Packets written to real hosts; an aggregate counts as one.
    pub packets: u64,
    /// Median lateness.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Maximum.
    pub worst: Duration,
    /// Packets later than [`TOO_LATE`].
    pub too_late: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks_of_the_sorted_samples() {
        let mut lateness = Lateness::default();
        for us in (0..1_000).rev() {
            lateness.note(Duration::from_micros(2 * us));
        }
        let timing = lateness.timing();
        assert_eq!(timing.packets, 1_000);
        assert_eq!(timing.p50, Duration::from_millis(1));
        assert_eq!(timing.p99, Duration::from_micros(1_980));
        assert_eq!(timing.worst, Duration::from_micros(1_998));
        assert_eq!(timing.too_late, 499);
        assert_eq!(Lateness::default().timing(), Timing::default());
    }
}
