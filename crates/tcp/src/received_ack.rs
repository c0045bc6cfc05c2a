//! An acknowledgment as the sender takes it.

use packet::Segment;
use recovery::dsack::SackRange;
use units::{Offset, SeqNum};

use crate::connection::Connection;

/// The contents of an acknowledgment, as offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedAck {
    /// The segment's sequence number.
    pub(crate) seq: Offset,
    /// Cumulative acknowledgment.
    pub(crate) th_ack: Offset,
    /// Window advertised, in bytes.
    pub(crate) wnd: u64,
    /// Number of ACKs merged by offload.
    pub(crate) nsegs: u32,
    /// The segment carries data.
    pub(crate) data: bool,
    /// It has a SACK option, and SACK was negotiated (`TOF_SACK`).
    pub(crate) sacks: bool,
    blocks: [SackRange; 4],
    count: usize,
}

impl ReceivedAck {
    /// Parses an acknowledgment; blocks outside the sequence space around `una` are dropped.
    pub(crate) fn parse(
        conn: &Connection,
        una: Offset,
        segment: &Segment,
        (seq, th_ack): (Offset, Offset),
        wnd: u64,
    ) -> Self {
        let mut received = Self {
            seq,
            th_ack,
            wnd,
            nsegs: u32::from(segment.nsegs.max(1)),
            data: segment.payload > 0,
            sacks: conn.negotiated.sack && !segment.sack_blocks().is_empty(),
            blocks: [(Offset(0), Offset(0)); 4],
            count: 0,
        };
        if conn.negotiated.sack {
            for block in segment.sack_blocks() {
                let place = |seq: SeqNum| seq.near(conn.cfg.isn, una);
                if let Some(block) = place(block.left).zip(place(block.right)) {
                    received.blocks[received.count] = block;
                    received.count += 1;
                }
            }
        }
        received
    }

    /// SACK blocks beyond `th_ack`, or below it for duplicates (D-SACK).
    pub(crate) fn blocks(&self) -> &[SackRange] {
        &self.blocks[..self.count]
    }
}
