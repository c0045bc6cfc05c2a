//! The receive buffer, its autotuning, and the window advertised.
//!
//! FreeBSD: tcp_mss (rounding at the start), tcp_autorcvbuf of tcp_input.c, the window field of
//! tcp_output.c. Linux: tcp_select_initial_window and __tcp_select_window of tcp_output.c; its
//! autotuning is in `linux`, the memory of its packets in `packets`.

mod linux;
mod packets;
mod truesize;

use core::num::NonZeroU64;

use units::{Bytes, Duration, Instant, Offset};

use crate::ack_policy::PushKind;
use crate::profile::{BufferGrowth, ReceiveBufferRule};
use linux::Autosizing;
use packets::{QueuedAs, QueuedPacket, ReceivedPackets};

/// Largest window field.
const MAX_FIELD: u64 = 65_535;
/// Largest shift (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// A received data segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedPayload {
    pub(crate) now: Instant,
    /// Payload bytes.
    pub(crate) len: u64,
    /// End of the payload.
    pub(crate) end: Offset,
    /// It was merged from several packets by LRO or GRO.
    pub(crate) merged: bool,
    pub(crate) pushed: bool,
    /// TCP options of the segment in bytes, and those that every segment has
    /// (`tcp_header_len` less 20).
    pub(crate) options: (u64, u64),
    /// Window last advertised (`rcv_wnd`).
    pub(crate) window: u64,
    /// Bytes by which it extends the in-order data, with queued data that it joins; 0 if it is
    /// after a gap.
    pub(crate) in_order: u64,
    /// Out-of-order bytes held, including it.
    pub(crate) waiting: u64,
}

/// What Linux's receive buffer holds.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// Bytes of payload, which count as the scaling ratio has it.
    Payload(u64),
    /// Memory (`sk_rmem_alloc`).
    Memory(u64),
}

/// The receive buffer and the window advertised.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct ReceiveWindow {
    /// Maximum size of the buffer, if it is autotuned.
    grows_to: Option<NonZeroU64>,
    /// Shift offered in our SYN, if any.
    offered_scale: Option<u8>,
    /// Shift in force.
    scale: u8,
    /// Size of the buffer in the system's own unit.
    size: u64,
    /// Payload bytes delivered in order and not yet read.
    unread: u64,
    /// Payload of a full segment without options: a smaller window is not worth advertising.
    maxseg: u64,
    system: ReceiveAutotuning,
    /// Linux: the packets held, if the memory of each is known.
    packets: Option<Box<ReceivedPackets>>,
    /// The last result of [`ReceiveWindow::window`] with its arguments, while valid.
    answer: CachedWindow,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
struct CachedWindow {
    promised: u64,
    waiting: u64,
    window: u64,
}

impl CachedWindow {
    /// Matches no arguments.
    const NONE: Self = Self { promised: u64::MAX, waiting: 0, window: 0 };
}

#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
enum ReceiveAutotuning {
    /// When the measurement began, with the first segment sent after the last one ended, in
    /// milliseconds of the timestamp clock (`rfbuf_ts`), and bytes received in order since
    /// (`rfbuf_cnt`).
    FreeBsd {
        since: Option<u32>,
        counted: u64,
    },
    Linux(Autosizing),
    Fixed,
}

impl ReceiveWindow {
    pub(crate) fn new(rule: ReceiveBufferRule, scaling: bool, mss: u32) -> Self {
        let (size, reach) = match rule {
            ReceiveBufferRule::FreeBsd { space, maxsockbuf, .. } => (space.get(), maxsockbuf.get()),
            ReceiveBufferRule::Linux { rmem, rmem_max, .. } => {
                (rmem[1].get(), rmem[2].get().max(rmem_max.get()))
            }
            ReceiveBufferRule::Fixed { space } => (space.get(), space.get()),
        };
        let system = match rule {
            ReceiveBufferRule::FreeBsd { .. } => {
                ReceiveAutotuning::FreeBsd { since: None, counted: 0 }
            }
            ReceiveBufferRule::Fixed { .. } => ReceiveAutotuning::Fixed,
            ReceiveBufferRule::Linux { rmem, growth, truesize, .. } => {
                let mss = u64::from(mss);
                // tcp_select_initial_window: whole segments, if one fits. The field of a SYN may be less.
                let window = |ratio: u64| match size * ratio / 256 {
                    room if room > mss => room / mss * mss,
                    room => room,
                };
                let window = |ratio: u64| match growth {
                    BufferGrowth::AdvWinScale => window(ratio).min(MAX_FIELD),
                    BufferGrowth::SpaceAdjust | BufferGrowth::RcvbufGrow => window(ratio),
                };
                let memory = (rmem[2].get(), truesize.get());
                ReceiveAutotuning::Linux(Autosizing::new(mss, window, memory, growth))
            }
        };
        let offered_scale = scaling.then(|| match rule {
            // tcp_connect and syncache: the smallest shift whose largest window covers the limit.
            ReceiveBufferRule::FreeBsd { .. } | ReceiveBufferRule::Fixed { .. } => {
                (0..MAX_SCALE).find(|&s| MAX_FIELD << s >= reach).unwrap_or(MAX_SCALE)
            }
            // tcp_select_initial_window: ilog2 of the limit less 15.
            ReceiveBufferRule::Linux { .. } => {
                (reach.max(1).ilog2().saturating_sub(15) as u8).min(MAX_SCALE)
            }
        });
        let packets = match rule {
            ReceiveBufferRule::Linux { truesize, .. } if truesize > Bytes::ZERO => {
                Some(Box::default())
            }
            _ => None,
        };
        let grows_to = match rule {
            ReceiveBufferRule::FreeBsd { auto: true, max, .. } => max.get(),
            ReceiveBufferRule::Linux { auto: true, rmem, .. } => rmem[2].get(),
            _ => 0,
        };
        Self {
            grows_to: NonZeroU64::new(grows_to),
            offered_scale,
            scale: 0,
            size,
            unread: 0,
            maxseg: u64::from(mss),
            system,
            packets,
            answer: CachedWindow::NONE,
        }
    }

    /// Shift to offer in our SYN.
    pub(crate) const fn offered_scale(&self) -> Option<u8> {
        self.offered_scale
    }

    /// Initialises the window after the handshake. `scaling`: both sides offered it. `mss`: payload
    /// of our largest segment without options.
    pub(crate) fn on_established(&mut self, now: Instant, scaling: bool, mss: u32, advmss: u32) {
        self.answer = CachedWindow::NONE;
        self.maxseg = u64::from(mss);
        self.scale = if scaling { self.offered_scale.unwrap_or(0) } else { 0 };
        match &mut self.system {
            ReceiveAutotuning::FreeBsd { .. } => {
                self.size = self.size.next_multiple_of(u64::from(mss));
            }
            ReceiveAutotuning::Linux(linux) => {
                linux.on_established(now, u64::from(advmss), self.size);
            }
            ReceiveAutotuning::Fixed => {}
        }
    }

    /// Rounds the size up to whole segments, as FreeBSD does when it has the peer's MSS (tcp_mss).
    pub(crate) fn round_size(&mut self, mss: u32) {
        self.answer = CachedWindow::NONE;
        self.size = self.size.next_multiple_of(u64::from(mss));
    }

    /// Window field of a SYN, never scaled.
    pub(crate) fn syn_field(&self) -> u16 {
        self.syn_window().min(MAX_FIELD) as u16
    }

    /// Window that counts as advertised by a SYN. Linux counts all of `rcv_wnd`, more than the field may hold
    /// (tcp_select_initial_window), and so does not advertise the rest with the first ACK.
    pub(crate) fn syn_window(&self) -> u64 {
        match &self.system {
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => {
                self.size.min(MAX_FIELD)
            }
            ReceiveAutotuning::Linux(linux) => linux.rcv_ssthresh,
        }
    }

    /// The window to advertise, in bytes; `promised`: the rest of the last window advertised;
    /// `waiting`: out-of-order bytes (Linux charges them to the buffer).
    #[inline(always)]
    pub(crate) fn window(&mut self, promised: u64, waiting: u64) -> u64 {
        match self.last_window(promised, waiting) {
            Some(window) => window,
            None => {
                let window = self.offer(promised, waiting);
                self.answer = CachedWindow { promised, waiting, window };
                window
            }
        }
    }

    /// The window, if nothing has changed since the last call.
    #[inline(always)]
    pub(crate) fn last_window(&self, promised: u64, waiting: u64) -> Option<u64> {
        let last = &self.answer;
        (last.promised == promised && last.waiting == waiting).then_some(last.window)
    }

    /// Upper bound of the growth of the window beyond `promised`, except on Linux.
    #[inline(always)]
    pub(crate) fn most_growth(&self, promised: u64) -> u64 {
        let last = (1 << self.scale) - 1;
        ((self.size.max(promised).saturating_add(last)) & !last) - promised
    }

    #[inline(always)]
    fn offer(&self, promised: u64, waiting: u64) -> u64 {
        let scale = self.scale;
        let most = MAX_FIELD << scale;
        // In units of the scaled field, as a shift: this runs for every segment.
        let rounded_up = |bytes: u64| bytes.saturating_add((1 << scale) - 1) >> scale << scale;
        let rounded_down = |bytes: u64| bytes >> scale << scale;
        match &self.system {
            // roundup2 of tcp_output: rounding must not shrink the window.
            ReceiveAutotuning::FreeBsd { .. } => {
                let room = self.size.saturating_sub(self.unread);
                let silly = room < self.size / 4 && room < self.maxseg;
                let room = if silly { promised } else { room.max(promised) };
                rounded_up(room).min(most)
            }
            // RFC 7323 section 2.4: the window does not shrink.
            ReceiveAutotuning::Fixed => {
                let room = rounded_down(self.size.saturating_sub(self.unread));
                room.max(rounded_up(promised)).min(most)
            }
            // tcp_select_window never shrinks the window.
            ReceiveAutotuning::Linux(_) => self.selected(waiting).max(rounded_up(promised)),
        }
    }

    /// __tcp_select_window of Linux: the window that the space in the buffer allows, in bytes,
    /// whatever was advertised before. Unlimited on other systems.
    pub(crate) fn selected(&self, waiting: u64) -> u64 {
        let ReceiveAutotuning::Linux(linux) = &self.system else { return u64::MAX };
        let scale = self.scale;
        let allowed = linux.window_of(self.size);
        let full = allowed.min(linux.window_clamp());
        let mut free = linux.space(self.size, self.held(waiting));
        if free < full / 2 {
            free = free >> scale << scale;
            if free < allowed / 16 || free < linux.rcv_mss().min(full) {
                return 0;
            }
        }
        let window = free.min(linux.rcv_ssthresh);
        if scale == 0 {
            return linux.whole_segments(window, full);
        }
        window.saturating_add((1 << scale) - 1) >> scale << scale
    }

    /// Linux: the largest window (`window_clamp`). Unlimited on other systems.
    pub(crate) const fn clamp(&self) -> u64 {
        match &self.system {
            ReceiveAutotuning::Linux(linux) => linux.window_clamp(),
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => u64::MAX,
        }
    }

    /// Linux: is the buffer more than half full, so that no quick ACKs are sent
    /// (__tcp_select_window)?
    pub(crate) fn is_tight(&self, waiting: u64) -> bool {
        let ReceiveAutotuning::Linux(linux) = &self.system else { return false };
        let full = linux.window_of(self.size).min(linux.window_clamp());
        linux.space(self.size, self.held(waiting)) < full / 2
    }

    /// What Linux's buffer holds; `waiting`: out-of-order bytes.
    fn held(&self, waiting: u64) -> Held {
        match &self.packets {
            Some(packets) => Held::Memory(packets.held()),
            None => Held::Payload(self.unread + waiting),
        }
    }

    /// A window in bytes as the field of a header.
    pub(crate) const fn field(&self, window: u64) -> u16 {
        let field = window >> self.scale;
        if field < MAX_FIELD { field as u16 } else { MAX_FIELD as u16 }
    }

    /// The part of a `window` that counts as advertised by a header with this `field`: of Linux all
    /// of it, more than the field may hold (tcp_select_window sets `rcv_wnd` first).
    #[inline(always)]
    pub(crate) const fn counted(&self, window: u64, field: u16) -> u64 {
        match &self.system {
            ReceiveAutotuning::Linux(_) => window,
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => {
                (field as u64) << self.scale
            }
        }
    }

    /// Processes in-order payload of one segment. Returns true if the window may now grow, which
    /// Linux acknowledges at once.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, data: &ReceivedPayload) -> bool {
        self.unread += data.in_order;
        self.answer = CachedWindow::NONE;
        let ReceiveAutotuning::Linux(linux) = &mut self.system else { return false };
        let held = match &mut self.packets {
            Some(packets) => {
                packets.on_data(linux.packet(data));
                Held::Memory(packets.held())
            }
            None => Held::Payload(self.unread + data.waiting),
        };
        let grew = linux.on_data(self.size, held, data);
        if let Some(packets) = &mut self.packets {
            packets.join(data.end);
        }
        grew
    }

    /// Holds the payload of a SYN, which does not grow the window (tcp_fastopen_add_skb).
    pub(crate) fn on_syn_data(&mut self, data: &ReceivedPayload) {
        self.unread += data.in_order;
        self.answer = CachedWindow::NONE;
        let ReceiveAutotuning::Linux(linux) = &mut self.system else { return };
        if let Some(packets) = &mut self.packets {
            packets.on_data(linux.packet(data));
            packets.join(data.end);
        }
    }

    /// Linux: a FIN without data is merged with data after a gap. What is merged counts without its head
    /// (truesize_adjust), of which it has nothing else, so that the window opens with SACK (tcp_data_queue_ofo).
    pub(crate) fn on_merged_fin(&mut self, data: &ReceivedPayload, sack: bool) -> bool {
        let ReceiveAutotuning::Linux(linux) = &mut self.system else { return false };
        self.answer = CachedWindow::NONE;
        let held = match &self.packets {
            Some(packets) => Held::Memory(packets.held()),
            None => Held::Payload(self.unread + data.waiting),
        };
        sack && linux.open(self.size, held, 2 * linux.advmss)
    }

    /// Processes payload after a gap; returns the same, for Linux only. `reach`: bytes from the
    /// next one expected to the last one received; `sack`: the ACK reports it.
    pub(crate) fn on_gap(&mut self, data: &ReceivedPayload, reach: u64, sack: bool) -> bool {
        let ReceiveAutotuning::Linux(linux) = &mut self.system else { return false };
        self.answer = CachedWindow::NONE;
        // A packet that is not merged is charged to the buffer last (skb_set_owner_r).
        let grew = match &mut self.packets {
            Some(packets) => {
                let packet = linux.packet(data);
                let queued = packets.on_gap(packet);
                let held = Held::Memory(packets.held());
                let opens = sack && queued != QueuedAs::Duplicate;
                let grew = linux.on_gap(self.size, held, data, opens);
                if queued == QueuedAs::Alone {
                    packets.charge(&packet);
                }
                grew
            }
            None => {
                let held = (self.unread + data.waiting).saturating_sub(data.len);
                linux.on_gap(self.size, Held::Payload(held), data, sack)
            }
        };
        if let Some(wanted) = linux.buffer_after_gap(reach) {
            self.grow_to(wanted);
        }
        grew
    }

    /// Grows the buffer to `wanted`, limited by its maximum. Returns the new size if it grew.
    fn grow_to(&mut self, wanted: u64) -> Option<u64> {
        let size = wanted.min(self.grows_to?.get());
        (size > self.size).then(|| {
            self.size = size;
            if let ReceiveAutotuning::Linux(linux) = &mut self.system {
                linux.on_grown(size);
            }
            size
        })
    }

    /// Processes the timestamp echo `tsecr` of a segment with `len` bytes of payload; `age`:
    /// milliseconds since that timestamp.
    #[inline(always)]
    pub(crate) fn on_echo(&mut self, tsecr: u32, len: u64, age: impl FnOnce() -> u32) {
        if let ReceiveAutotuning::Linux(linux) = &mut self.system
            && !linux.echoed_last(tsecr)
        {
            linux.on_echo(tsecr, len, self.unread, age());
        }
    }

    /// Linux: `rcv_ssthresh`, and the bytes that the application reads in a round trip
    /// (`rcvq_space.space`).
    pub(crate) const fn autosizing(&self) -> Option<(u64, u64)> {
        match &self.system {
            ReceiveAutotuning::Linux(linux) => {
                Some((linux.rcv_ssthresh, linux.read_per_round_trip()))
            }
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => None,
        }
    }

    /// The windows of segments other than SYNs are scaled from now on.
    pub(crate) const fn begin_scaling(&mut self) {
        if let Some(scale) = self.offered_scale {
            self.scale = scale;
        }
    }

    /// Linux: estimated payload of the peer's full segments (`icsk_ack.rcv_mss`).
    #[inline(always)]
    pub(crate) const fn rcv_mss(&self) -> Option<u64> {
        match &self.system {
            ReceiveAutotuning::Linux(linux) => Some(linux.rcv_mss()),
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => None,
        }
    }

    /// Linux: did the last data end a write of the peer?
    #[inline(always)]
    pub(crate) const fn push(&self) -> PushKind {
        match &self.system {
            ReceiveAutotuning::Linux(linux) => linux.push(),
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => PushKind::None,
        }
    }

    /// The receiver's own estimate of the round trip; zero before the first.
    pub(crate) const fn rtt(&self) -> Duration {
        match &self.system {
            ReceiveAutotuning::Linux(linux) => Duration::from_nanos(linux.rtt_nanos()),
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => Duration::ZERO,
        }
    }

    /// Records a segment sent with this `window`: it begins FreeBSD's measurement (tcp_output).
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, window: u64, ms: impl FnOnce() -> u32) {
        match &mut self.system {
            ReceiveAutotuning::FreeBsd { since: since @ None, .. } => *since = Some(ms()),
            ReceiveAutotuning::Linux(linux) => linux.rcv_wnd = window,
            ReceiveAutotuning::FreeBsd { .. } | ReceiveAutotuning::Fixed => {}
        }
    }

    /// FreeBSD's tcp_autorcvbuf, for data accepted by header prediction: enlarges the buffer by
    /// half if three eighths of it arrived within half a round trip. `ticks` maps the start of the
    /// measurement to the ticks passed since, by the timestamp clock, and half the smoothed round
    /// trip in ticks. Returns the new size if it grew.
    #[inline]
    pub(crate) fn autosize(
        &mut self,
        len: u64,
        ticks: impl FnOnce(u32) -> (u64, Option<u64>),
    ) -> Option<u64> {
        let max = self.grows_to?.get();
        let ReceiveAutotuning::FreeBsd { since, counted } = &mut self.system else { return None };
        let over = match (*since).map(ticks) {
            Some((passed, Some(half))) => passed > half,
            _ => false,
        };
        if !over {
            *counted += len;
            return None;
        }
        self.autosize_now(max)
    }

    /// Ends a measurement; the next one begins with the next segment sent.
    #[cold]
    fn autosize_now(&mut self, max: u64) -> Option<u64> {
        let ReceiveAutotuning::FreeBsd { since, counted } = &mut self.system else { return None };
        let busy = *counted > self.size / 2 / 4 * 3;
        *since = None;
        *counted = 0;
        if !busy || self.size >= max {
            return None;
        }
        self.size = (self.size + self.size / 2).min(max);
        self.answer = CachedWindow::NONE;
        Some(self.size)
    }

    /// Is it autotuned as in FreeBSD?
    #[inline(always)]
    pub(crate) const fn measures_arrivals(&self) -> bool {
        matches!(self.system, ReceiveAutotuning::FreeBsd { .. }) && self.grows_to.is_some()
    }

    /// Free space in the buffer (`sbspace`).
    pub(crate) const fn space(&self) -> u64 {
        self.size.saturating_sub(self.unread)
    }

    /// Processes a read of `len` bytes by the application at `now`; `mstamp`: arrival of the last
    /// segment; `reach`: bytes from the next one expected to the last one received, if some are out of
    /// order. Returns the new size if the buffer grew.
    #[inline(always)]
    pub(crate) fn on_read(
        &mut self,
        times: (Instant, Instant),
        len: u64,
        reach: impl Fn() -> u64,
    ) -> Option<u64> {
        self.answer = CachedWindow::NONE;
        if self.packets.is_none() {
            return self.on_copy(times, len, reach);
        }
        let (mut left, mut grown) = (len, None);
        while left > 0 {
            let first = self.packets.as_ref().map_or(left, |packets| packets.first_unread(left));
            grown = self.on_copy(times, first, &reach).or(grown);
            if let Some(packets) = &mut self.packets {
                packets.on_read(first);
            }
            left -= first;
        }
        grown
    }

    /// Adjusts the space after `len` bytes of one packet were copied (tcp_recvmsg_locked calls tcp_rcv_space_adjust
    /// for each).
    #[inline(always)]
    fn on_copy(
        &mut self,
        times: (Instant, Instant),
        len: u64,
        reach: impl Fn() -> u64,
    ) -> Option<u64> {
        self.unread -= len;
        let ReceiveAutotuning::Linux(linux) = &mut self.system else { return None };
        let copied = linux.on_read(times, len, self.unread)?;
        let wanted = linux.buffer_for(copied, reach());
        self.grow_to(wanted)
    }

    /// Payload bytes delivered in order and not yet read.
    pub(crate) const fn unread(&self) -> u64 {
        self.unread
    }

    /// Size of the buffer in the system's own unit.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests;
