//! Counts of the captured packets of a connection.

use packet::Flags;

use crate::CapturedPacket;

/// Captured packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PacketTally {
    /// Number of packets.
    pub(super) frames: u64,
    /// Packets whose payload was truncated by the capture.
    pub(super) cut: u64,
    /// Packets whose TCP options were truncated by the capture.
    pub(super) options_cut: u64,
    /// Packets captured per direction.
    pub(super) seen: [u64; 2],
    /// ACKs without data, SYN, FIN or RST per direction.
    pub(super) bare_acks: [u64; 2],
    /// An RST was captured.
    pub(super) is_reset: bool,
    /// Bits of the directions with a FIN.
    fins: u8,
}

impl PacketTally {
    pub(super) fn push(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        let has = |flag: Flags| segment.flags.has(flag);
        self.frames += 1;
        self.seen[segment.dir as usize] += 1;
        let is_bare = segment.payload == 0 && has(Flags::ACK);
        let opens_or_ends = [Flags::SYN, Flags::FIN, Flags::RST].into_iter().any(has);
        self.bare_acks[segment.dir as usize] += u64::from(is_bare && !opens_or_ends);
        self.cut += u64::from(segment.payload > 0 && packet.captured < segment.payload);
        self.options_cut += u64::from(packet.options_cut);
        if has(Flags::SYN) {
            return;
        }
        if has(Flags::RST) {
            self.is_reset = true;
        } else if has(Flags::FIN) {
            self.fins |= 1 << segment.dir as u8;
        }
    }

    /// Whether both hosts sent a FIN.
    pub(super) const fn is_closed(&self) -> bool {
        self.fins == 3
    }
}
