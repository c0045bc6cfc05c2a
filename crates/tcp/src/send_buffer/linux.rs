//! What a Linux sender's write may put into the buffer: tcp_sendmsg_locked of tcp.c.
//!
//! The buffer counts memory (`sk_wmem_queued`): payload and, for each packet of the queue, its overhead.
//! Memory is asked for (sk_stream_memory_free) where a packet is begun, never where the unsent tail is
//! filled up. As each full packet is offered to tcp_push_one while it is the only unsent one, a
//! writer that is awake may fill the whole window past `sk_sndbuf`.

/// What a packet of the queue takes beside its payload: `SKB_TRUESIZE` of a head with room for
/// `MAX_TCP_HEADER`. It depends on the build; `sk_wmem_queued` less payload was a multiple of 832 in readings
/// of SO_MEMINFO on Linux 6.18, but for the bytes that a short segment lacked.
const SKB_OVERHEAD: u64 = 832;

/// The sender's queue when the application writes, in bytes of payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteQueue {
    /// Written and never sent.
    pub(crate) unsent: u64,
    /// A packet of the queue at most (tcp_xmit_size_goal).
    pub(crate) size_goal: u64,
    /// What one call of tcp_push_one sends at most (tcp_tso_autosize).
    pub(crate) burst: u64,
    /// Bytes that the congestion window and the peer's window allow now.
    pub(crate) sendable: u64,
}

/// Sizes of the packets that the queue is made of.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(super) struct PacketSizes {
    sent: u32,
    unsent: u32,
}

impl PacketSizes {
    pub(super) const fn new(mss: u32) -> Self {
        Self { sent: mss, unsent: mss }
    }

    /// `sk_wmem_queued`. Sent packets are counted as bursts of the latest size: the queue of
    /// retransmissions holds one packet for each.
    pub(super) const fn memory(&self, sent: u64, unsent: u64) -> u64 {
        let packets = sent.div_ceil(self.sent as u64) + unsent.div_ceil(self.unsent as u64);
        sent + unsent + packets * SKB_OVERHEAD
    }

    /// Payload that fits `memory` once all of it is sent.
    pub(super) const fn payload(&self, memory: u64) -> u64 {
        let packet = self.sent as u64;
        memory / (packet + SKB_OVERHEAD) * packet
    }

    /// Bytes of `offered` that one write takes; `used` are held already.
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
    fn the_first_write_takes_what_the_kernel_takes() {
        // SO_SNDBUF 46080, a window of 10 packets, packets of half the peer's first window: the first write
        // takes 32 segments (6.18.44 over a tun device).
        let mut sizes = PacketSizes::new(1_448);
        let queue = WriteQueue { size_goal: 22 * MSS, ..queue(0, 10) };
        assert_eq!(sizes.write(46_080, 0, 10_000_000, queue), 32 * MSS);
    }

    #[test]
    fn a_writer_that_is_awake_fills_the_window_past_the_buffer() {
        let mut sizes = PacketSizes::new(1_448);
        let used = 1_900 * MSS;
        // 2,900 packets take more than 4 MiB; what the window leaves is filled all the same, and a packet more.
        assert_eq!(sizes.write(4 << 20, used, u64::MAX, queue(0, 1_250)), (1_250 + 45) * MSS);
        // A window that is full ends it where the memory ends.
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
