//! Maps the script's sequence numbers and timestamps to the host's.

use std::collections::BTreeMap;

/// Start of the peer's stream, and the timestamps of both clocks. The host's ISN is 0, so its
/// sequence numbers need no mapping.
#[derive(Debug, Default)]
pub(super) struct StreamNumbers {
    /// Initial sequence number of the peer.
    pub(super) peer_isn: u32,
    /// The host opened the connection.
    pub(super) active_open: bool,
    pub(super) clock: TimestampMap,
}

/// Maps the script's timestamps to the host's.
#[derive(Debug, Default)]
pub(super) struct TimestampMap {
    /// First pair: the script's and ours.
    first: Option<(u32, u32)>,
    pairs: BTreeMap<u32, u32>,
}

impl TimestampMap {
    /// Records that the script expected `script` and the host sent `ours`.
    pub(super) fn learn(&mut self, script: u32, ours: u32) {
        let _ = self.first.get_or_insert((script, ours));
        self.pairs.insert(script, ours);
    }

    /// Returns the host's timestamp for the script's `ecr`; with a tick length (`ticks`), also for
    /// values that were never sent.
    pub(super) fn ours(&self, ecr: u32, ticks: bool) -> u32 {
        match (self.pairs.get(&ecr), self.first) {
            (Some(&ours), _) => ours,
            (None, Some((script, ours))) if ticks => ours.wrapping_add(ecr.wrapping_sub(script)),
            _ => ecr,
        }
    }

    /// Returns the difference in ticks between `ours` and the expected value `script`; 0 before the
    /// first pair.
    pub(super) fn off(&self, script: u32, ours: u32) -> u32 {
        let Some((script_0, ours_0)) = self.first else { return 0 };
        let awaited = script.wrapping_sub(script_0);
        let passed = ours.wrapping_sub(ours_0);
        (passed.wrapping_sub(awaited) as i32).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_timestamps_map_to_the_hosts() {
        let mut clock = TimestampMap::default();
        assert_eq!(clock.ours(7, true), 7);
        clock.learn(1_000, 100_050);
        assert_eq!((clock.ours(1_000, false), clock.ours(1_100, false)), (100_050, 1_100));
        assert_eq!(clock.ours(1_100, true), 100_150);
        assert_eq!((clock.off(1_100, 100_152), clock.off(1_100, 100_148)), (2, 2));
    }
}
