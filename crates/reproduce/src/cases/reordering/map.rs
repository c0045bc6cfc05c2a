//! Where each stack is fooled: by the gap within a group and by the size of the groups.

use core::fmt::Write as _;

use units::Duration;

use super::rack::{BASE, MAIN, Stack, transfer};
use super::world::{Order, Seen};
use crate::cases::{CaseError, Stop};

/// From the first packet of a group to its last, in microseconds.
pub(crate) const GAPS_US: [u64; 14] = [
    0, 500, 1_000, 2_000, 4_000, 8_000, 11_000, 12_000, 15_000, 18_000, 22_000, 24_000, 30_000,
    45_000,
];
/// Packets of a group.
pub(crate) const GROUPS: [u32; 7] = [2, 3, 4, 5, 6, 8, 10];

/// RACK main with the threshold before D31506: a millisecond more, and a quarter of the round trip
/// once reordering was seen.
const OLD_MODE: Stack = Stack {
    name: "RACK main, rack_dsack_ctl = 0",
    set: &[
        "host.sender.profile=freebsd-rack-main",
        "host.sender.knobs.\"net.inet.tcp.rack.misc.rack_dsack_ctl\"=0",
    ],
};

/// The stacks of the map.
pub(crate) const STACKS: [Stack; 3] = [BASE, MAIN, OLD_MODE];

/// What a stack makes of a group and a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It takes nothing for lost.
    Spared,
    /// It does, and takes all of it back.
    Undone,
    /// It does, and its threshold stays.
    Fooled,
}

impl Fate {
    fn of(seen: &Seen) -> Self {
        match (seen.recoveries, seen.ssthresh) {
            (0, _) => Self::Spared,
            (_, None) => Self::Undone,
            (_, Some(_)) => Self::Fooled,
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::Spared => '.',
            Self::Undone => 'u',
            Self::Fooled => 'F',
        }
    }
}

/// The fate of 1 MB.
pub(crate) fn fate(
    stack: Stack,
    group: u32,
    gap_us: u64,
    stop: Stop<'_>,
) -> Result<Fate, CaseError> {
    let order = Order::Reversed { group, gap: Duration::from_micros(gap_us) };
    Ok(Fate::of(&transfer(order, stack, "1MB", stop)?))
}

/// The map as text.
pub(super) fn table(stop: Stop<'_>) -> Result<String, CaseError> {
    let mut text = String::from(
        "Where each stack is fooled (1 MB; . nothing taken for lost, u taken back, F fooled for good)\n",
    );
    let head = GAPS_US.map(|us| format!("{:>5}", us as f64 / 1_000.0)).concat();
    let _ = writeln!(text, "  {:39}{head}", "gap, ms");
    for stack in STACKS {
        for group in GROUPS {
            let mut row = String::new();
            for us in GAPS_US {
                let _ = write!(row, "{:>5}", fate(stack, group, us, stop)?.letter());
            }
            let name = format!("{}, groups of {group}", stack.name);
            let _ = writeln!(text, "  {name:39}{row}");
        }
    }
    Ok(text)
}
