//! Frames that were captured twice: a mirror port that copies a packet when it enters and when it
//! leaves, a capture before and behind a router, `-i any` on a bridge.
//!
//! Both copies have the same IPv4 identification, sequence number, ACK and length within
//! milliseconds, and the same time to live or one less. A retransmission has another identification:
//! a host may not use one again within the life of a packet unless the packet is atomic (RFC 6864),
//! and the hosts that send atomic packets with a constant one use 0.

use packet::Segment;

/// Longest time between the copies, in ns: a router's queue.
const MAX_APART: u64 = 5_000_000;

/// Recent packets that are remembered; a later one replaces another with the same hash.
const REMEMBERED: usize = 4_096;

/// A packet as its copy looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PacketImage {
    connection: u32,
    id: u16,
    forward: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    payload: u32,
    window: u16,
    stamps: (u32, u32),
}

/// Recognises the second copy of a frame.
#[derive(Debug, Default)]
pub(super) struct DuplicateFilter {
    recent: Vec<(PacketImage, u64, u8)>,
}

impl DuplicateFilter {
    /// The connections have these new numbers.
    pub(super) fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        let empty = vec![(PacketImage::default(), 0, 0); self.recent.len()];
        for (image, at, ttl) in core::mem::replace(&mut self.recent, empty) {
            let image = PacketImage { connection: new(image.connection), ..image };
            self.recent[slot(image.id, image.connection)] = (image, at, ttl);
        }
    }

    /// Whether the packet of `connection`, captured at `at` in ns, is the copy of an earlier one.
    pub(super) fn is_copy(
        &mut self,
        connection: u32,
        at: u64,
        (id, ttl): (u16, u8),
        segment: &Segment,
    ) -> bool {
        // Linux answers a SYN with identification 0; no SYN is retransmitted within milliseconds.
        if id == 0 && !segment.flags.has(packet::Flags::SYN) {
            return false;
        }
        let stamps = segment.timestamps.map_or((0, 0), |stamps| (stamps.val, stamps.ecr));
        let image = PacketImage {
            connection,
            id,
            forward: segment.dir == packet::Dir::Forward,
            flags: segment.flags.0,
            seq: segment.seq.0,
            ack: segment.ack.0,
            payload: segment.payload,
            window: segment.window,
            stamps,
        };
        if self.recent.is_empty() {
            self.recent = vec![(PacketImage::default(), 0, 0); REMEMBERED];
        }
        let slot = &mut self.recent[slot(id, connection)];
        let (known, known_at, known_ttl) = *slot;
        *slot = (image, at, ttl);
        known == image && at.saturating_sub(known_at) <= MAX_APART && known_ttl.abs_diff(ttl) <= 1
    }
}

/// Index of a packet among [`REMEMBERED`].
fn slot(id: u16, connection: u32) -> usize {
    let hash = (u32::from(id) ^ connection.wrapping_mul(0x9e37_79b1)).wrapping_mul(0x85eb_ca6b);
    hash as usize >> 20
}
