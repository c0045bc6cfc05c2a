//! The write queue of Linux while the application writes, and what may leave it then: tcp_push_one and
//! forced_push of tcp_sendmsg_locked, within the windows and tcp_small_queue_check.

use units::Offset;

/// The write queue when the application writes, in bytes of payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteQueue {
    /// The first byte that was never sent.
    pub(crate) nxt: Offset,
    /// Written but never sent.
    pub(crate) unsent: u64,
    /// Bursts sent while the write goes on.
    pub(crate) bursts: u64,
    /// Maximum size of a queued packet (tcp_xmit_size_goal).
    pub(crate) size_goal: u64,
    /// Maximum that one call of tcp_push_one sends (tcp_tso_autosize).
    pub(crate) burst: u64,
    /// Bytes that the congestion window allows now, in whole segments.
    pub(crate) sendable: u64,
    /// Bytes that the peer's window allows now.
    pub(crate) peer: u64,
    /// Payload of a full segment.
    pub(crate) mss: u64,
    /// Half of the peer's largest window: more than that is pushed while the write goes on
    /// (forced_push).
    pub(crate) half_window: u64,
    /// The device, if it holds packets.
    pub(crate) device: Option<DeviceLimits>,
    /// The write was blocked after it had copied something, and continues.
    pub(crate) continues: bool,
    /// Unsent bytes at which a write begins no further packet (`TCP_NOTSENT_LOWAT`).
    pub(crate) lowat: u64,
    /// Flags of the call.
    pub(crate) flags: WriteFlags,
}

/// Flags of a write (send of Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteFlags {
    /// `MSG_MORE`: more follows, so what is less than a segment waits.
    pub more: bool,
    /// `MSG_EOR`: no packet holds what follows beside what this write ends with.
    pub ends_record: bool,
}

/// A device that holds packets until it has sent them.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(crate) struct DeviceLimits {
    /// Memory of the flow's packets that it holds (`sk_wmem_alloc`).
    pub(crate) held: u64,
    /// What it may hold of packets of any size (tcp_small_queue_check).
    pub(crate) most: u64,
    /// Packets in the retransmission queue: 0, 1, or more.
    pub(crate) in_flight: u32,
    /// Memory of a packet besides its payload.
    pub(crate) overhead: u64,
    /// Payload of the packets into which the stack splits bursts; 0 if the card does.
    pub(crate) split: u64,
}

/// Memory besides the payload of a packet split off a burst: skb_segment allocates room for its headers, in slabs.
const SEGMENT_OVERHEAD: u64 = 768;

impl DeviceLimits {
    /// Memory of `packets` of the flow with `len` bytes together, while the device holds them.
    pub(crate) const fn memory(len: u64, packets: u64, overhead: u64, split: u64) -> u64 {
        match split {
            0 => len + packets * overhead,
            // tcp_gso_segment charges the socket for each of them.
            split => len + len.div_ceil(split) * SEGMENT_OVERHEAD,
        }
    }

    /// tcp_small_queue_check: may a burst of `len` bytes be passed to it?
    pub(crate) const fn takes(&self, len: u64) -> bool {
        let twice = 2 * (len + self.overhead);
        let most = if self.most > twice { self.most } else { twice };
        self.in_flight < 2 || self.held < most
    }

    /// Passes a burst of `len` bytes to it.
    pub(crate) const fn hold(&mut self, len: u64) {
        self.held += Self::memory(len, 1, self.overhead, self.split);
        self.in_flight += 1;
    }
}

impl WriteQueue {
    /// tcp_write_xmit within a write, of at most `most` bursts; returns the length of a packet that
    /// was cut off the head and stays, since the device holds enough. It has sent what it held by
    /// the next call, as printed by a kernel.
    pub(super) fn push(&mut self, most: u32) -> Option<u64> {
        if let Some(device) = &mut self.device {
            device.held = 0;
        }
        for _ in 0..most {
            let len = self.burst.min(self.sendable).min(self.unsent);
            if len == 0 || self.peer < len.min(self.mss) {
                return None;
            }
            // tcp_mss_split_point: with TCP_NAGLE_PUSH a burst ends at the edge of the window.
            let len = len.min(self.peer);
            if let Some(device) = &mut self.device {
                if !device.takes(len) {
                    return Some(len);
                }
                device.hold(len);
            }
            self.sendable -= len.next_multiple_of(self.mss).min(self.sendable);
            self.peer -= len;
            self.unsent -= len;
            self.nxt += len;
            self.bursts += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_the_stack_splits_off_a_burst_take_more_of_the_device() {
        // Wide world 2 of seed 4711 against a kernel 6.12, whose card has no TSO: a packet of 45 segments leaves in bursts
        // of 30 only, however much is pushed. 30 packets are more than twice the other 15 segments.
        let limits = |split| {
            let (held, in_flight) = (0, 100);
            let mut device =
                DeviceLimits { held, most: 30 * 1_448, in_flight, overhead: 832, split };
            device.hold(30 * 1_448);
            device
        };
        assert_eq!(limits(0).held, 30 * 1_448 + 832);
        assert_eq!(limits(1_448).held, 30 * (1_448 + 768));
        assert!(limits(0).takes(15 * 1_448) && !limits(1_448).takes(15 * 1_448));
    }
}
