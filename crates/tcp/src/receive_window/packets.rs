//! Packets that Linux's receive buffer holds, and the memory it is charged for them
//! (`sk_rmem_alloc`), where the driver's packets all take the same.
//!
//! Source: tcp_queue_rcv, tcp_data_queue_ofo, tcp_ofo_queue and tcp_try_coalesce of tcp_input.c,
//! skb_try_coalesce of skbuff.c (6.12).

use std::collections::VecDeque;

use units::Offset;

use super::truesize::SK_BUFF;

/// Most fragments of a packet (`MAX_SKB_FRAGS`).
pub(super) const MAX_SKB_FRAGS: u64 = 17;

/// A packet, or several merged.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(super) struct QueuedPacket {
    pub(super) left: Offset,
    pub(super) right: Offset,
    /// Fragments besides the head.
    pub(super) frags: u64,
    /// `skb->truesize`.
    pub(super) memory: u64,
}

impl QueuedPacket {
    /// Merges the packet `next` if it follows: its head becomes a fragment, and its sk_buff is freed.
    fn coalesce(&mut self, next: &Self) -> bool {
        let merges = self.right == next.left && self.frags + next.frags < MAX_SKB_FRAGS;
        if merges {
            self.right = next.right;
            self.frags += next.frags + 1;
            self.memory += next.memory - SK_BUFF;
        }
        merges
    }
}

/// What becomes of a packet after a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueuedAs {
    /// It was merged with the one before it, and the buffer is charged.
    Merged,
    /// It waits by itself; [`ReceivedPackets::charge`] charges the buffer.
    Alone,
    /// All of it had arrived before.
    Duplicate,
}

/// The receive queue and the out-of-order queue.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct ReceivedPackets {
    in_order: VecDeque<QueuedPacket>,
    /// Bytes of the first of them that were read.
    read: u64,
    /// In order of their left edges.
    out_of_order: VecDeque<QueuedPacket>,
    /// Memory charged.
    held: u64,
}

impl ReceivedPackets {
    /// Memory charged, in bytes.
    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    /// Charges the buffer with a packet that waits alone (skb_set_owner_r).
    pub(super) const fn charge(&mut self, packet: &QueuedPacket) {
        self.held += packet.memory;
    }

    /// Queues the next data of the stream.
    pub(super) fn on_data(&mut self, packet: QueuedPacket) {
        self.charge(&packet);
        self.append(packet);
    }

    /// Queues what follows the data of the stream, which ends at `nxt`, without a gap
    /// (tcp_ofo_queue).
    pub(super) fn join(&mut self, mut nxt: Offset) {
        while let Some(first) = self.out_of_order.pop_front_if(|first| first.left <= nxt) {
            if first.right <= nxt {
                self.held -= first.memory;
                continue;
            }
            let left = nxt;
            nxt = first.right;
            if first.left == left {
                self.append(first);
            } else {
                // With an overlap it is not merged.
                self.in_order.push_back(QueuedPacket { left, ..first });
            }
        }
    }

    fn append(&mut self, packet: QueuedPacket) {
        if let Some(last) = self.in_order.back_mut()
            && last.coalesce(&packet)
        {
            self.held -= SK_BUFF;
        } else {
            self.in_order.push_back(packet);
        }
    }

    /// Queues data after a gap.
    pub(super) fn on_gap(&mut self, packet: QueuedPacket) -> QueuedAs {
        let queue = &mut self.out_of_order;
        let mut at = queue.partition_point(|other| other.left <= packet.left);
        if let Some(before) = at.checked_sub(1).and_then(|before| queue.get_mut(before)) {
            if packet.right <= before.right {
                return QueuedAs::Duplicate;
            }
            if before.coalesce(&packet) {
                self.held += packet.memory - SK_BUFF;
                return QueuedAs::Merged;
            }
            if before.left == packet.left {
                at -= 1;
            }
        }
        let covered = queue.range(at..).take_while(|other| other.right <= packet.right).count();
        for other in queue.drain(at..at + covered) {
            self.held -= other.memory;
        }
        queue.insert(at, packet);
        QueuedAs::Alone
    }

    /// Bytes of the first packet that were not read, `most` at most.
    pub(super) fn first_unread(&self, most: u64) -> u64 {
        let first = self.in_order.front().map_or(0, |first| first.right - first.left - self.read);
        if first == 0 { most } else { first.min(most) }
    }

    /// The application has read `len` bytes: a packet is freed once all of it was read.
    pub(super) fn on_read(&mut self, len: u64) {
        self.read += len;
        while let Some(first) = self.in_order.front()
            && first.right - first.left <= self.read
        {
            self.read -= first.right - first.left;
            self.held -= first.memory;
            self.in_order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUESIZE: u64 = 2_176;

    /// Segments of 1,448 bytes, from number `from` up to `to`, in one packet.
    fn segments(from: u64, to: u64) -> QueuedPacket {
        let at = |number: u64| Offset(1 + 1_448 * number);
        QueuedPacket { left: at(from), right: at(to), frags: 0, memory: TRUESIZE }
    }

    fn queue_after_gap(packets: &mut ReceivedPackets, number: u64) -> QueuedAs {
        let packet = segments(number, number + 1);
        let queued = packets.on_gap(packet);
        if queued == QueuedAs::Alone {
            packets.charge(&packet);
        }
        queued
    }

    #[test]
    fn memory_is_that_of_a_kernel_whose_window_was_seen() {
        // A 6.12 in User-Mode Linux: 131,072 bytes of buffer, 170 of 256 parts for payload. Segment
        // 2 of 16 is lost. With four after the gap the window still grows to 81,536 bytes, with
        // five no more; once the gap is filled it is 69,120, in units of 128 bytes.
        let mut packets = ReceivedPackets::default();
        let window = |held: u64| (131_072 - held) * 170 / 256;
        let mut windows = Vec::new();
        for number in 3..16 {
            let queued = queue_after_gap(&mut packets, number);
            assert_eq!(queued, if number == 3 { QueuedAs::Alone } else { QueuedAs::Merged });
            windows.push(window(packets.held()));
        }
        assert!(windows[3] >= 81_536 && windows[4] < 81_536, "{windows:?}");
        packets.on_data(segments(2, 3));
        packets.join(segments(2, 3).right);
        assert_eq!(window(packets.held()).next_multiple_of(128), 69_120);
        packets.on_read(13 * 1_448);
        assert!(packets.held() > 0, "a merged packet is freed as a whole");
        packets.on_read(1_448);
        assert_eq!(packets.held(), 0);
    }

    #[test]
    fn eighteen_packets_at_most_are_merged() {
        let mut packets = ReceivedPackets::default();
        for number in 0..19 {
            packets.on_data(segments(number, number + 1));
        }
        assert_eq!(packets.held(), 19 * TRUESIZE - 17 * SK_BUFF);
    }

    #[test]
    fn duplicates_and_covered_packets_are_freed() {
        let mut packets = ReceivedPackets::default();
        for number in [5, 2, 3] {
            queue_after_gap(&mut packets, number);
        }
        assert_eq!(packets.on_gap(segments(3, 4)), QueuedAs::Duplicate);
        assert_eq!(packets.held(), 3 * TRUESIZE - SK_BUFF);
        // It covers all of them.
        let all = segments(2, 7);
        assert_eq!(packets.on_gap(all), QueuedAs::Alone);
        packets.charge(&all);
        assert_eq!(packets.held(), TRUESIZE);
        packets.on_data(segments(0, 9));
        assert_eq!(packets.held(), 2 * TRUESIZE);
        packets.join(segments(0, 9).right);
        assert_eq!(packets.held(), TRUESIZE);
        packets.on_read(9 * 1_448);
        assert_eq!((packets.held(), packets.in_order.len()), (0, 0));
    }
}
