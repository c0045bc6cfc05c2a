//! The outcome of each stack by the gap within a group and the size of the groups.

use core::fmt::Write as _;

use units::Duration;

use super::rack::{BASE, MAIN, StackVariant, transfer};
use super::world::{Order, ReorderingRun};
use crate::cases::{CaseError, Workers};

/// Times from the first packet of a group to its last, in microseconds.
pub(crate) const GAPS_US: [u64; 14] = [
    0, 500, 1_000, 2_000, 4_000, 8_000, 11_000, 12_000, 15_000, 18_000, 22_000, 24_000, 30_000,
    45_000,
];
/// Packets per group.
pub(crate) const GROUPS: [u32; 7] = [2, 3, 4, 5, 6, 8, 10];

/// RACK main with the threshold before D31506: a millisecond more, and a quarter of the RTT once
/// reordering was seen.
const OLD_MODE: StackVariant = StackVariant {
    name: "RACK main, rack_dsack_ctl = 0",
    set: &[
        "host.sender.profile=freebsd-rack-main",
        "host.sender.knobs.\"net.inet.tcp.rack.misc.rack_dsack_ctl\"=0",
    ],
};

/// The stacks of the map.
pub(crate) const STACKS: [StackVariant; 3] = [BASE, MAIN, OLD_MODE];

/// The outcome of a transfer with reversed groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReorderOutcome {
    /// No recovery.
    NoRecovery,
    /// All recoveries were undone.
    AllUndone,
    /// A spurious recovery reduced the threshold.
    SpuriousRecovery,
}

impl ReorderOutcome {
    fn of(seen: &ReorderingRun) -> Self {
        match (seen.recoveries, seen.ssthresh) {
            (0, _) => Self::NoRecovery,
            (_, None) => Self::AllUndone,
            (_, Some(_)) => Self::SpuriousRecovery,
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::NoRecovery => '.',
            Self::AllUndone => 'u',
            Self::SpuriousRecovery => 'F',
        }
    }
}

/// The outcome of a transfer of 1 MB.
pub(crate) fn outcome(
    stack: StackVariant,
    group: u32,
    gap_us: u64,
    workers: &Workers<'_>,
) -> Result<ReorderOutcome, CaseError> {
    let order = Order::Reversed { group, gap: Duration::from_micros(gap_us) };
    Ok(ReorderOutcome::of(&transfer(order, stack, "1MB", workers)?))
}

/// The map as text.
pub(super) fn table(workers: &Workers<'_>) -> Result<String, CaseError> {
    let mut text = String::from(
        "Spurious recoveries of each stack (1 MB; . none, u all undone, F not undone)\n",
    );
    let head = GAPS_US.map(|us| format!("{:>5}", us as f64 / 1_000.0)).concat();
    let _ = writeln!(text, "  {:39}{head}", "gap, ms");
    let lines: Vec<(StackVariant, u32)> =
        STACKS.into_iter().flat_map(|stack| GROUPS.map(|group| (stack, group))).collect();
    let lines = workers.map(&lines, |&(stack, group)| {
        let row = workers.map(&GAPS_US, |&us| {
            let letter = outcome(stack, group, us, workers)?.letter();
            Ok::<_, CaseError>(format!("{letter:>5}"))
        })?;
        let name = format!("{}, groups of {group}", stack.name);
        Ok::<_, CaseError>(format!("  {name:39}{}\n", row.concat()))
    })?;
    text.push_str(&lines.concat());
    Ok(text)
}
