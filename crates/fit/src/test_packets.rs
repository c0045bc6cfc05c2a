//! Packets of captures made by hand.

use diagnose::CapturedPacket;
use packet::{Dir, Flags, Segment};
use units::{Instant, SeqNum};

/// A packet at a time in microseconds.
pub(crate) fn packet(micros: u64, dir: Dir, seq: u32, ack: u32, payload: u32) -> CapturedPacket {
    let (flags, seq, ack) = (Flags::ACK, SeqNum(seq), SeqNum(ack));
    CapturedPacket {
        at: Instant::from_nanos(micros * 1_000),
        frame: 1,
        segment: Segment { flags, dir, seq, ack, payload, ..Segment::default() },
        captured: payload,
        id: 0,
        ttl: 0,
        options_cut: false,
    }
}
