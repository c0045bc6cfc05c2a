//! The script's numbers and the host's.

use std::collections::BTreeMap;

/// Where the peer's stream begins, and the timestamps of both clocks. Ours begins at 0, so the
/// script's numbers of it are the host's.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Where the peer's stream begins.
    pub(super) theirs: u32,
    /// Our side opened the connection.
    pub(super) opened_here: bool,
    pub(super) clock: Clock,
}

/// The timestamps that the script has for those the host really sent.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// First pair: the script's and ours.
    first: Option<(u32, u32)>,
    pairs: BTreeMap<u32, u32>,
}

impl Clock {
    /// The script awaited `script`, and the host sent `ours`.
    pub(super) fn learn(&mut self, script: u32, ours: u32) {
        let _ = self.first.get_or_insert((script, ours));
        self.pairs.insert(script, ours);
    }

    /// What an echo of the script's `ecr` is to the host; where the script tells how long a tick is,
    /// one that was never sent as well.
    pub(super) fn ours(&self, ecr: u32, ticks: bool) -> u32 {
        match (self.pairs.get(&ecr), self.first) {
            (Some(&ours), _) => ours,
            (None, Some((script, ours))) if ticks => ours.wrapping_add(ecr.wrapping_sub(script)),
            _ => ecr,
        }
    }

    /// How many ticks `ours` lies off the value `script` that was awaited; nothing before the first
    /// pair is known.
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
    fn timestamps_are_those_the_script_has_for_ours() {
        let mut clock = Clock::default();
        assert_eq!(clock.ours(7, true), 7);
        clock.learn(1_000, 100_050);
        assert_eq!((clock.ours(1_000, false), clock.ours(1_100, false)), (100_050, 1_100));
        assert_eq!(clock.ours(1_100, true), 100_150);
        assert_eq!((clock.off(1_100, 100_152), clock.off(1_100, 100_148)), (2, 2));
    }
}
