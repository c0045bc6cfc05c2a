//! Outcome of every packet of a transfer, from the emulator's log (`link_fwd.csv.gz`).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::Reader;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

/// A packet to the receiver. `seq` counts from the first byte of payload.
#[derive(Debug, Deserialize)]
struct EmulatorRow {
    flow: u16,
    seq: i64,
    len: i64,
    fate: char,
}

/// `fate` of a delivered packet.
const DELIVERED: char = 'Q';

/// Ground truth about the data packets of one sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct TransferOutcomes {
    pub(super) transfer: String,
    /// The sender's port.
    pub(super) port: u16,
    /// Data packets sent.
    pub(super) packets: u64,
    /// Packets with bytes that were sent before.
    pub(super) retransmitted: u64,
    /// Retransmissions whose bytes had all been delivered before.
    pub(super) spurious: u64,
    /// Data packets that were lost.
    pub(super) lost: u64,
}

/// Counts the outcomes in a transfer, a row for each sender by port.
pub(super) fn count(transfer: &Path) -> Result<Vec<TransferOutcomes>, csv::Error> {
    let file = File::open(transfer.join("link_fwd.csv.gz"))?;
    let name = transfer.file_name().unwrap_or_default().to_string_lossy();
    count_rows(&name, MultiGzDecoder::new(file))
}

fn count_rows(transfer: &str, rows: impl Read) -> Result<Vec<TransferOutcomes>, csv::Error> {
    let mut senders: Vec<(TransferOutcomes, SentBytes)> = Vec::new();
    for row in Reader::from_reader(rows).deserialize() {
        let row: EmulatorRow = row?;
        if row.len == 0 {
            continue;
        }
        let known = senders.iter().position(|(fates, _)| fates.port == row.flow);
        let at = known.unwrap_or_else(|| {
            let transfer = transfer.to_owned();
            let fates = TransferOutcomes {
                transfer,
                port: row.flow,
                packets: 0,
                retransmitted: 0,
                spurious: 0,
                lost: 0,
            };
            senders.push((fates, SentBytes::default()));
            senders.len() - 1
        });
        let (fates, sent) = &mut senders[at];
        let end = row.seq + row.len;
        let repeated = row.seq < sent.highest;
        fates.packets += 1;
        fates.retransmitted += u64::from(repeated);
        fates.spurious += u64::from(repeated && sent.arrived(row.seq, end));
        sent.highest = sent.highest.max(end);
        if row.fate == DELIVERED {
            sent.arrives(row.seq, end);
        } else {
            fates.lost += 1;
        }
    }
    senders.sort_by_key(|(fates, _)| fates.port);
    Ok(senders.into_iter().map(|(fates, _)| fates).collect())
}

/// Bytes that a sender has sent so far.
#[derive(Debug, Default)]
struct SentBytes {
    /// One past the highest byte sent.
    highest: i64,
    /// Delivered bytes, as sorted disjoint ranges.
    ranges: Vec<(i64, i64)>,
}

impl SentBytes {
    fn arrived(&self, from: i64, to: i64) -> bool {
        let behind = self.ranges.partition_point(|range| range.0 <= from);
        behind.checked_sub(1).is_some_and(|at| self.ranges[at].1 >= to)
    }

    fn arrives(&mut self, mut from: i64, mut to: i64) {
        let first = self.ranges.partition_point(|range| range.1 < from);
        let last = self.ranges.partition_point(|range| range.0 <= to);
        if let (Some(begin), true) = (self.ranges.get(first), first < last) {
            from = from.min(begin.0);
            to = to.max(self.ranges[last - 1].1);
        }
        self.ranges.splice(first..last, [(from, to)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retransmission_is_spurious_if_all_its_bytes_had_arrived() {
        let rows = "\
t_us,flow,data_idx,seq,len,flags,fate\n\
0,7,0,-1,0,2,Q\n\
1,7,1,0,100,16,Q\n\
2,7,2,100,100,16,L\n\
3,7,3,200,100,16,Q\n\
4,9,1,0,50,16,D\n\
5,7,4,100,100,16,Q\n\
6,7,5,0,300,16,L\n\
7,7,6,150,50,16,Q\n\
8,9,2,0,50,16,Q\n\
9,7,7,250,100,16,Q\n\
9,7,7,340,5,16,Q\n";
        let fates = count_rows("x", rows.as_bytes()).unwrap();
        let fates: Vec<_> = fates
            .iter()
            .map(|fates| {
                (fates.port, fates.packets, fates.retransmitted, fates.spurious, fates.lost)
            })
            .collect();
        // Of the retransmitted packets, the first had been lost, and one also has new bytes.
        assert_eq!(fates, [(7, 8, 5, 3, 2), (9, 2, 1, 0, 1)]);
    }
}
