//! Reordering of a path, as an element that causes it.

/// Reordering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReorderingFit {
    /// Groups of this many packets are reversed.
    Reversed(u64),
    /// A fraction of the packets is delayed by this many ns.
    Share(f64, u64),
}

/// Maximum size of groups that a queue reverses.
const LONGEST_GROUP: u64 = 16;

/// Returns reordering as an element of a path.
pub(crate) fn late(packets: u64, late_ns: u64, extent: u64, new: u64) -> Option<ReorderingFit> {
    if packets == 0 || new == 0 {
        return None;
    }
    let share = packets as f64 / new as f64;
    // In a reversed group of n, n - 1 packets are overtaken, by up to n - 1 others.
    if share > 0.4 && extent < LONGEST_GROUP {
        return Some(ReorderingFit::Reversed((extent + 1).max(2)));
    }
    Some(ReorderingFit::Share(share, late_ns.max(1_000)))
}
