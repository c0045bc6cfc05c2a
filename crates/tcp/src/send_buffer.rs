//! The send buffer and its autotuning.
//!
//! FreeBSD: tcp_mss (rounding at the start), tcp_sndbuf_autoscale of tcp_output.c.
//! Linux: tcp_init_buffer_space, tcp_sndbuf_expand, tcp_should_expand_sndbuf of tcp_input.c,
//! sk_stream_is_writeable of sock.h.

mod linux;
mod mbufs;

use units::Offset;

use crate::profile::{SendBufferRule, SharedProfile, TcpProfile};

use linux::PacketSizes;
pub use linux::WriteFlags;
pub(crate) use linux::{DeviceLimits, WriteQueue, Written};
use mbufs::MbufChain;

/// Free space at which a blocked writer is woken (FreeBSD `so_snd.sb_lowat`).
const FREEBSD_LOWAT: u64 = 2_048;

/// Memory that tcp_sndbuf_expand reserves for a packet: 1460 bytes, headers and skb_shared_info
/// rounded up to a power of two, and the sk_buff. MAX_TCP_HEADER depends on the kernel's
/// configuration; the recorded one has 46080 bytes for two windows of 10, others 87040.
const LINUX_PER_MSS: u64 = 2_304;

/// Bytes that the application has written, from `snd_una` on.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct SendBuffer {
    #[serde(skip, default = "SharedProfile::placeholder")]
    profile: SharedProfile,
    /// Size in the system's own unit: payload in FreeBSD, memory in Linux.
    size: u64,
    /// Payload bytes held.
    used: u64,
    /// The application has closed: a FIN follows the last byte.
    pub(crate) fin: bool,
    /// Sizes of the packets, by which Linux counts memory.
    packets: PacketSizes,
    /// FreeBSD: the mbufs that hold the bytes.
    mbufs: Option<Box<MbufChain>>,
    /// Bytes that a blocked writer waits to write (Linux SOCK_NOSPACE); 0 if none.
    wanted: u64,
    /// Linux: a blocked write has copied something (`copied` of tcp_sendmsg_locked).
    copied: bool,
    /// The application has set the size (Linux SOCK_SNDBUF_LOCK, FreeBSD SB_AUTOSIZE off).
    fixed: bool,
    /// Linux: unsent bytes from which a writer waits (`TCP_NOTSENT_LOWAT`).
    notsent_lowat: u32,
}

const fn notsent_lowat(profile: &TcpProfile) -> u32 {
    match profile.send_buffer {
        SendBufferRule::Linux { notsent_lowat, .. } => notsent_lowat,
        SendBufferRule::FreeBsd { .. } | SendBufferRule::Fixed { .. } => u32::MAX,
    }
}

const fn overhead(profile: &TcpProfile) -> u16 {
    match profile.send_buffer {
        SendBufferRule::Linux { overhead, .. } => overhead,
        SendBufferRule::FreeBsd { .. } | SendBufferRule::Fixed { .. } => 0,
    }
}

impl SendBuffer {
    /// Linux: memory of a packet besides its payload.
    pub(crate) const fn overhead(&self) -> u64 {
        self.packets.overhead()
    }

    pub(crate) fn new(profile: &SharedProfile) -> Self {
        let size = match profile.send_buffer {
            SendBufferRule::FreeBsd { space, .. } | SendBufferRule::Fixed { space } => space.get(),
            SendBufferRule::Linux { wmem, .. } => wmem[1].get(),
        };
        let packets = PacketSizes::new(1, overhead(profile));
        let is_freebsd = matches!(profile.send_buffer, SendBufferRule::FreeBsd { .. });
        let mbufs = is_freebsd.then(Box::default);
        Self {
            profile: profile.clone(),
            size,
            used: 0,
            fin: false,
            packets,
            mbufs,
            wanted: 0,
            copied: false,
            fixed: false,
            notsent_lowat: notsent_lowat(profile),
        }
    }

    /// Replaces the profile with a shared equal one.
    pub(crate) fn share(&mut self, profile: &SharedProfile) {
        self.packets.set_overhead(overhead(profile));
        self.profile = profile.clone();
    }

    /// Size in the system's own unit.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Sets the size, in the system's own unit, and disables autotuning.
    pub(crate) const fn fix(&mut self, size: u64) {
        self.size = size;
        self.fixed = true;
    }

    /// Linux: sets the unsent bytes from which a writer waits; 0 for the profile's.
    pub(crate) fn set_notsent_lowat(&mut self, bytes: u32) {
        self.notsent_lowat = if bytes == 0 { notsent_lowat(&self.profile) } else { bytes };
    }

    /// Linux: does a writer wait for fewer unsent bytes?
    pub(crate) const fn has_lowat(&self) -> bool {
        self.notsent_lowat != u32::MAX
    }

    /// Initialises the buffer for the negotiated segment size.
    pub(crate) fn on_established(
        &mut self,
        maxseg: u32,
        mss: u32,
        (windows, initial_window): (u64, u64),
    ) {
        match self.profile.send_buffer {
            SendBufferRule::FreeBsd { .. } => {
                self.size = self.size.next_multiple_of(u64::from(maxseg));
            }
            SendBufferRule::Linux { .. } => {
                self.packets = PacketSizes::new(mss.max(1), overhead(&self.profile));
                if !self.fixed {
                    self.expand_linux(windows, initial_window);
                }
            }
            SendBufferRule::Fixed { .. } => {}
        }
    }

    /// Holds `bytes` sent with the SYN.
    pub(crate) const fn begin_with(&mut self, bytes: u64) {
        self.used += bytes;
    }

    /// Payload bytes held, sent or not.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Size in payload bytes.
    pub(crate) fn capacity(&self) -> u64 {
        match self.profile.send_buffer {
            SendBufferRule::FreeBsd { .. } | SendBufferRule::Fixed { .. } => self.size,
            SendBufferRule::Linux { .. } => self.packets.payload(self.size),
        }
    }

    /// Accepts as much of `offered` as fits; nothing if the space is below the low-water mark.
    pub(crate) fn write(&mut self, offered: u64) -> u64 {
        let lowat = match self.profile.send_buffer {
            SendBufferRule::FreeBsd { .. } => FREEBSD_LOWAT.min(offered),
            SendBufferRule::Linux { .. } | SendBufferRule::Fixed { .. } => 0,
        };
        let space = self.space();
        let taken = if space < lowat { 0 } else { space.min(offered) };
        if let Some(mbufs) = &mut self.mbufs {
            mbufs.append(taken, self.used);
        }
        self.wrote(offered, taken)
    }

    /// FreeBSD: bytes of a burst of `len`, `offset` bytes after `snd_una`, that the
    /// device takes as one packet.
    pub(crate) fn one_packet(&mut self, offset: u64, len: u64) -> u64 {
        match &mut self.mbufs {
            Some(mbufs) => mbufs.limit(offset, len, self.used),
            None => len,
        }
    }

    /// Linux: accepts as much of `offered` as one write puts into `queue`. A writer that is blocked
    /// continues when it is woken, not as soon as there is memory (sk_stream_wait_memory).
    pub(crate) fn write_packets(&mut self, offered: u64, queue: WriteQueue) -> Written {
        if self.wanted > 0 {
            return Written { taken: 0, pushed: queue.nxt };
        }
        let lowat = u64::from(self.notsent_lowat);
        let queue = WriteQueue { continues: self.copied, lowat, ..queue };
        let written = self.packets.write(self.size, self.used, offered, queue);
        self.wrote(offered, written.taken);
        self.copied = written.taken < offered && (self.copied || written.taken > 0);
        written
    }

    /// Linux: the end of the packet at the head of the write queue, unless it is the last one.
    #[inline]
    pub(crate) fn head_end(&mut self, nxt: Offset) -> Option<Offset> {
        self.packets.head_end(nxt)
    }

    /// Linux: extends that packet up to `end` (tcp_grow_skb); `data_end`: the end of the queue.
    pub(crate) fn grow_head(&mut self, end: Offset, data_end: Offset) {
        self.packets.grow_head(end, data_end);
    }

    /// Linux: number of packets of the retransmission queue from `begin` to `max`, its end.
    pub(crate) fn packets_from(&self, begin: Offset, max: Offset) -> u64 {
        self.packets.packets_from(begin, max)
    }

    /// Linux: number of packets of the retransmission queue, if any, at most two.
    pub(crate) fn packets_in_flight(&self) -> u32 {
        self.packets.in_flight()
    }

    /// Linux: cuts a packet that ends at `end` off the head of the queue (tso_fragment); `data_end`:
    /// the end of the queue.
    pub(crate) fn cut_head(&mut self, end: Offset, data_end: Offset) {
        self.packets.cut_head(end, data_end);
    }

    /// Linux: does the packet that ends at `end` have PSH? `data_end`: the end of the queue.
    pub(crate) fn pushes(&self, end: Offset, data_end: Offset) -> bool {
        self.packets.pushes(end, data_end)
    }

    /// Linux: a burst that ends at `end` was sent.
    #[inline]
    pub(crate) fn on_burst_sent(&mut self, end: Offset) {
        self.packets.on_sent(end);
    }

    /// Linux: the bytes from `at` to `end` are retransmitted.
    pub(crate) fn on_retransmitted(&mut self, at: Offset, end: Offset) {
        self.packets.on_retransmitted(at, end);
    }

    /// Linux: the end of the packet in flight that contains `at`, if bursts are passed to the card.
    pub(crate) fn flight_end(&self, at: Offset) -> Option<Offset> {
        self.packets.flight_end(at)
    }

    /// Linux: the peer has SACKed a block.
    pub(crate) fn on_sacked(&mut self, left: Offset, right: Offset) {
        self.packets.on_sacked(left, right);
    }

    /// Linux: where the last packet of the write queue begins.
    pub(crate) fn tail_start(&self, nxt: Offset) -> Offset {
        self.packets.tail_start(nxt)
    }

    const fn wrote(&mut self, offered: u64, taken: u64) -> u64 {
        self.used += taken;
        self.wanted = offered - taken;
        taken
    }

    fn space(&self) -> u64 {
        self.size.saturating_sub(self.used)
    }

    /// Removes `bytes` acknowledged by the peer, up to `una`.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, bytes: u64, una: Offset) {
        self.used -= bytes;
        if self.used == 0
            && let Some(mbufs) = &mut self.mbufs
        {
            mbufs.clear();
        }
        self.packets.on_acknowledged(una);
    }

    /// Should a blocked writer be woken? `unsent` bytes, from `nxt` on, were never sent.
    pub(crate) fn writable(&mut self, nxt: Offset, unsent: u64) -> bool {
        if self.wanted == 0 {
            return false;
        }
        let enough = match self.profile.send_buffer {
            // Every ACK wakes it; it blocks again unless the low-water mark or all its data fits
            // (sosend_generic).
            SendBufferRule::FreeBsd { .. } => self.space() >= FREEBSD_LOWAT.min(self.wanted),
            SendBufferRule::Linux { .. } => self.is_writeable(nxt, unsent),
            SendBufferRule::Fixed { .. } => self.space() > 0,
        };
        if enough {
            self.wanted = 0;
        }
        enough
    }

    /// Is there space for a writer that polls?
    pub(crate) fn has_space(&self, nxt: Offset, unsent: u64) -> bool {
        match self.profile.send_buffer {
            SendBufferRule::FreeBsd { .. } => self.space() >= FREEBSD_LOWAT,
            SendBufferRule::Linux { .. } => self.is_writeable(nxt, unsent),
            SendBufferRule::Fixed { .. } => self.space() > 0,
        }
    }

    /// sk_stream_is_writeable: the free space is at least half of the queued data, and twice the unsent
    /// data are below the mark (tcp_stream_memory_free).
    fn is_writeable(&self, nxt: Offset, unsent: u64) -> bool {
        let queued = self.packets.memory(self.used - unsent, 0, nxt, unsent);
        queued < self.size
            && self.size - queued >= queued / 2
            && 2 * unsent < u64::from(self.notsent_lowat)
    }

    /// The writer does not wait for space (`MSG_DONTWAIT`).
    pub(crate) const fn end_wait(&mut self) {
        self.wanted = 0;
    }

    /// Linux: would a write be the rest of a call that has waited for space?
    pub(crate) const fn continues_call(&self) -> bool {
        self.copied
    }

    /// Is a writer blocked?
    pub(crate) const fn starved(&self) -> bool {
        self.wanted > 0
    }

    /// FreeBSD, on every pass of tcp_output: grows if the buffer is nearly full and its unsent data
    /// would fit the window. Returns the new size if it grew.
    pub(crate) fn autoscale(&mut self, snd_wnd: u64, sendwin: u64, unsent: u64) -> Option<u64> {
        let SendBufferRule::FreeBsd { auto, inc, max, .. } = self.profile.send_buffer else {
            return None;
        };
        let grows_exponentially = auto
            && !self.fixed
            && snd_wnd / 4 * 5 >= self.size
            && self.used >= self.size / 8 * 7
            && self.used < max.get()
            && sendwin >= unsent
            && self.size < max.get();
        if !grows_exponentially {
            return None;
        }
        self.size = (self.size + inc.get()).min(max.get());
        Some(self.size)
    }

    /// FreeBSD's RACK stack: grows under the same conditions, by `percent` of its size if that is
    /// more than the increment (rack_sndbuf_autoscale).
    pub(crate) fn autoscale_by(
        &mut self,
        percent: u32,
        snd_wnd: u64,
        sendwin: u64,
        unsent: u64,
    ) -> Option<u64> {
        let before = self.size;
        let grown = self.autoscale(snd_wnd, sendwin, unsent)?;
        let SendBufferRule::FreeBsd { max, .. } = self.profile.send_buffer else { return None };
        self.size = grown.max(before + before * u64::from(percent) / 100).min(max.get());
        Some(self.size)
    }

    /// May [`SendBuffer::expand`] enlarge it?
    #[inline]
    pub(crate) fn expands(&self) -> bool {
        let SendBufferRule::Linux { wmem, .. } = self.profile.send_buffer else { return false };
        !self.fixed && self.size < wmem[2].get()
    }

    /// Linux, after an ACK that left the window not full: grows to `windows` congestion windows,
    /// two with most controllers. Returns the new size in payload bytes if it grew.
    pub(crate) fn expand(&mut self, windows: u64, cwnd_packets: u64) -> Option<u64> {
        if !self.expands() {
            return None;
        }
        let before = self.size;
        self.expand_linux(windows, cwnd_packets);
        (self.size > before).then(|| self.capacity())
    }

    fn expand_linux(&mut self, windows: u64, cwnd_packets: u64) {
        let SendBufferRule::Linux { wmem, .. } = self.profile.send_buffer else { return };
        let wanted = windows * cwnd_packets.max(10) * LINUX_PER_MSS;
        self.size = self.size.max(wanted.min(wmem[2].get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TcpProfile;

    fn freebsd() -> SendBuffer {
        let mut buffer = SendBuffer::new(&TcpProfile::named("freebsd-13.2").unwrap().into());
        buffer.on_established(1_460, 1_448, (2, 10));
        buffer
    }

    #[test]
    fn freebsd_starts_with_whole_segments() {
        // 32768 rounded up: 23 * 1460.
        assert_eq!(freebsd().capacity(), 33_580);
    }

    #[test]
    fn freebsd_grows_when_full_and_the_unsent_part_fits_the_window() {
        let mut buffer = freebsd();
        assert_eq!(buffer.write(1_000_000), 33_580);
        // At the first flight 33580 unsent bytes exceed the window of 14480.
        assert_eq!(buffer.autoscale(65_160, 14_480, 33_580), None);
        // After 14480 acknowledged and 17376 sent, 16204 unsent fit 17400.
        assert_eq!(buffer.autoscale(54_656, 17_400, 16_204), Some(41_772));
        // It is full again only after more was written.
        assert_eq!(buffer.autoscale(54_656, 17_400, 16_204), None);
        assert_eq!(buffer.write(1_000_000), 8_192);
        // The peer's window is too small: 5/4 of 33000 is below 41772.
        assert_eq!(buffer.autoscale(33_000, 50_000, 20_000), None);
    }

    #[test]
    fn freebsd_wakes_a_writer_for_2048_bytes() {
        let mut buffer = freebsd();
        buffer.write(1_000_000);
        buffer.acknowledge(2_047, Offset(1));
        assert!(!buffer.writable(Offset(1), 0));
        assert_eq!(buffer.write(5_000), 0);
        buffer.acknowledge(1, Offset(1));
        assert!(buffer.writable(Offset(1), 0));
        assert!(!buffer.writable(Offset(1), 0), "woken once");
        assert_eq!(buffer.write(5_000), 2_048);
    }

    #[test]
    fn freebsd_wakes_a_writer_for_less_if_its_remaining_data_fits() {
        // sosend_generic: `space < resid && (atomic || space < so->so_snd.sb_lowat)` sleeps.
        let mut buffer = freebsd();
        assert_eq!(buffer.write(33_580 + 868), 33_580);
        buffer.acknowledge(867, Offset(1));
        assert!(!buffer.writable(Offset(1), 0));
        buffer.acknowledge(1, Offset(1));
        assert!(buffer.writable(Offset(1), 0));
        assert_eq!(buffer.write(868), 868);
    }

    #[test]
    fn a_blocked_linux_writer_does_not_fill_the_tail_until_it_is_woken() {
        // A 6.12 in User-Mode Linux: the first write takes 30 segments (43440 bytes, then
        // sk_stream_wait_memory), though the last packet of the queue has room for two more.
        let mut buffer = SendBuffer::new(&TcpProfile::named("linux-6.12").unwrap().into());
        buffer.on_established(1_460, 1_448, (2, 10));
        let queue = WriteQueue {
            nxt: Offset(1),
            unsent: 0,
            bursts: 0,
            size_goal: 22 * 1_448,
            burst: 2 * 1_448,
            sendable: 10 * 1_448,
            peer: 65_160,
            mss: 1_448,
            half_window: 65_160 / 2,
            device: Some(DeviceLimits {
                held: 0,
                most: 673,
                in_flight: 0,
                overhead: 832,
                split: 0,
            }),
            continues: false,
            lowat: u64::MAX,
            flags: WriteFlags::default(),
        };
        assert_eq!(buffer.write_packets(1 << 20, queue).taken, 43_440);
        let (nxt, unsent) = (Offset(14_481), 28_960);
        let sent = WriteQueue { nxt, unsent, sendable: 0, ..queue };
        assert_eq!(buffer.write_packets(1 << 20, sent).taken, 0);
        // With room for two larger windows it goes on.
        assert!(buffer.expand(2, 21).is_some());
        buffer.acknowledge(14_480, nxt);
        assert!(buffer.writable(nxt, unsent));
        let filled = buffer.tail_start(nxt) + sent.size_goal;
        let taken = buffer.write_packets(1 << 20, sent).taken;
        assert!(taken > 0);
        // The write goes on, so the packet in which it was blocked keeps its PSH.
        let end = Offset(43_441 + taken);
        assert!(filled < end && buffer.pushes(filled, end));
    }

    #[test]
    fn linux_starts_with_room_for_two_windows_and_stops_at_wmem() {
        let mut buffer = SendBuffer::new(&TcpProfile::named("linux-6.18").unwrap().into());
        buffer.on_established(1_460, 1_448, (2, 10));
        // golden/linux b1_lro45_cubic, `sndbuf` of the first row after the handshake.
        assert_eq!(buffer.size, 46_080);
        assert!(buffer.expand(2, 5_000).is_some());
        assert_eq!(buffer.size, 4 << 20);
    }
}
