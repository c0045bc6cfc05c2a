//! How much a write on Linux may put into the send buffer: tcp_sendmsg_locked of tcp.c.
//!
//! The buffer counts memory (`sk_wmem_queued`): payload and, for each packet of the write queue and
//! of the retransmission queue, its overhead. A burst cut off the head of the write queue is a
//! packet of its own (tso_fragment), as is what a retransmission cuts off (tcp_fragment); a packet that
//! the peer has SACKed joins the one before it if that is SACKed too (tcp_shift_skb_data). A write
//! checks for memory (sk_stream_memory_free) when it begins a packet, not when it fills up the unsent
//! tail. As each full packet is passed to tcp_push_one while it is the only unsent one, a writer that is
//! not blocked may fill the whole window past `sk_sndbuf`.

mod flight;
mod write_queue;

use std::collections::VecDeque;

use units::Offset;

use flight::FlightPackets;
pub use write_queue::WriteFlags;
pub(crate) use write_queue::{DeviceLimits, WriteQueue};

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes accepted.
    pub(crate) taken: u64,
    /// End of the bursts that tcp_push_one sends while the write goes on.
    pub(crate) pushed: Offset,
}

/// Where a packet of the write queue begins, and how the packet before it ends: in the lowest bits, since
/// every connection keeps room for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct PacketStart(u64);

impl PacketStart {
    const fn new(at: Offset, before: PacketEnd) -> Self {
        Self(at.0 << 2 | (before.record as u64) << 1 | before.pushed as u64)
    }

    const fn at(self) -> Offset {
        Offset(self.0 >> 2)
    }

    const fn pushed(self) -> bool {
        self.0 & 1 == 1
    }

    const fn before(self) -> PacketEnd {
        PacketEnd { pushed: self.pushed(), record: self.0 & 2 == 2 }
    }
}

/// How a packet of the write queue ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct PacketEnd {
    /// With PSH (tcp_mark_push).
    pushed: bool,
    /// With a record (`eor` of tcp_skb_cb): it takes nothing of what follows.
    record: bool,
}

impl PacketEnd {
    const PLAIN: Self = Self { pushed: false, record: false };
}

/// The queued packets.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct PacketSizes {
    /// Length of those sent, where bursts are not known.
    sent: u32,
    /// Memory of each besides its payload: that of the profile.
    #[serde(skip)]
    overhead: u16,
    /// Where the packets of the write queue begin, except for the one at its head.
    starts: VecDeque<PacketStart>,
    /// The last packet of the write queue.
    tail: PacketEnd,
    /// The packets of the retransmission queue, if bursts are passed to the card.
    flight: FlightPackets,
}

impl PacketSizes {
    pub(super) const fn new(mss: u32, overhead: u16) -> Self {
        Self {
            sent: mss,
            overhead,
            starts: VecDeque::new(),
            // What a SYN carries has PSH.
            tail: PacketEnd { pushed: true, record: false },
            flight: FlightPackets::new(),
        }
    }

    /// Sets it, after it was not stored.
    pub(super) const fn set_overhead(&mut self, overhead: u16) {
        self.overhead = overhead;
    }

    /// Memory of a packet besides its payload.
    pub(super) const fn overhead(&self) -> u64 {
        self.overhead as u64
    }

    /// A burst that ends at `end` was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, end: Offset) {
        self.flight.push(end);
    }

    /// The peer has acknowledged everything before `una`.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, una: Offset) {
        self.flight.acknowledge(una);
    }

    /// The bytes from `at` to `end` are retransmitted: they are cut off their packet (tcp_fragment).
    pub(super) fn on_retransmitted(&mut self, at: Offset, end: Offset) {
        self.flight.split(at);
        self.flight.split(end);
    }

    /// The end of the packet in flight that contains `at`, if packets are known.
    pub(super) fn flight_end(&self, at: Offset) -> Option<Offset> {
        self.flight.end_of(at)
    }

    /// The peer has SACKed the bytes from `left` to `right`.
    pub(super) fn on_sacked(&mut self, left: Offset, right: Offset) {
        self.flight.report(left, right);
    }

    /// The end of the packet at the head of the write queue, from which `nxt` is sent next; `None`
    /// if it is the last one.
    #[inline]
    pub(super) fn head_end(&mut self, nxt: Offset) -> Option<Offset> {
        while self.starts.front().is_some_and(|start| start.at() <= nxt) {
            self.starts.pop_front();
        }
        self.starts.front().map(|start| start.at())
    }

    /// Does a packet that ends at `end` have PSH, where writes have ended in it? `data_end`: the end
    /// of the queue.
    pub(super) fn pushes(&self, end: Offset, data_end: Offset) -> bool {
        if end >= data_end {
            return self.tail.pushed;
        }
        let next = self.starts.iter().find(|start| start.at() >= end);
        next.is_some_and(|start| start.at() == end && start.pushed())
    }

    /// tcp_grow_skb: the packet at the head takes what it lacks to end at `end` from the next one,
    /// which may be used up; `data_end`: the end of the queue.
    pub(super) fn grow_head(&mut self, end: Offset, data_end: Offset) {
        let Some(&head) = self.starts.front() else { return };
        if end <= head.at() || head.before().record {
            return;
        }
        let next = self.starts.get(1).map_or(data_end, |start| start.at());
        if end < next {
            self.starts[0] = PacketStart::new(end, head.before());
        } else {
            self.starts.pop_front();
            match self.starts.front_mut() {
                Some(after) => {
                    let mut before = after.before();
                    before.pushed |= head.pushed();
                    *after = PacketStart::new(after.at(), before);
                }
                None => self.tail.pushed |= head.pushed(),
            }
        }
    }

    /// Where the last packet of the write queue begins.
    pub(super) fn tail_start(&self, nxt: Offset) -> Offset {
        self.starts.back().map_or(nxt, |start| start.at().max(nxt))
    }

    /// `sk_wmem_queued`, with `sent` bytes of payload in flight and `unsent` from `nxt` on; `bursts`:
    /// those that [`PacketSizes::on_sent`] has not seen yet. Without bursts, sent packets are counted
    /// as those of the latest size.
    pub(super) fn memory(&self, sent: u64, bursts: u64, nxt: Offset, unsent: u64) -> u64 {
        let flight = match self.flight.len() {
            0 => sent.div_ceil(u64::from(self.sent)),
            packets => packets + bursts,
        };
        let waiting = if unsent > 0 { 1 + self.starts.len() - self.starts_until(nxt) } else { 0 };
        sent + unsent + (flight + waiting as u64) * self.overhead()
    }

    /// Number of packets that begin at `nxt` or before: usually none.
    #[inline]
    fn starts_until(&self, nxt: Offset) -> usize {
        match self.starts.front() {
            Some(first) if first.at() <= nxt => {
                self.starts.iter().take_while(|start| start.at() <= nxt).count()
            }
            _ => 0,
        }
    }

    /// Number of packets of the retransmission queue from `begin` to `max`, its end.
    pub(super) fn packets_from(&self, begin: Offset, max: Offset) -> u64 {
        match self.flight.len() {
            0 => (max - begin).div_ceil(u64::from(self.sent)),
            _ => self.flight.len_from(begin),
        }
    }

    /// Number of packets of the retransmission queue, at most two; two too if they are not known.
    pub(super) fn in_flight(&self) -> u32 {
        if self.flight.len() == 1 { 1 } else { 2 }
    }

    /// Payload that fits `memory` when all of it has been sent.
    pub(super) const fn payload(&self, memory: u64) -> u64 {
        let packet = self.sent as u64;
        memory / (packet + self.overhead()) * packet
    }

    /// Takes of `offered` bytes what one write accepts (tcp_sendmsg_locked); `used`: bytes already
    /// in the buffer.
    pub(super) fn write(
        &mut self,
        size: u64,
        used: u64,
        offered: u64,
        mut queue: WriteQueue,
    ) -> Written {
        self.sent = queue.burst as u32;
        let mut taken = 0;
        let mut pushed = queue.nxt;
        // `pushed_seq`: every write ends with PSH.
        let mut pushed_seq = queue.nxt + queue.unsent;
        while taken < offered {
            let end = queue.nxt + queue.unsent;
            self.head_end(queue.nxt);
            let mut tail = end - self.tail_start(queue.nxt);
            if tail == 0 || tail >= queue.size_goal || self.tail.record {
                let sent = used + taken - queue.unsent;
                if self.memory(sent, queue.bursts, queue.nxt, queue.unsent) >= size
                    || queue.unsent >= queue.lowat
                {
                    break;
                }
                if queue.unsent > 0 {
                    self.starts.push_back(PacketStart::new(end, self.tail));
                }
                self.tail = PacketEnd::PLAIN;
                tail = 0;
            }
            let copied = (queue.size_goal - tail).min(offered - taken);
            // `if (!copied)`: what a new write appends to has no PSH any more.
            self.tail.pushed &= taken > 0 || queue.continues;
            taken += copied;
            queue.unsent += copied;
            if tail + copied < queue.size_goal {
                continue;
            }
            let end = end + copied;
            let kept = if end > pushed_seq + queue.half_window {
                pushed_seq = end;
                self.tail.pushed = true;
                queue.push(u32::MAX)
            } else if self.starts.is_empty() {
                let kept = queue.push(1);
                pushed = queue.nxt;
                kept
            } else {
                None
            };
            if let Some(len) = kept {
                self.head_end(queue.nxt);
                self.cut_head(queue.nxt + len, end);
            }
        }
        // With MSG_MORE only by forced_push; what MSG_MORE left before this write is not counted there.
        let forced = || queue.nxt + queue.unsent > pushed_seq + queue.half_window;
        self.tail.pushed |= taken > 0 && (!queue.flags.more || forced());
        self.tail.record = taken == offered && queue.flags.ends_record;
        Written { taken, pushed }
    }

    /// tso_fragment: the packet at the head ends at `at`; `end`: that of the write queue.
    pub(super) fn cut_head(&mut self, at: Offset, end: Offset) {
        if at < self.starts.front().map_or(end, |start| start.at()) {
            self.starts.push_front(PacketStart::new(at, PacketEnd::PLAIN));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;
    /// Of Linux 6.12 and 6.18.
    const SKB_OVERHEAD: u64 = 832;

    fn queue(unsent: u64, sendable: u64) -> WriteQueue {
        WriteQueue {
            nxt: Offset(1),
            unsent: unsent * MSS,
            bursts: 0,
            size_goal: 45 * MSS,
            burst: 10 * MSS,
            sendable: sendable * MSS,
            peer: u64::MAX,
            mss: MSS,
            half_window: 1 << 40,
            device: None,
            continues: false,
            lowat: u64::MAX,
            flags: WriteFlags::default(),
        }
    }

    fn starts(sizes: &PacketSizes) -> Vec<Offset> {
        sizes.starts.iter().map(|start| start.at()).collect()
    }

    #[test]
    fn a_packet_in_which_a_write_ended_has_psh_at_its_end() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |segments: u64| Offset(1 + segments * MSS);
        // A blocked write that continues fills up the packet in which it was blocked.
        sizes.write(4 << 20, 0, 30 * MSS, queue(0, 0));
        let continued = WriteQueue { continues: true, ..queue(30, 0) };
        sizes.write(4 << 20, 30 * MSS, 30 * MSS, continued);
        assert_eq!(starts(&sizes), [at(45)]);
        let pushes = |sizes: &PacketSizes, end| sizes.pushes(at(end), at(60));
        assert_eq!(
            [10, 30, 45, 50, 60].map(|end| pushes(&sizes, end)),
            [false, false, true, false, true]
        );
        // A new one takes the PSH from the packet to which it appends.
        sizes.write(4 << 20, 60 * MSS, 40 * MSS, queue(60, 0));
        assert!(sizes.pushes(at(45), at(100)) && !sizes.pushes(at(90), at(100)));
        assert!(!sizes.pushes(at(60), at(100)) && sizes.pushes(at(100), at(100)));
        // tcp_grow_skb: the packet that is used up leaves its PSH.
        sizes.grow_head(at(90), at(100));
        assert!(sizes.pushes(at(90), at(100)));
    }

    #[test]
    fn the_first_write_accepts_what_the_kernel_accepts() {
        // SO_SNDBUF 46080, a window of 10 packets, packets of half the peer's first window: the
        // first write takes 32 segments (6.18.44 over a tun device).
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let queue = WriteQueue { size_goal: 22 * MSS, ..queue(0, 10) };
        assert_eq!(sizes.write(46_080, 0, 10_000_000, queue).taken, 32 * MSS);
    }

    #[test]
    fn a_writer_that_is_not_blocked_fills_the_window_past_the_buffer() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let used = 1_900 * MSS;
        // 2,900 packets take more than 4 MiB; the rest of the window is filled all the same, and
        // another packet.
        assert_eq!(sizes.write(4 << 20, used, u64::MAX, queue(0, 1_250)).taken, (1_250 + 45) * MSS);
        // With a full window the write ends at the memory limit.
        let taken = sizes.write(4 << 20, used, u64::MAX, queue(0, 0)).taken;
        assert!((880 * MSS..960 * MSS).contains(&taken), "{}", taken / MSS);
        assert!(sizes.memory(used, 0, Offset(1), taken) >= 4 << 20);
    }

    #[test]
    fn packets_begin_where_writes_left_off() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |segments: u64| Offset(1 + segments * MSS);
        // Two packets and a half; the first of them is sent in parts.
        assert_eq!(sizes.write(4 << 20, 0, 112 * MSS, queue(0, 0)).taken, 112 * MSS);
        assert_eq!((sizes.head_end(at(0)), sizes.head_end(at(44))), (Some(at(45)), Some(at(45))));
        // tcp_grow_skb: the burst of ten segments takes nine from the second packet.
        sizes.grow_head(at(54), at(112));
        assert_eq!((sizes.head_end(at(45)), sizes.head_end(at(54))), (Some(at(54)), Some(at(90))));
        assert_eq!(sizes.tail_start(at(54)), at(90));
        assert_eq!(sizes.head_end(at(90)), None);
    }

    #[test]
    fn the_first_write_is_that_of_a_kernel_whose_device_holds_packets() {
        // A 6.12 in User-Mode Linux, printed in tcp_sendmsg_locked and tcp_write_xmit: 22 segments
        // are a packet, half the peer's window. tcp_push_one sends two of them; two more are
        // written, and as that is more than half the window, all may go: the device takes two
        // bursts of two segments, and the third stays, cut off. The packet behind it is filled up
        // to 22 segments again; its memory exceeds sk_sndbuf.
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let device = Some(DeviceLimits {
            held: 0,
            most: 673,
            in_flight: 0,
            overhead: SKB_OVERHEAD,
            split: 0,
        });
        let size_goal = 22 * MSS;
        let first = WriteQueue {
            size_goal,
            burst: 2 * MSS,
            half_window: 65_160 / 2,
            device,
            ..queue(0, 10)
        };
        let at = |segments: u64| Offset(1 + segments * MSS);
        let written = sizes.write(46_080, 0, 1 << 20, first);
        assert_eq!(written, Written { taken: 30 * MSS, pushed: at(2) });
        assert_eq!(starts(&sizes), [at(8)]);
        // Its third write: una at 16 segments, 7 more in flight.
        let size_goal = 28 * MSS;
        let third = WriteQueue {
            nxt: at(23),
            unsent: 7 * MSS,
            bursts: 0,
            size_goal,
            burst: MSS,
            sendable: MSS,
            half_window: 81_536 / 2,
            device,
            ..queue(0, 0)
        };
        let written = sizes.write(55_296, 14 * MSS, 1 << 20, third);
        assert_eq!(written, Written { taken: 22 * MSS, pushed: at(24) });
        assert!(sizes.starts.is_empty());
    }

    #[test]
    fn a_write_after_a_throttled_burst_fills_the_packet_behind_it() {
        // A 6.12 in User-Mode Linux: 18 packets of 83,984 bytes when the writer was woken, the burst at the
        // head cut off by tcp_small_queue_check (SO_SNDBUF 184320, packets of 41,992 bytes).
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |bytes: u64| Offset(1 + 43_440 + bytes);
        sizes.on_sent(at(0));
        sizes.on_acknowledged(at(0));
        for burst in 1..=16 {
            sizes.on_sent(at(2_896 * burst));
        }
        sizes.cut_head(at(49_232), at(83_984));
        let (nxt, unsent) = (at(46_336), 37_648);
        assert_eq!(sizes.memory(46_336, 0, nxt, unsent), 98_960);
        let woken = WriteQueue {
            nxt,
            unsent,
            bursts: 0,
            size_goal: 41_992,
            burst: 2_896,
            sendable: 4 * 2_896,
            half_window: 84_352 / 2,
            device: Some(DeviceLimits {
                held: 7_456,
                most: 3_654,
                in_flight: 2,
                overhead: SKB_OVERHEAD,
                split: 0,
            }),
            continues: true,
            ..queue(0, 0)
        };
        let written = sizes.write(184_320, 83_984, 1 << 20, woken);
        assert_eq!(written.taken, 91_224);
        // Packets begin 91,224 and 133,216 bytes after snd_una; the first full one pushes until the device
        // holds enough, 55,024 bytes after it.
        assert_eq!(starts(&sizes), [55_024, 91_224, 133_216].map(at));
    }

    #[test]
    fn memory_is_what_a_kernel_printed() {
        // A 6.12 in User-Mode Linux, `sk_wmem_queued` printed when a blocked writer was woken: bursts of
        // two segments, of which 10 are in flight, the first acknowledged in part; 35,832 bytes.
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |segments: u64| Offset(1 + segments * MSS);
        for burst in 1..=15 {
            sizes.on_sent(at(2 * burst));
        }
        sizes.on_acknowledged(at(11));
        assert_eq!(sizes.memory(19 * MSS, 0, at(30), 0), 35_832);
        // 41,992 bytes wait in one packet, 79 segments are in flight in 40; 162,120 bytes.
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        for burst in 1..=50 {
            sizes.on_sent(at(2 * burst));
        }
        sizes.on_acknowledged(at(36));
        assert_eq!(sizes.memory(64 * MSS, 0, at(100), 29 * MSS), 93 * MSS + 33 * SKB_OVERHEAD);
        assert_eq!(93 * MSS + 33 * SKB_OVERHEAD, 162_120);
    }

    #[test]
    fn retransmissions_and_sack_blocks_change_the_packets() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |segments: u64| Offset(1 + segments * MSS);
        for burst in 1..=10 {
            sizes.on_sent(at(2 * burst));
            // tcp_rtx_queue_empty_or_single_skb
            assert_eq!(sizes.in_flight(), if burst == 1 { 1 } else { 2 });
        }
        // Segments 5 to 10: a half of a packet, two packets, a half; the block becomes one packet.
        sizes.on_sacked(at(5), at(11));
        assert_eq!(sizes.flight.ends(), [2, 4, 5, 11, 12, 14, 16, 18, 20].map(at));
        // One segment of the first packet is retransmitted: the packet is cut.
        assert_eq!(sizes.flight_end(at(0)), Some(at(2)));
        sizes.on_retransmitted(at(0), at(1));
        assert_eq!((sizes.flight_end(at(0)), sizes.flight_end(at(1))), (Some(at(1)), Some(at(2))));
        assert_eq!((sizes.flight.len(), sizes.in_flight()), (10, 2));
        // Both segments of the next one: it is not cut.
        sizes.on_retransmitted(at(2), at(4));
        assert_eq!(sizes.flight.len(), 10);
    }

    #[test]
    fn a_packet_grows_by_one_other_at_most() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |segments: u64| Offset(1 + segments * MSS);
        let end = |n| PacketEnd { pushed: n == 1, record: false };
        sizes.starts = [1, 2, 3].map(|n| PacketStart::new(at(n), end(n))).into();
        // tcp_grow_skb takes from the next packet only.
        sizes.grow_head(at(4), at(20));
        assert_eq!(starts(&sizes), [2, 3].map(at));
        sizes.grow_head(at(2), at(20));
        assert_eq!(starts(&sizes), [2, 3].map(at));
    }

    #[test]
    fn a_packet_that_ends_a_record_takes_nothing_of_what_follows() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let at = |segments: u64| Offset(1 + segments * MSS);
        let record = WriteFlags { ends_record: true, more: false };
        sizes.write(4 << 20, 0, 2 * MSS + 400, WriteQueue { flags: record, ..queue(0, 0) });
        let behind = WriteQueue { unsent: 2 * MSS + 400, ..queue(0, 0) };
        sizes.write(4 << 20, 2 * MSS + 400, 10 * MSS, behind);
        let end = at(2) + 400;
        assert_eq!(starts(&sizes), [end]);
        // tcp_skb_can_collapse: no growth either.
        sizes.grow_head(at(10), at(12) + 400);
        assert_eq!(sizes.head_end(at(0)), Some(end));
        assert!(sizes.pushes(end, at(12) + 400));
    }

    #[test]
    fn a_write_begins_no_packet_above_the_mark_of_unsent_bytes() {
        // google/packetdrill's notsent-lowat-setsockopt: packets of 16 segments, ten are sent.
        let mut sizes = PacketSizes::new(1_000, SKB_OVERHEAD as u16);
        let low = WriteQueue {
            size_goal: 16_000,
            burst: 10_000,
            sendable: 10_000,
            mss: 1_000,
            lowat: 4_000,
            ..queue(0, 0)
        };
        assert_eq!(sizes.write(4 << 20, 0, 59_000, low).taken, 26_000);
    }

    #[test]
    fn more_to_come_has_no_psh() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        let more = WriteFlags { more: true, ends_record: false };
        sizes.write(4 << 20, 0, 100, WriteQueue { flags: more, ..queue(0, 0) });
        assert!(!sizes.pushes(Offset(101), Offset(101)));
        sizes.write(4 << 20, 100, 100, WriteQueue { unsent: 100, ..queue(0, 0) });
        assert!(sizes.pushes(Offset(201), Offset(201)));
    }

    #[test]
    fn a_burst_of_a_write_ends_at_the_edge_of_the_window() {
        // tcp_push_one, tcp_mss_split_point; wide world 0 of seed 4711 against a kernel 6.12.
        let edge = |peer, unsent| {
            let mut queue = WriteQueue { burst: 21 * MSS, peer, ..queue(unsent, 100) };
            queue.push(1);
            queue.nxt - Offset(1)
        };
        assert_eq!(edge(10 * MSS + 632, 22), 10 * MSS + 632);
        assert_eq!(edge(MSS + 632, 22), MSS + 632);
        assert_eq!(edge(40 * MSS, 22), 21 * MSS);
        // Less than a segment is not worth a packet (tcp_snd_wnd_test).
        assert_eq!(edge(MSS - 1, 22), 0);
    }

    #[test]
    fn an_unsent_tail_is_filled_without_memory() {
        let mut sizes = PacketSizes::new(1_448, SKB_OVERHEAD as u16);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(40, 0)).taken, 5 * MSS);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(45, 0)).taken, 0);
        assert_eq!(sizes.write(100_000, 200_000, u64::MAX, queue(0, 0)).taken, 0);
    }
}
