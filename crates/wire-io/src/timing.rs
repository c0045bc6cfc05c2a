//! How late the machine was: from the moment a packet was due to the moment the kernel had it.

use units::Duration;

/// What comes later than this is told as too late.
pub const TOO_LATE: Duration = Duration::from_millis(1);

/// Lateness of every packet written.
#[derive(Debug, Clone, Default)]
pub struct Lateness {
    nanos: Vec<u32>,
}

impl Lateness {
    /// A packet was so late.
    #[inline]
    pub fn note(&mut self, late: Duration) {
        self.nanos.push(u32::try_from(late.as_nanos()).unwrap_or(u32::MAX));
    }

    /// What there was to see.
    pub fn timing(&self) -> Timing {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        let at = |share: usize| {
            let place = (sorted.len() * share / 1_000).min(sorted.len().saturating_sub(1));
            Duration::from_nanos(sorted.get(place).copied().unwrap_or(0).into())
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
    /// Packets written to real hosts, a merged one counted once.
    pub packets: u64,
    /// Half of them were no later than this.
    pub p50: Duration,
    /// 99 of 100 were no later than this.
    pub p99: Duration,
    /// The latest.
    pub worst: Duration,
    /// Packets later than [`TOO_LATE`].
    pub too_late: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_sorted_row() {
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
