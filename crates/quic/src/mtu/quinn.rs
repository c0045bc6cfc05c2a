//! The search of quinn-proto 0.11.19 (`connection/mtud.rs`): a binary one that repeats a lost probe, and a detector of black
//! holes.

use units::{Duration, Instant};

/// Lost probes of a size before it is too large (`MAX_PROBE_RETRANSMITS`).
const MOST_PROBES: u32 = 3;
/// Suspicious bursts of losses that are no black hole (`BLACK_HOLE_THRESHOLD`).
const MOST_SUSPICIOUS: usize = 3;
/// Time from a completed search to the next (`MtuDiscoveryConfig::interval`).
const INTERVAL: Duration = Duration::from_secs(600);
/// Time from a black hole to the next search (`black_hole_cooldown`).
const COOLDOWN: Duration = Duration::from_secs(60);

/// State of the search.
#[derive(Debug, Clone, Copy)]
enum SearchPhase {
    Initial,
    Searching {
        least: u32,
        most: u32,
        last: u32,
        lost: u32,
    },
    /// Until then.
    Complete(Instant),
}

/// The search of one connection.
#[derive(Debug, Clone)]
pub(crate) struct QuinnSearch {
    within: u32,
    largest: u32,
    current: u32,
    phase: SearchPhase,
    /// Number of the probe in flight.
    probe: Option<u64>,
    detector: BlackHoleDetector,
}

impl QuinnSearch {
    /// A search from datagrams of `first` bytes, the least, to `largest`.
    pub(super) fn new(first: u32, within: u32, largest: u32) -> Self {
        let current = first.min(largest);
        let detector = BlackHoleDetector::new(current);
        Self { within, largest, current, phase: SearchPhase::Initial, probe: None, detector }
    }

    pub(super) const fn size(&self) -> u32 {
        self.current
    }

    /// Returns the size of a probe that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<u32> {
        match self.phase {
            SearchPhase::Complete(until) if now < until => return None,
            SearchPhase::Initial | SearchPhase::Complete(_) => {
                let (least, most) = (self.current, self.largest.max(self.current));
                self.phase = SearchPhase::Searching { least, most, last: least, lost: 0 };
            }
            SearchPhase::Searching { .. } => {}
        }
        let SearchPhase::Searching { least, most, last, lost } = &mut self.phase else {
            return None;
        };
        if self.probe.is_some() {
            return None;
        }
        if (1..MOST_PROBES).contains(lost) {
            return Some(*last);
        }
        if *lost == 0 {
            *least = *last;
        } else {
            *most = *last - 1;
        }
        *lost = 0;
        let next = (*least + *most) / 2;
        let size = if next.abs_diff(*last) >= self.within {
            next
        } else if most.saturating_sub(*last) >= self.within {
            *most
        } else {
            self.phase = SearchPhase::Complete(now + INTERVAL);
            return None;
        };
        *last = size;
        Some(size)
    }

    pub(super) const fn on_sent(&mut self, number: u64) {
        self.probe = Some(number);
    }

    /// Processes numbers and sizes of acknowledged packets, ascending; returns the new size if a probe is among them.
    pub(super) fn on_acked(&mut self, packets: impl Iterator<Item = (u64, u32)>) -> Option<u32> {
        let mut grown = None;
        for (number, size) in packets {
            match &mut self.phase {
                SearchPhase::Searching { last, lost, .. } if self.probe == Some(number) => {
                    self.probe = None;
                    *lost = 0;
                    self.current = *last;
                    grown = Some(*last);
                    self.detector.on_probe_acked(number, size);
                }
                _ => self.detector.on_acked(number, size),
            }
        }
        grown
    }

    /// Processes numbers and sizes of lost packets, ascending; returns the number of the probe if it is among them.
    pub(super) fn on_lost(&mut self, packets: impl Iterator<Item = (u64, u32)>) -> Option<u64> {
        let mut lost_probe = None;
        for (number, size) in packets {
            match &mut self.phase {
                SearchPhase::Searching { lost, .. } if self.probe == Some(number) => {
                    self.probe = None;
                    *lost += 1;
                    lost_probe = Some(number);
                }
                _ => self.detector.on_lost(number, size),
            }
        }
        lost_probe
    }

    /// Ends the present burst of losses; returns the least size if it completes a black hole.
    pub(super) fn take_black_hole(&mut self, now: Instant) -> Option<u32> {
        if !self.detector.is_black_hole() {
            return None;
        }
        self.current = self.detector.least;
        self.probe = None;
        self.phase = SearchPhase::Complete(now + COOLDOWN);
        Some(self.current)
    }
}

/// Judges by the sizes of lost and acknowledged packets whether large ones no longer arrive.
#[derive(Debug, Clone)]
struct BlackHoleDetector {
    least: u32,
    /// Smallest packets of the suspicious bursts.
    suspicious: Vec<u32>,
    /// Last number and smallest packet of the present burst of losses.
    burst: Option<(u64, u32)>,
    largest_after_loss: u64,
    acked: u32,
}

impl BlackHoleDetector {
    const fn new(least: u32) -> Self {
        Self { least, suspicious: Vec::new(), burst: None, largest_after_loss: 0, acked: least }
    }

    fn on_probe_acked(&mut self, number: u64, size: u32) {
        self.suspicious.clear();
        (self.acked, self.largest_after_loss) = (size, number);
    }

    fn on_acked(&mut self, number: u64, size: u32) {
        if size < self.acked {
            return;
        }
        if size == self.acked {
            self.largest_after_loss = self.largest_after_loss.max(number);
            return;
        }
        (self.acked, self.largest_after_loss) = (size, number);
        self.suspicious.retain(|&smallest| smallest > size);
    }

    fn on_lost(&mut self, number: u64, size: u32) {
        if self.burst.is_some_and(|(last, _)| number - last != 1) {
            self.finish_burst();
        }
        let smallest = self.burst.map_or(size, |(_, smallest)| smallest.min(size));
        self.burst = Some((number, smallest));
    }

    fn is_black_hole(&mut self) -> bool {
        self.finish_burst();
        let found = self.suspicious.len() > MOST_SUSPICIOUS;
        if found {
            self.suspicious.clear();
        }
        found
    }

    fn finish_burst(&mut self) {
        let Some((last, smallest)) = self.burst.take() else { return };
        let is_explained = last < self.largest_after_loss && smallest <= self.acked;
        if smallest <= self.least || is_explained {
            return;
        }
        if last > self.largest_after_loss {
            self.acked = self.least;
        }
        if self.suspicious.len() <= MOST_SUSPICIOUS {
            self.suspicious.push(smallest);
        } else if let Some(least) = self.suspicious.iter_mut().min()
            && *least < smallest
        {
            *least = smallest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64, size: u32) -> impl Iterator<Item = (u64, u32)> {
        core::iter::once((number, size))
    }

    /// Sizes of the probes over a path whose largest datagram is `largest`, in bytes.
    fn probes(largest: u32) -> Vec<u32> {
        let mut search = QuinnSearch::new(1_200, 20, 1_452);
        let mut sizes = Vec::new();
        for number in 1..30 {
            let Some(size) = search.due(Instant::ZERO) else { break };
            search.on_sent(number);
            assert_eq!(search.due(Instant::ZERO), None);
            sizes.push(size);
            if size <= largest {
                assert_eq!(search.on_acked(packet(number, size)), Some(size));
            } else {
                assert_eq!(search.on_lost(packet(number, size)), Some(number));
            }
        }
        sizes
    }

    #[test]
    fn the_sizes_of_quinn_over_paths_of_1500_and_of_1400_bytes() {
        assert_eq!(probes(1_452), [1_326, 1_389, 1_420, 1_452]);
        let sizes = probes(1_372);
        assert_eq!(sizes[..4], [1_326, 1_389, 1_389, 1_389]);
        assert_eq!(sizes[4], 1_357);
    }

    #[test]
    fn four_bursts_of_large_packets_are_a_black_hole() {
        let mut search = QuinnSearch::new(1_200, 20, 1_452);
        assert_eq!(search.due(Instant::ZERO), Some(1_326));
        search.on_sent(1);
        assert_eq!(search.on_acked(packet(1, 1_326)), Some(1_326));
        for number in [10, 12, 14] {
            assert_eq!(search.on_lost(packet(number, 1_326)), None);
            assert_eq!(search.take_black_hole(Instant::ZERO), None);
        }
        assert_eq!(search.on_lost(packet(16, 1_326)), None);
        assert_eq!(search.take_black_hole(Instant::ZERO), Some(1_200));
        assert_eq!((search.size(), search.due(Instant::ZERO)), (1_200, None));
    }
}
