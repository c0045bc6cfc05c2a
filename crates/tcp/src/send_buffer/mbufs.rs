//! The mbufs of FreeBSD's send buffer, which limit a burst: a device takes 35 pieces a packet.
//!
//! m_uiotom and m_getm2 of uipc_mbuf.c and kern_mbuf.c, sbcompress of uipc_sockbuf.c, tcp_m_copym of
//! tcp_output.c, IF_HW_TSOMAX of if.c (35 pieces of 2048 bytes).

use std::collections::VecDeque;

/// Bytes of a page, of a cluster (`MCLBYTES`) and of an mbuf alone (`MLEN`).
const PAGE: u64 = 4_096;
const CLUSTER: u64 = 2_048;
const ALONE: u64 = 224;
/// From this size on data has a cluster (`MINCLSIZE`).
const LEAST_IN_CLUSTER: u64 = 169;
/// The largest length that is copied into the last mbuf (`MCLBYTES / 4`).
const COPIED: u64 = CLUSTER / 4;
/// Pieces of a packet with its header (`if_hw_tsomaxsegcount`), and bytes of a piece.
const PIECES: u64 = 35;
const PIECE: u64 = 2_048;

/// Runs for which there is room from the start.
const RUNS: usize = 32;

/// Equal mbufs one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct MbufRun {
    len: u64,
    count: u64,
}

/// The mbufs from the oldest byte held on. Places count the bytes written.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct MbufChain {
    runs: VecDeque<MbufRun>,
    /// Where the first mbuf and the byte after the last one lie.
    start: u64,
    end: u64,
    /// Bytes that still fit into the last mbuf.
    room: u64,
    /// A run and where it begins: the search for the next burst starts there.
    cursor: (usize, u64),
}

impl Default for MbufChain {
    fn default() -> Self {
        // Writes after ACKs are alike: few runs are needed, and the transfer allocates none of them.
        Self { runs: VecDeque::with_capacity(RUNS), start: 0, end: 0, room: 0, cursor: (0, 0) }
    }
}

impl MbufChain {
    /// Appends the data of one pass of sosend; `held`: bytes in the buffer before it.
    pub(super) fn append(&mut self, mut bytes: u64, held: u64) {
        self.release(self.end - held);
        while bytes > 0 {
            let storage = match bytes {
                0..LEAST_IN_CLUSTER => ALONE,
                LEAST_IN_CLUSTER..=CLUSTER => CLUSTER,
                _ => PAGE,
            };
            let len = bytes.min(storage);
            if len <= COPIED && len <= self.room {
                self.extend_last(len);
            } else {
                self.push(len);
                self.room = storage - len;
            }
            self.end += len;
            bytes -= len;
        }
    }

    /// All bytes were acknowledged.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        (self.start, self.end, self.room, self.cursor) = (0, 0, 0, (0, 0));
    }

    /// Bytes of a burst of `len` that the device takes as one packet (tcp_m_copym); the burst begins
    /// `offset` bytes into the `held` bytes of the buffer.
    pub(super) fn limit(&mut self, offset: u64, len: u64, held: u64) -> u64 {
        let at = self.end - held + offset;
        let (mut index, mut place) =
            if self.cursor.1 <= at { self.cursor } else { (0, self.start) };
        while let Some(run) = self.runs.get(index)
            && place + run.len * run.count <= at
        {
            place += run.len * run.count;
            index += 1;
        }
        self.cursor = (index, place);
        let (mut left, mut copied) = (PIECES, 0);
        for run in self.runs.iter().skip(index) {
            for n in 0..run.count {
                let end = place + (n + 1) * run.len;
                let from = at + copied;
                if end <= from {
                    continue;
                }
                let part = (end - from).min(len - copied);
                let pieces = part.div_ceil(PIECE);
                if left <= 1 || copied == len {
                    return copied;
                }
                if pieces >= left {
                    return copied + (left - 1) * PIECE;
                }
                left -= pieces;
                copied += part;
            }
            place += run.len * run.count;
        }
        copied
    }

    /// Frees the mbufs before `front` (sbcut).
    fn release(&mut self, front: u64) {
        while let Some(run) = self.runs.front_mut() {
            let whole = ((front - self.start) / run.len).min(run.count);
            if whole == 0 {
                return;
            }
            self.start += whole * run.len;
            run.count -= whole;
            if run.count > 0 {
                self.cursor = (0, self.start);
                return;
            }
            self.runs.pop_front();
            self.cursor = self
                .cursor
                .0
                .checked_sub(1)
                .map_or((0, self.start), |index| (index, self.cursor.1));
        }
        self.room = 0;
    }

    fn push(&mut self, len: u64) {
        match self.runs.back_mut() {
            Some(last) if last.len == len => last.count += 1,
            _ => self.runs.push_back(MbufRun { len, count: 1 }),
        }
    }

    fn extend_last(&mut self, len: u64) {
        let Some(last) = self.runs.back_mut() else { return };
        let longer = last.len + len;
        last.count -= 1;
        if last.count == 0 {
            // The longer one may join the run before.
            self.runs.pop_back();
            self.cursor = (0, self.start);
        }
        self.push(longer);
        self.room -= len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_ends_after_34_pieces() {
        // golden/freebsd-rack-closed, lossless-wan45: 131,400 bytes at once, then 2,896 for each ACK;
        // the burst from byte 124,528 on has 49,464 bytes.
        let mut chain = MbufChain::default();
        chain.append(131_400, 0);
        for _ in 0..35 {
            chain.append(2_896, 131_400 - 2_896);
        }
        let acknowledged = 35 * 2_896;
        assert_eq!(chain.limit(124_528 - acknowledged, 57_920, 131_400), 49_464);
        assert_eq!(chain.limit(124_528 - acknowledged, 4_344, 131_400), 4_344);
    }

    #[test]
    fn small_writes_fill_the_last_mbuf() {
        let mut chain = MbufChain::default();
        for n in 0..100 {
            chain.append(100, n * 100);
        }
        // An mbuf alone holds 224 bytes.
        assert_eq!(chain.limit(0, 10_000, 10_000), 34 * 200);
        // A cluster holds 2,048.
        let mut chain = MbufChain::default();
        for n in 0..100 {
            chain.append(500, n * 500);
        }
        assert_eq!(chain.limit(0, 50_000, 50_000), 50_000);
        assert_eq!(chain.runs, [MbufRun { len: 2_000, count: 25 }]);
    }

    #[test]
    fn acknowledged_mbufs_are_freed() {
        let mut chain = MbufChain::default();
        chain.append(10_000, 0);
        chain.append(10_000, 1_000);
        assert_eq!(chain.start, 8_192);
        assert_eq!(chain.limit(0, 11_000, 11_000), 11_000);
        chain.append(10_000, 0);
        assert_eq!((chain.start, chain.end), (20_000, 30_000));
        assert_eq!(chain.limit(0, 10_000, 10_000), 10_000);
    }
}
