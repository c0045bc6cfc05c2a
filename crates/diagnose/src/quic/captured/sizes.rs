//! Sizes of datagrams.

use std::collections::BTreeMap;

use super::CapturedQuicDatagram;

/// Most different sizes that are counted one by one.
const SIZES: usize = 256;
/// Most increases of the largest size that are kept.
const STEPS: usize = 8;

/// A datagram larger than all before it: the path MTU discovery of its sender raises the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeStep {
    /// Time in ns.
    pub at: u64,
    /// Frame of the capture.
    pub frame: u64,
    /// Size in bytes of UDP payload.
    pub bytes: u32,
}

/// Sizes of the datagrams of a direction, in bytes of UDP payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatagramSizes {
    /// Smallest.
    pub smallest: u32,
    /// Largest.
    pub largest: u32,
    /// Increases of the largest size, the first datagram included.
    pub steps: Vec<SizeStep>,
    counts: BTreeMap<u32, u64>,
}

impl DatagramSizes {
    pub(super) fn push(&mut self, datagram: &CapturedQuicDatagram) {
        let bytes = datagram.len;
        self.smallest = if self.largest == 0 { bytes } else { self.smallest.min(bytes) };
        if bytes > self.largest {
            self.largest = bytes;
            let step = SizeStep { at: datagram.at, frame: datagram.frame, bytes };
            if self.steps.len() < STEPS {
                self.steps.push(step);
            }
        }
        if self.counts.len() < SIZES || self.counts.contains_key(&bytes) {
            *self.counts.entry(bytes).or_default() += 1;
        }
    }

    /// The most frequent size and the number of its datagrams; `None` without datagrams. Of equal ones the
    /// largest.
    pub fn most_frequent(&self) -> Option<(u32, u64)> {
        self.counts.iter().map(|(&bytes, &count)| (bytes, count)).max_by_key(|&(_, count)| count)
    }

    /// The number of datagrams of a size.
    pub fn count(&self, bytes: u32) -> u64 {
        self.counts.get(&bytes).copied().unwrap_or(0)
    }
}
