//! What became of every packet of a transfer, from the emulator's record (`link_fwd.csv.gz`).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::Reader;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

/// A packet on its way to the receiver. `seq` counts from the first byte of payload.
#[derive(Debug, Deserialize)]
struct Row {
    flow: u16,
    seq: i64,
    len: i64,
    fate: char,
}

/// Fate of a packet that arrived.
const DELIVERED: char = 'Q';

/// The truth about the data packets of one sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Fates {
    pub(super) transfer: String,
    /// The sender's port.
    pub(super) port: u16,
    /// Data packets sent.
    pub(super) packets: u64,
    /// Of these, such with bytes that were sent before.
    pub(super) retransmitted: u64,
    /// Of these, such whose bytes had all been sent before in packets that arrived.
    pub(super) spurious: u64,
    /// Data packets that did not arrive.
    pub(super) lost: u64,
}

/// Counts the fates in a transfer, a row for each sender by port.
pub(super) fn count(transfer: &Path) -> Result<Vec<Fates>, csv::Error> {
    let file = File::open(transfer.join("link_fwd.csv.gz"))?;
    let name = transfer.file_name().unwrap_or_default().to_string_lossy();
    count_rows(&name, MultiGzDecoder::new(file))
}

fn count_rows(transfer: &str, rows: impl Read) -> Result<Vec<Fates>, csv::Error> {
    let mut senders: Vec<(Fates, Sent)> = Vec::new();
    for row in Reader::from_reader(rows).deserialize() {
        let row: Row = row?;
        if row.len == 0 {
            continue;
        }
        let known = senders.iter().position(|(fates, _)| fates.port == row.flow);
        let at = known.unwrap_or_else(|| {
            let transfer = transfer.to_owned();
            let fates = Fates {
                transfer,
                port: row.flow,
                packets: 0,
                retransmitted: 0,
                spurious: 0,
                lost: 0,
            };
            senders.push((fates, Sent::default()));
            senders.len() - 1
        });
        let (fates, sent) = &mut senders[at];
        let end = row.seq + row.len;
        let again = row.seq < sent.highest;
        fates.packets += 1;
        fates.retransmitted += u64::from(again);
        fates.spurious += u64::from(again && sent.arrived(row.seq, end));
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

/// What a sender has sent so far.
#[derive(Debug, Default)]
struct Sent {
    /// Behind the highest byte sent.
    highest: i64,
    /// Bytes that arrived, in ranges without contact, by their beginning.
    ranges: Vec<(i64, i64)>,
}

impl Sent {
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
        // Of the packets sent again, the first had been lost, and one brings new bytes as well.
        assert_eq!(fates, [(7, 8, 5, 3, 2), (9, 2, 1, 0, 1)]);
    }
}
