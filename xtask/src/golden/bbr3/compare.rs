//! Compares a run with its recording.

use std::fmt;

use super::recording::{Bbr3Recording, InfoRow, SentPacket};
use super::run::ModelRun;
use crate::probe_draws::FirstDifference;

/// Tolerated difference of the times of a packet, in nanoseconds.
const TOLERANCE_NS: u64 = 1_000_000;

/// How alike a run and its recording are.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Data packets of the recording, and how many the run has before the first difference.
    pub(super) packets: usize,
    pub(super) same_packets: usize,
    /// Rows of `tcp_info`, and how many have the same windows and rate.
    pub(super) rows: usize,
    pub(super) same_rows: usize,
    /// Largest difference of the times of equal packets.
    pub(super) largest_ns: u64,
    /// The first difference of each kind, with its time.
    packet: Option<FirstDifference>,
    row: Option<FirstDifference>,
}

impl Comparison {
    pub(super) fn of(recording: &Bbr3Recording, run: &ModelRun) -> Self {
        let mut comparison = Self {
            packets: recording.packets.len(),
            rows: recording.rows.len(),
            ..Self::default()
        };
        comparison.compare_packets(&recording.packets, &run.packets);
        for (index, row) in recording.rows.iter().enumerate() {
            let ours = run.rows.get(index);
            // Before the handshake the kernel shows what the model has no socket for.
            let before = row.pacing == 0;
            if before || ours.is_some_and(|ours| same(row, ours)) {
                comparison.same_rows += 1;
            } else if comparison.row.is_none() {
                let shown = ours.map_or("none".to_owned(), text_of);
                let text = format!("tcp_info {shown} (kernel: {})", text_of(row));
                let ahead =
                    ours.is_some_and(|ours| (ours.pacing, ours.cwnd) > (row.pacing, row.cwnd));
                comparison.row = Some(FirstDifference { at: row.ns, text, ahead });
            }
        }
        comparison
    }

    fn compare_packets(&mut self, theirs: &[SentPacket], ours: &[SentPacket]) {
        for index in 0..theirs.len().max(ours.len()) {
            let (their, our) = (theirs.get(index), ours.get(index));
            if let (Some(their), Some(our)) = (their, our)
                && (their.seq, their.len) == (our.seq, our.len)
            {
                let apart = their.ns.abs_diff(our.ns);
                if apart <= TOLERANCE_NS {
                    self.same_packets += 1;
                    self.largest_ns = self.largest_ns.max(apart);
                    continue;
                }
            }
            let at = [their, our].into_iter().flatten().map(|packet| packet.ns).min();
            let show = |packet: Option<&SentPacket>| {
                packet.map_or("none".to_owned(), |SentPacket { ns, seq, len }| {
                    format!("{seq}+{len} at {ns}")
                })
            };
            let text = format!("packet {index} {} (kernel: {})", show(our), show(their));
            let ahead = our.is_some_and(|our| their.is_none_or(|their| our.ns < their.ns));
            self.packet = at.map(|at| FirstDifference { at, text, ahead });
            return;
        }
    }

    /// Every data packet, window and rate is equal.
    pub(super) const fn is_identical(&self) -> bool {
        self.packet.is_none() && self.row.is_none()
    }

    /// The first difference.
    pub(super) fn first(&self) -> Option<&FirstDifference> {
        [&self.packet, &self.row].into_iter().flatten().min_by_key(|first| first.at)
    }
}

fn same(row: &InfoRow, ours: &InfoRow) -> bool {
    (row.cwnd, row.ssthresh, row.pacing) == (ours.cwnd, ours.ssthresh, ours.pacing)
}

fn text_of(row: &InfoRow) -> String {
    let ssthresh = row.ssthresh.map_or("-".to_owned(), |bytes| bytes.to_string());
    format!("cwnd {} ssthresh {ssthresh} pacing {}", row.cwnd, row.pacing)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, same_packets, rows, same_rows, largest_ns, .. } = self;
        write!(
            f,
            "packets {packets} equal {same_packets} within {largest_ns} ns, rows {rows} equal {same_rows}"
        )?;
        for FirstDifference { at, text, .. } in [&self.packet, &self.row].into_iter().flatten() {
            write!(f, "\n    first at {:.6} s: {text}", *at as f64 / 1e9)?;
        }
        Ok(())
    }
}
