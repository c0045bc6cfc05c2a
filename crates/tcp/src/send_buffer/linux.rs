//! How much a write on Linux may put into the send buffer: tcp_sendmsg_locked of tcp.c.
//!
//! The buffer counts memory (`sk_wmem_queued`): payload and, for each packet of the queue, its
//! overhead. A write checks for memory (sk_stream_memory_free) when it begins a packet, not when it
//! fills up the unsent tail. As each full packet is passed to tcp_push_one while it is the only
//! unsent one, a writer that is not blocked may fill the whole window past `sk_sndbuf`.

use std::collections::VecDeque;

use units::Offset;

/// Memory of a queued packet besides its payload: `SKB_TRUESIZE` of a head with room for
/// `MAX_TCP_HEADER`. It depends on the build; `sk_wmem_queued` less payload was a multiple of 832
/// in readings of SO_MEMINFO on Linux 6.18, except for the bytes missing in a short segment.
pub(crate) const SKB_OVERHEAD: u64 = 832;

/// The write queue when the application writes, in bytes of payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteQueue {
    /// The first byte that was never sent.
    pub(crate) nxt: Offset,
    /// Written but never sent.
    pub(crate) unsent: u64,
    /// Maximum size of a queued packet (tcp_xmit_size_goal).
    pub(crate) size_goal: u64,
    /// Maximum that one call of tcp_push_one sends (tcp_tso_autosize).
    pub(crate) burst: u64,
    /// Bytes that the congestion window and the peer's window allow now.
    pub(crate) sendable: u64,
}

/// The queued packets.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct PacketSizes {
    /// Lengths of those sent and of those not yet sent, for memory.
    sent: u32,
    unsent: u32,
    /// Where the packets of the write queue begin, except for the one at its head.
    starts: VecDeque<Offset>,
}

impl PacketSizes {
    pub(super) const fn new(mss: u32) -> Self {
        Self { sent: mss, unsent: mss, starts: VecDeque::new() }
    }

    /// The end of the packet at the head of the write queue, from which `nxt` is sent next; `None`
    /// if it is the last one.
    #[inline]
    pub(super) fn head_end(&mut self, nxt: Offset) -> Option<Offset> {
        while self.starts.front().is_some_and(|&start| start <= nxt) {
            self.starts.pop_front();
        }
        self.starts.front().copied()
    }

    /// tcp_grow_skb: the packet at the head takes what it lacks to end at `end` from the next ones.
    pub(super) fn grow_head(&mut self, end: Offset) {
        while let [Some(first), Some(second)] = [self.starts.front(), self.starts.get(1)]
            && *second <= end.max(*first)
        {
            self.starts.pop_front();
        }
        if let Some(start) = self.starts.front_mut() {
            *start = end.max(*start);
        }
    }

    /// Where the last packet of the write queue begins.
    pub(super) fn tail_start(&self, nxt: Offset) -> Offset {
        self.starts.back().map_or(nxt, |&start| start.max(nxt))
    }

    /// `sk_wmem_queued`. Sent packets are counted as bursts of the latest size: the retransmission
    /// queue has one packet for each.
    pub(super) const fn memory(&self, sent: u64, unsent: u64) -> u64 {
        let packets = sent.div_ceil(self.sent as u64) + unsent.div_ceil(self.unsent as u64);
        sent + unsent + packets * SKB_OVERHEAD
    }

    /// Payload that fits `memory` when all of it has been sent.
    pub(super) const fn payload(&self, memory: u64) -> u64 {
        let packet = self.sent as u64;
        memory / (packet + SKB_OVERHEAD) * packet
    }

    /// Bytes of `offered` that one write accepts; `used`: bytes already in the buffer.
    pub(super) fn write(&mut self, size: u64, used: u64, offered: u64, queue: WriteQueue) -> u64 {
        let WriteQueue { mut nxt, mut unsent, size_goal, burst, mut sendable } = queue;
        (self.sent, self.unsent) = (burst as u32, size_goal as u32);
        let mut taken = 0;
        self.head_end(nxt);
        let mut tail = nxt + unsent - self.tail_start(nxt);
        while taken < offered {
            let full = tail == 0 || tail >= size_goal;
            if full && self.memory(used + taken - unsent, unsent) >= size {
                break;
            }
            if full && unsent > 0 {
                self.starts.push_back(nxt + unsent);
            }
            tail = if full { 0 } else { tail };
            let copied = (size_goal - tail).min(offered - taken);
            tail += copied;
            taken += copied;
            unsent += copied;
            if tail == size_goal && unsent == size_goal {
                let pushed = burst.min(sendable).min(unsent);
                sendable -= pushed;
                unsent -= pushed;
                tail -= pushed;
                nxt += pushed;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    fn queue(unsent: u64, sendable: u64) -> WriteQueue {
        WriteQueue {
            nxt: Offset(1),
            unsent: unsent * MSS,
            size_goal: 45 * MSS,
            burst: 10 * MSS,
            sendable: sendable * MSS,
        }
    }

    #[test]
    fn the_first_write_accepts_what_the_kernel_accepts() {
        // SO_SNDBUF 46080, a window of 10 packets, packets of half the peer's first window: the
        // first write takes 32 segments (6.18.44 over a tun device).
        let mut sizes = PacketSizes::new(1_448);
        let queue = WriteQueue { size_goal: 22 * MSS, ..queue(0, 10) };
        assert_eq!(sizes.write(46_080, 0, 10_000_000, queue), 32 * MSS);
    }

    #[test]
    fn a_writer_that_is_not_blocked_fills_the_window_past_the_buffer() {
        let mut sizes = PacketSizes::new(1_448);
        let used = 1_900 * MSS;
        // 2,900 packets take more than 4 MiB; the rest of the window is filled all the same, and
        // another packet.
        assert_eq!(sizes.write(4 << 20, used, u64::MAX, queue(0, 1_250)), (1_250 + 45) * MSS);
        // With a full window the write ends at the memory limit.
        let taken = sizes.write(4 << 20, used, u64::MAX, queue(0, 0));
        assert!((880 * MSS..960 * MSS).contains(&taken), "{}", taken / MSS);
        assert!(sizes.memory(used, taken) >= 4 << 20);
    }

    #[test]
    fn packets_begin_where_writes_left_off() {
        let mut sizes = PacketSizes::new(1_448);
        let at = |segments: u64| Offset(1 + segments * MSS);
        // Two packets and a half; the first of them is sent in parts.
        assert_eq!(sizes.write(4 << 20, 0, 112 * MSS, queue(0, 0)), 112 * MSS);
        assert_eq!((sizes.head_end(at(0)), sizes.head_end(at(44))), (Some(at(45)), Some(at(45))));
        // tcp_grow_skb: the burst of ten segments takes nine from the second packet.
        sizes.grow_head(at(54));
        assert_eq!((sizes.head_end(at(45)), sizes.head_end(at(54))), (Some(at(54)), Some(at(90))));
        assert_eq!(sizes.tail_start(at(54)), at(90));
        assert_eq!(sizes.head_end(at(90)), None);
    }

    #[test]
    fn an_unsent_tail_is_filled_without_memory() {
        let mut sizes = PacketSizes::new(1_448);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(40, 0)), 5 * MSS);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(45, 0)), 0);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(0, 0)), 0);
    }
}
