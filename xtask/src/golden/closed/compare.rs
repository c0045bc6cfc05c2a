//! Compares a recording with the run of its scenario.

use std::fmt;

use units::Duration;

use super::recording::{ClosedRecording, DataPacket, TcpcbRow};
use super::run::{ClosedRun, TcpcbFields};

/// `TF_FASTRECOVERY`.
const FAST_RECOVERY: u32 = 0x0010_0000;
/// Fields that are valid only in a fast recovery; the kernel does not reset them after it.
const IN_RECOVERY: [&str; 3] = ["rec", "rfs", "prrd"];
/// Fields that a write after the same event also changes; rows are recorded before the write.
const AFTER_WRITE: [&str; 5] = ["nxt", "max", "sbcc", "hiwat", "prro"];

/// The first packet that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketMismatch {
    /// Number of the packet, from 1.
    number: usize,
    kernel: Option<DataPacket>,
    ours: Option<DataPacket>,
}

impl PacketMismatch {
    /// Returns the time of the earlier of the two packets.
    pub(super) fn ns(&self) -> u64 {
        [self.kernel, self.ours].into_iter().flatten().map(|packet| packet.ns).min().unwrap_or(0)
    }
}

impl fmt::Display for PacketMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |packet: Option<DataPacket>| match packet {
            Some(DataPacket { ns, seq, len }) => format!("{ns} ns {seq}+{len}"),
            None => "none".to_owned(),
        };
        write!(f, "packet {}: kernel {}, ours {}", self.number, one(self.kernel), one(self.ours))
    }
}

/// Result of a comparison.
#[derive(Debug)]
pub(super) struct TransferComparison {
    pub(super) packets: usize,
    pub(super) mismatches: usize,
    pub(super) first: Option<PacketMismatch>,
    /// Recorded control blocks, those with a differing field, and the first of these.
    pub(super) rows: usize,
    pub(super) rows_off: usize,
    pub(super) first_row: Option<(u64, String)>,
}

impl TransferComparison {
    /// Compares packet by packet; times may differ by `tolerance`.
    pub(super) fn of(recording: &ClosedRecording, run: &ClosedRun, tolerance: Duration) -> Self {
        let end = recording.end + tolerance.as_nanos();
        let ours: Vec<DataPacket> =
            run.packets.iter().copied().take_while(|packet| packet.ns <= end).collect();
        let kernel = &recording.packets;
        let packets = kernel.len().max(ours.len());
        let same = |a: &DataPacket, b: &DataPacket| {
            (a.seq, a.len) == (b.seq, b.len) && a.ns.abs_diff(b.ns) <= tolerance.as_nanos()
        };
        let alike = |&at: &usize| match (kernel.get(at), ours.get(at)) {
            (Some(a), Some(b)) => same(a, b),
            _ => false,
        };
        let first = (0..packets).find(|at| !alike(at)).map(|at| PacketMismatch {
            number: at + 1,
            kernel: kernel.get(at).copied(),
            ours: ours.get(at).copied(),
        });
        let mismatches = packets - (0..packets).filter(alike).count();
        let mut comparison =
            Self { packets, mismatches, first, rows: 0, rows_off: 0, first_row: None };
        if tolerance.is_zero() {
            comparison.compare_rows(recording, run);
        }
        comparison
    }

    fn compare_rows(&mut self, recording: &ClosedRecording, run: &ClosedRun) {
        for (at, (row, fields)) in recording.rows.iter().zip(&run.rows).enumerate() {
            // The run's state was read after all events of that time.
            if recording.rows.get(at + 1).is_some_and(|next| next.ns == row.ns) {
                continue;
            }
            self.rows += 1;
            let off = differences(row, fields);
            if !off.is_empty() {
                self.rows_off += 1;
                self.first_row.get_or_insert((row.ns, off));
            }
        }
    }

    /// Returns the time of the first difference: in a packet or an earlier control block.
    pub(super) fn parts_at(&self) -> Option<u64> {
        let row = self.first_row.as_ref().map(|&(ns, _)| ns);
        let first = self.first?.ns();
        Some(row.map_or(first, |ns| ns.min(first)))
    }

    /// Returns whether all data packets are equal.
    pub(super) const fn identical(&self) -> bool {
        self.mismatches == 0
    }
}

/// Formats the fields in which a recorded control block differs from ours, as `name kernel/ours`.
fn differences(row: &TcpcbRow, fields: &TcpcbFields) -> String {
    let mut off = String::new();
    for &(name, ours) in fields {
        let recovering = row.flags() & FAST_RECOVERY != 0;
        if AFTER_WRITE.contains(&name) || (IN_RECOVERY.contains(&name) && !recovering) {
            continue;
        }
        let kernel = match name {
            "fast" => Some(i64::from(row.flags() & FAST_RECOVERY != 0)),
            _ => row.field(name),
        };
        if let Some(kernel) = kernel.filter(|&kernel| kernel != ours) {
            off += &format!(" {name} {kernel}/{ours}");
        }
    }
    off.trim_start().to_owned()
}

/// Formats the recorded states around a time and ours at the same times.
pub(super) fn states_around(recording: &ClosedRecording, run: &ClosedRun, ns: u64) -> Vec<String> {
    let next = recording.rows.partition_point(|row| row.ns < ns);
    let from = next.saturating_sub(4);
    let rows = recording.rows.iter().zip(&run.rows).skip(from).take(7);
    rows.flat_map(|(row, fields)| {
        let ours: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        [format!("kernel {} {}", row.ns, row.text), format!("ours   {} {}", row.ns, ours.join(" "))]
    })
    .collect()
}
