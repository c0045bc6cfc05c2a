//! How much a write on Linux may put into the send buffer: tcp_sendmsg_locked of tcp.c.
//!
//! The buffer counts memory (`sk_wmem_queued`): payload and, for each packet of the queue, its
//! overhead. A write checks for memory (sk_stream_memory_free) when it begins a packet, not when it
//! fills up the unsent tail. As each full packet is passed to tcp_push_one while it is the only
//! unsent one, a writer that is not blocked may fill the whole window past `sk_sndbuf`.

/// Memory of a queued packet besides its payload: `SKB_TRUESIZE` of a head with room for
/// `MAX_TCP_HEADER`. It depends on the build; `sk_wmem_queued` less payload was a multiple of 832
/// in readings of SO_MEMINFO on Linux 6.18, except for the bytes missing in a short segment.
const SKB_OVERHEAD: u64 = 832;

/// The write queue when the application writes, in bytes of payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteQueue {
    /// Written but never sent.
    pub(crate) unsent: u64,
    /// Maximum size of a queued packet (tcp_xmit_size_goal).
    pub(crate) size_goal: u64,
    /// Maximum that one call of tcp_push_one sends (tcp_tso_autosize).
    pub(crate) burst: u64,
    /// Bytes that the congestion window and the peer's window allow now.
    pub(crate) sendable: u64,
}

/// Sizes of the queued packets.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(super) struct PacketSizes {
    sent: u32,
    unsent: u32,
}

impl PacketSizes {
    pub(super) const fn new(mss: u32) -> Self {
        Self { sent: mss, unsent: mss }
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
        let WriteQueue { mut unsent, size_goal, burst, mut sendable } = queue;
        *self = Self { sent: burst as u32, unsent: size_goal as u32 };
        let mut taken = 0;
        let mut tail = if unsent < size_goal { unsent } else { unsent % size_goal };
        while taken < offered {
            let full = tail == 0 || tail == size_goal;
            if full && self.memory(used + taken - unsent, unsent) >= size {
                break;
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
    fn an_unsent_tail_is_filled_without_memory() {
        let mut sizes = PacketSizes::new(1_448);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(40, 0)), 5 * MSS);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(45, 0)), 0);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(0, 0)), 0);
    }
}
