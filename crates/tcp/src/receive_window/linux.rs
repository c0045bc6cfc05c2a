//! Autotuning of Linux's receive buffer: the growth of the window, the receiver's own round-trip
//! estimate, and the buffer size that follows from the data read in a round trip.
//!
//! Source: tcp_input.c of Linux 6.18 (tcp_measure_rcv_mss, tcp_grow_window, tcp_rcv_rtt_update,
//! tcp_rcv_rtt_measure, tcp_rcv_rtt_measure_ts, tcp_rcv_space_adjust, tcp_rcvbuf_grow).

use units::{Instant, Offset};

use super::packets::MAX_SKB_FRAGS;
use super::truesize::{SK_BUFF, least_memory, truesize};
use super::{Held, QueuedPacket, ReceivedPayload};
use crate::ack_policy::PushKind;
use crate::clock::stamp_delta;
use crate::profile::BufferGrowth;

/// Fraction of the receive buffer for payload before the first packet, in 256ths
/// (`TCP_DEFAULT_SCALING_RATIO`).
const RATIO_START: u64 = 128;
/// Initial estimate of the size of the peer's segments (`TCP_MSS_DEFAULT`), and its minimum
/// (`TCP_MIN_MSS`).
const MSS_DEFAULT: u64 = 536;
const MSS_MIN: u64 = 88;
/// Segments of the initial window (`TCP_INIT_CWND`).
const INIT_CWND: u64 = 10;
/// Smaller segments do not open the window (tcp_event_data_recv).
const LEAST_OPENING: u64 = 128;
/// State of the autotuning.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct Autosizing {
    /// Fraction of the buffer for payload, in 256ths (`scaling_ratio`).
    pub(super) ratio: u64,
    /// Limit of the window advertised (`rcv_ssthresh`).
    pub(super) rcv_ssthresh: u64,
    /// Window last advertised (`rcv_wnd`).
    pub(super) rcv_wnd: u64,
    /// Limit of that limit (`window_clamp`).
    window_clamp: u64,
    /// MSS advertised to the peer, options deducted (`advmss`).
    pub(super) advmss: u64,
    /// `tcp_rmem[2]`.
    rmem_max: u64,
    /// Memory of every packet; zero if it depends on its length.
    truesize: u64,
    growth: BufferGrowth,
    /// Estimated payload of the peer's full segments (`icsk_ack.rcv_mss`), and that of the last
    /// smaller segment (`last_seg_size`).
    rcv_mss: u64,
    last_seg_size: u64,
    /// The last data ended a write of the peer.
    push: PushKind,
    /// The receiver's round-trip estimate, in eighths of a microsecond (`rcv_rtt_est.rtt_us`).
    rtt: u64,
    /// Timestamp that the last segment echoed (`rcv_rtt_last_tsecr`).
    last_tsecr: u32,
    /// End of the window being timed, and when the measurement began (`rcv_rtt_est.seq`, `.time`).
    window_end: Offset,
    window_since: Option<Instant>,
    /// Bytes read since the measurement of [`Self::space`] began.
    copied: u64,
    space_since: Instant,
    /// Bytes read in a round trip (`rcvq_space.space`).
    space: u64,
}

impl Autosizing {
    /// `mss`: payload of the largest segment; `window`: that of the SYN, for a fraction of the
    /// buffer; `rmem_max` and `truesize`: the largest buffer and the memory of every packet.
    pub(super) fn new(
        mss: u64,
        window: impl FnOnce(u64) -> u64,
        (rmem_max, truesize): (u64, u64),
        growth: BufferGrowth,
    ) -> Self {
        Self {
            ratio: RATIO_START,
            rcv_ssthresh: window(RATIO_START),
            rcv_wnd: 0,
            window_clamp: u64::MAX,
            advmss: mss,
            rmem_max,
            truesize,
            growth,
            rcv_mss: MSS_DEFAULT,
            last_seg_size: 0,
            push: PushKind::None,
            rtt: 0,
            last_tsecr: 0,
            window_end: Offset(0),
            window_since: None,
            copied: 0,
            space_since: Instant::ZERO,
            space: INIT_CWND * mss,
        }
    }

    /// tcp_init_buffer_space, tcp_initialize_rcv_mss.
    pub(super) fn on_established(&mut self, now: Instant, advmss: u64, size: u64) {
        self.advmss = advmss;
        let rcv_wnd = self.rcv_ssthresh;
        // The room of a segment is reserved.
        let most = self.window_of(size);
        self.window_clamp = most;
        if most > 2 * advmss {
            self.window_clamp = (most - advmss).max(2 * advmss);
        }
        self.rcv_ssthresh = rcv_wnd.min(self.window_clamp);
        self.space = self.rcv_ssthresh.min(rcv_wnd).min(INIT_CWND * advmss);
        self.space_since = now;
        self.rcv_mss = advmss.min(self.rcv_ssthresh / 2).clamp(MSS_MIN, MSS_DEFAULT);
    }

    /// Payload that fits a buffer of `size` (tcp_win_from_space).
    pub(super) const fn window_of(&self, size: u64) -> u64 {
        match self.growth {
            BufferGrowth::AdvWinScale => size - (size >> 1),
            BufferGrowth::SpaceAdjust | BufferGrowth::RcvbufGrow => size * self.ratio / 256,
        }
    }

    /// The largest window.
    pub(super) const fn window_clamp(&self) -> u64 {
        self.window_clamp
    }

    /// Bytes read in a round trip.
    pub(super) const fn read_per_round_trip(&self) -> u64 {
        self.space
    }

    /// The buffer has grown to `size`.
    pub(super) const fn on_grown(&mut self, size: u64) {
        self.window_clamp = self.window_of(size);
    }

    /// Estimated payload of the peer's full segments.
    pub(super) const fn rcv_mss(&self) -> u64 {
        self.rcv_mss
    }

    /// Did the last data end a write of the peer?
    pub(super) const fn push(&self) -> PushKind {
        self.push
    }

    /// The round trip in nanoseconds; zero before the first sample.
    pub(super) const fn rtt_nanos(&self) -> u64 {
        self.rtt * 125
    }

    /// tcp_rcv_rtt_measure_ts: a segment echoes `tsecr`, which is `elapsed` milliseconds old; `len`
    /// is its payload, `unread`: bytes that the application has yet to read.
    pub(super) fn on_echo(&mut self, tsecr: u32, len: u64, unread: u64, elapsed: u32) {
        self.last_tsecr = tsecr;
        // tcp_rtt_tsopt_us takes no sample below a millisecond, nor one that does not fit an s32.
        let elapsed = match self.growth {
            BufferGrowth::AdvWinScale => elapsed.max(1),
            BufferGrowth::SpaceAdjust | BufferGrowth::RcvbufGrow => elapsed,
        };
        if len >= self.rcv_mss && elapsed > 0 && elapsed < i32::MAX as u32 / 1_000 {
            let only_lower = unread > 0 && self.growth == BufferGrowth::RcvbufGrow;
            self.update_rtt(u64::from(elapsed) * 1_000, only_lower);
        }
    }

    /// Did the last segment echo `tsecr`?
    #[inline(always)]
    pub(super) const fn echoed_last(&self, tsecr: u32) -> bool {
        self.last_tsecr == tsecr
    }

    /// tcp_rcv_rtt_update: a shorter sample replaces the estimate, a longer one counts an eighth,
    /// unless it `may_only_lower` the estimate.
    fn update_rtt(&mut self, micros: u64, may_only_lower: bool) {
        let sample = micros << 3;
        if self.rtt == 0 || sample < self.rtt {
            self.rtt = sample;
        } else if !may_only_lower {
            self.rtt = self.rtt - (self.rtt >> 3) + micros;
        }
    }

    /// tcp_rcv_rtt_measure: takes a sample when a whole window has arrived since the measurement
    /// began.
    fn measure_window(&mut self, data: &ReceivedPayload) {
        if let Some(since) = self.window_since {
            if data.end < self.window_end {
                return;
            }
            self.update_rtt(stamp_delta(data.now, since).max(1), true);
        }
        self.window_end = data.end + data.window;
        self.window_since = Some(data.now);
    }

    /// The packet that carried `data`, for the memory of the buffer.
    pub(super) fn packet(&self, data: &ReceivedPayload) -> QueuedPacket {
        let (memory, _) = self.memory(data.len, data.merged);
        let buffers = if data.merged { data.len.div_ceil(self.advmss).max(1) } else { 1 };
        let left = Offset(data.end.0 - data.len);
        QueuedPacket { left, right: data.end, frags: buffers - 1, memory }
    }

    /// Without window scaling the window is one of whole segments, and holds while it fits
    /// (__tcp_select_window).
    pub(super) fn whole_segments(&self, free: u64, full: u64) -> u64 {
        let (mss, rcv_wnd) = (self.rcv_mss.min(full), self.rcv_wnd);
        if mss == 0 {
            0
        } else if rcv_wnd + mss <= free || rcv_wnd > free {
            free / mss * mss
        } else if mss == full && free > rcv_wnd + full / 2 {
            free
        } else {
            rcv_wnd
        }
    }

    /// Payload that fits the rest of the buffer (tcp_space).
    pub(super) fn space(&self, size: u64, held: Held) -> u64 {
        match held {
            Held::Memory(memory) => self.window_of(size.saturating_sub(memory)),
            Held::Payload(payload) => self.window_of(size).saturating_sub(payload),
        }
    }

    /// tcp_event_data_recv: processes in-order data; `held` by the buffer, this data included.
    /// Returns whether the window may be larger now.
    pub(super) fn on_data(&mut self, size: u64, held: Held, data: &ReceivedPayload) -> bool {
        self.measure_mss(size, data);
        self.measure_window(data);
        data.len >= LEAST_OPENING && self.grow(size, held, data, true)
    }

    /// tcp_data_queue_ofo: processes data after a gap; `held` by the buffer before it is charged
    /// with this data. The window `opens` only with SACK: otherwise the ACK has to be a duplicate.
    pub(super) fn on_gap(
        &mut self,
        size: u64,
        held: Held,
        data: &ReceivedPayload,
        opens: bool,
    ) -> bool {
        if self.growth != BufferGrowth::AdvWinScale {
            self.measure_mss(size, data);
        }
        opens && self.grow(size, held, data, false)
    }

    /// tcp_measure_rcv_mss: the first full segment gives the ratio of payload to memory.
    fn measure_mss(&mut self, size: u64, data: &ReceivedPayload) {
        let (len, (options, usual)) = (data.len, data.options);
        let last = core::mem::take(&mut self.last_seg_size);
        let segment = if data.merged { len.min(self.advmss) } else { len };
        self.push = PushKind::Small;
        if segment >= self.rcv_mss {
            self.push = if data.pushed { PushKind::Full } else { PushKind::None };
            if segment != self.rcv_mss && self.growth != BufferGrowth::AdvWinScale {
                self.ratio = (len * 256 / self.memory(len, data.merged).0).max(1);
                let clamp = self.window_of(size);
                let before = core::mem::replace(&mut self.window_clamp, clamp);
                // tcp_set_window_clamp
                if self.growth == BufferGrowth::RcvbufGrow {
                    self.rcv_ssthresh = match clamp < before {
                        true => self.rcv_ssthresh.min(clamp),
                        false => self.rcv_ssthresh.max(data.window.min(clamp)),
                    };
                }
                self.space = self.space.min(clamp);
            }
            self.rcv_mss = segment.min(self.advmss);
        } else if segment + options >= MSS_DEFAULT || (segment + options >= MSS_MIN && !data.pushed)
        {
            // SACK blocks count, timestamps do not.
            let segment = (segment + options).saturating_sub(usual);
            self.last_seg_size = segment;
            if segment == last {
                self.rcv_mss = segment;
                self.push = PushKind::None;
            }
        }
    }

    /// Memory of a packet as [`truesize`] has it, or of the merged receive buffers of the driver: GRO makes heads
    /// fragments, and frees their sk_buffs; one without room keeps its own, and takes the next (skb_gro_receive).
    const fn memory(&self, len: u64, merged: bool) -> (u64, u64) {
        match self.truesize {
            0 => truesize(len),
            each if merged => {
                let buffers = len.div_ceil(self.advmss);
                let packets = buffers.div_ceil(1 + MAX_SKB_FRAGS);
                (each * buffers - (buffers - packets) * SK_BUFF, 0)
            }
            each => (each, 0),
        }
    }

    /// tcp_grow_window.
    fn grow(&mut self, size: u64, held: Held, data: &ReceivedPayload, in_order: bool) -> bool {
        let (len, merged) = (data.len, data.merged);
        let room = self.room(size, held);
        if room == 0 {
            return false;
        }
        let (memory, head) = self.memory(len, merged);
        let memory = if in_order { memory - head } else { memory };
        let step = match self.window_of(memory) <= len {
            true => 2 * self.advmss,
            false => self.slow_growth(len, memory),
        };
        if step == 0 {
            return false;
        }
        self.rcv_ssthresh += step.max(2 * len).min(room);
        true
    }

    /// How much the window may open.
    fn room(&self, size: u64, held: Held) -> u64 {
        let free = self.space(size, held);
        free.min(self.window_clamp).saturating_sub(self.rcv_ssthresh)
    }

    /// Opens the window by `step`, as far as there is room.
    pub(super) fn open(&mut self, size: u64, held: Held, step: u64) -> bool {
        let room = self.room(size, held);
        self.rcv_ssthresh += step.min(room);
        room > 0
    }

    /// __tcp_grow_window: packets that take more memory than the ratio allows open the window less.
    const fn slow_growth(&self, len: u64, memory: u64) -> u64 {
        let mut memory = self.window_of(memory) >> 1;
        let mut window = self.window_of(self.rmem_max) >> 1;
        while self.rcv_ssthresh <= window {
            if memory <= len {
                return 2 * self.rcv_mss;
            }
            memory >>= 1;
            window >>= 1;
        }
        0
    }

    /// tcp_rcv_space_adjust, once per round trip: `len` bytes were read and `unread` remain;
    /// the time is that of the read or, since 6.16, of the arrival of the last packet, `mstamp`.
    /// Returns the bytes read in the last round trip if they
    /// are a new maximum, for [`Autosizing::buffer_for`].
    #[inline(always)]
    pub(super) fn on_read(
        &mut self,
        (now, mstamp): (Instant, Instant),
        len: u64,
        unread: u64,
    ) -> Option<u64> {
        self.copied += len;
        let mstamp = match self.growth {
            BufferGrowth::AdvWinScale | BufferGrowth::SpaceAdjust => now,
            BufferGrowth::RcvbufGrow => mstamp,
        };
        if self.rtt == 0 || stamp_delta(mstamp, self.space_since) < self.rtt >> 3 {
            return None;
        }
        let unread = match self.growth {
            BufferGrowth::AdvWinScale => 0,
            BufferGrowth::SpaceAdjust | BufferGrowth::RcvbufGrow => unread,
        };
        let copied = core::mem::take(&mut self.copied).saturating_sub(unread);
        self.space_since = mstamp;
        (copied > self.space).then_some(copied)
    }

    /// tcp_rcvbuf_grow: the buffer size wanted if `copied` bytes were read in a round trip, and
    /// `above_gap` bytes span from the next byte expected to the last one received: twice as much,
    /// and more while the rate grows.
    #[cold]
    pub(super) fn buffer_for(&mut self, copied: u64, above_gap: u64) -> u64 {
        let before = core::mem::replace(&mut self.space, copied).max(1);
        let (twice, above_gap) = match self.growth {
            BufferGrowth::RcvbufGrow => (copied << 1, above_gap),
            BufferGrowth::AdvWinScale | BufferGrowth::SpaceAdjust => {
                ((copied << 1) + 16 * self.advmss, 0)
            }
        };
        let grow = twice * (copied - before.min(copied)) / before;
        let window = twice + (grow << 1) + above_gap;
        match self.growth {
            BufferGrowth::AdvWinScale => window / self.advmss * self.memory_per_segment(),
            BufferGrowth::SpaceAdjust | BufferGrowth::RcvbufGrow => {
                window.saturating_mul(256) / self.ratio
            }
        }
    }

    /// `rcvmem` of tcp_rcv_space_adjust of 6.1: memory of a segment, half of which is for payload.
    const fn memory_per_segment(&self) -> u64 {
        let mut memory = least_memory(self.advmss);
        while self.window_of(memory) < self.advmss {
            memory += 128;
        }
        memory
    }

    /// [`Autosizing::buffer_for`] after data that followed a gap; `None` if that enlarges nothing.
    pub(super) fn buffer_after_gap(&self, above_gap: u64) -> Option<u64> {
        let wanted = ((self.space << 1) + above_gap).saturating_mul(256) / self.ratio;
        (self.growth == BufferGrowth::RcvbufGrow).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// The state after the handshake of the recorded transfers.
    fn recorded() -> Autosizing {
        let mut linux = Autosizing::new(1_448, |_| 65_160, (32 << 20, 0), BufferGrowth::RcvbufGrow);
        linux.on_established(at(30_000), 1_448, 131_072);
        linux
    }

    #[test]
    fn half_of_the_buffer_is_window_in_6_1() {
        let growth = BufferGrowth::AdvWinScale;
        let mut linux = Autosizing::new(1_448, |_| 65_160, (6 << 20, 0), growth);
        linux.on_established(at(30_000), 1_448, 131_072);
        assert_eq!((linux.window_of(131_072), linux.window_of(131_073)), (65_536, 65_537));
        // `rcvmem` is 1448 + 192 + 320 + 256 and 128 six times: half of it holds a segment.
        assert_eq!(linux.memory_per_segment(), 2_984);
        // Ten segments read in the first round trip: twice that and 16 segments, no growth.
        assert_eq!(linux.buffer_for(14_480, 0), 36 * 2_984);
    }

    /// A full segment that ends at `end`.
    fn segment(micros: u64, end: u64) -> ReceivedPayload {
        ReceivedPayload {
            now: at(micros),
            len: 1_448,
            end: Offset(end),
            merged: false,
            pushed: false,
            options: (12, 12),
            window: 65_160,
            in_order: 1_448,
            waiting: 0,
        }
    }

    #[test]
    fn the_round_trip_is_that_of_a_recorded_receiver() {
        // golden/linux j1_bufferbloat_cubic, `rcv_rtt_us` of the receiver's rows, and the age of
        // the echoed timestamps: the queue grows, then a packet arrives whose echo is younger.
        let mut linux = recorded();
        let mut trips = Vec::new();
        for (stamp, age) in [31, 32, 33, 33, 35, 36, 38, 39, 39, 41, 42, 31].into_iter().enumerate()
        {
            linux.on_echo(stamp as u32, 1_448, 0, age);
            trips.push(linux.rtt >> 3);
        }
        let rows = [31_000, 31_125, 31_359, 31_564, 31_994, 32_494, 33_183, 33_910, 34_546, 35_353];
        assert_eq!(trips[..10], rows);
        assert_eq!(trips[10..], [36_184, 31_000]);
    }

    #[test]
    fn invalid_samples_are_ignored() {
        let mut linux = recorded();
        linux.on_echo(7, 1_448, 0, 0);
        linux.on_echo(7, 535, 0, 10);
        linux.on_echo(7, 1_448, 0, u32::MAX - 5);
        assert_eq!(linux.rtt, 0);
        // tcp_rcv_rtt_update: while data is unread, only shorter samples count.
        linux.on_echo(7, 1_448, 0, 10);
        linux.on_echo(7, 1_448, 1, 18);
        assert_eq!(linux.rtt >> 3, 10_000);
        linux.on_echo(7, 1_448, 1, 9);
        assert_eq!(linux.rtt >> 3, 9_000);
    }

    #[test]
    fn without_timestamps_the_time_of_a_window_is_a_sample_if_it_is_shorter() {
        let mut linux = recorded();
        let mut end = 0;
        let mut window = |linux: &mut Autosizing, micros| {
            end += 65_160;
            linux.measure_window(&segment(micros, end));
            linux.rtt >> 3
        };
        assert_eq!(window(&mut linux, 1_000), 0);
        assert_eq!(window(&mut linux, 21_000), 20_000);
        assert_eq!(window(&mut linux, 51_000), 20_000);
        assert_eq!(window(&mut linux, 61_000), 10_000);
        assert_eq!(window(&mut linux, 61_000), 1, "no sample is less");
    }

    #[test]
    fn the_buffer_is_that_of_a_recorded_receiver() {
        // golden/linux j1_bufferbloat_cubic, rows `G`: 14480 bytes in the first round trip, then
        // 15928, which need no larger buffer, then 28960: 244316 bytes, of which 152697 are for
        // payload.
        let mut linux = recorded();
        linux.measure_mss(131_072, &segment(46_763, 1_448));
        assert_eq!((linux.ratio, linux.rcv_ssthresh), (160, 65_160));
        linux.on_echo(1, 1_448, 0, 31);
        assert_eq!(linux.on_read((at(60_999), at(60_999)), 14_480, 0), None);
        let copied = linux.on_read((at(78_218), at(78_218)), 1_448, 0).unwrap();
        assert_eq!(copied, 15_928);
        assert!(linux.buffer_for(copied, 0) < 131_072);
        assert_eq!(linux.on_read((at(108_000), at(108_000)), 27_512, 0), None);
        let copied = linux.on_read((at(109_587), at(109_587)), 1_448, 0).unwrap();
        let wanted = linux.buffer_for(copied, 0);
        assert_eq!((wanted, linux.window_of(wanted)), (244_316, 152_697));
        // Data after a gap gets room in addition.
        assert_eq!(linux.buffer_after_gap(16_000), Some((57_920 + 16_000) * 256 / 160));
    }

    #[test]
    fn the_same_rate_as_in_the_last_round_trip_needs_no_larger_buffer() {
        // tcp_rcv_space_adjust: `if (copied <= tp->rcvq_space.space) goto new_measure`.
        let read = |copied: u64, unread: u64| {
            let mut linux = recorded();
            linux.on_echo(1, 1_448, 0, 1);
            linux.on_read((at(32_000), at(32_000)), copied, unread)
        };
        assert_eq!(read(14_480, 0), None);
        assert_eq!(read(14_481, 0), Some(14_481));
        // `copied -= inq`
        assert_eq!(read(14_481, 1), None);
    }

    #[test]
    fn the_first_full_packet_sets_the_scaling_ratio() {
        // golden/linux, `scaling_ratio`: packets alone; b3, two merged; b1, ten merged.
        let ratio = |len: u64| {
            let mut linux = recorded();
            linux.measure_mss(
                131_072,
                &ReceivedPayload { len, merged: len > 1_448, ..segment(0, len) },
            );
            let first = linux.ratio;
            linux.measure_mss(131_072, &segment(0, 2 * len));
            (first, linux.ratio)
        };
        assert_eq!([1_448, 2_896, 14_480].map(ratio), [(160, 160), (170, 170), (215, 215)]);
        // Less than 536 bytes show nothing.
        assert_eq!(ratio(500), (RATIO_START, 160));
    }

    #[test]
    fn of_eighteen_merged_packets_seventeen_free_their_sk_buffs() {
        // skb_gro_receive of 6.12: `lp`, the last packet of the list, takes fragments as the first one did.
        let mut linux = recorded();
        linux.truesize = 2_176;
        let memory = |buffers: u64| linux.memory(buffers * 1_448, buffers > 1).0;
        assert_eq!(memory(1), 2_176);
        assert_eq!(memory(2), 2 * 2_176 - 256);
        assert_eq!([18, 19].map(memory), [18, 19].map(|n| n * 2_176 - 17 * 256));
        assert_eq!((memory(36), memory(45)), (36 * 2_176 - 34 * 256, 45 * 2_176 - 42 * 256));
    }

    #[test]
    fn small_segments_open_the_window_less() {
        let grew = |len: u64| {
            let mut linux = recorded();
            linux.rcv_ssthresh = 65_160;
            linux.on_grown(1 << 20);
            let data = ReceivedPayload { len, ..segment(0, len) };
            linux.on_data(1 << 20, Held::Payload(len), &data).then(|| linux.rcv_ssthresh - 65_160)
        };
        // tcp_event_data_recv: `if (skb->len >= 128) tcp_grow_window(...)`; two segments of the
        // estimated size of the peer's, or two of ours.
        assert_eq!((grew(127), grew(128)), (None, Some(2 * 536)));
        assert_eq!(grew(1_448), Some(2 * 1_448));
        // __tcp_grow_window: 832 bytes for 128 are never worth a window beyond an eighth of the
        // largest.
        let mut linux = recorded();
        linux.on_grown(32 << 20);
        linux.rcv_ssthresh = 8 << 20;
        let data = ReceivedPayload { len: 128, ..segment(0, 128) };
        assert!(!linux.on_data(32 << 20, Held::Payload(128), &data));
    }

    #[test]
    fn a_smaller_segment_counts_as_full_sized_after_two_in_a_row() {
        let mut linux = recorded();
        let mut mss = |len: u64, pushed: bool| {
            linux.measure_mss(131_072, &ReceivedPayload { len, pushed, ..segment(0, len) });
            linux.rcv_mss
        };
        assert_eq!([mss(1_448, false), mss(1_000, false), mss(900, false)], [1_448; 3]);
        assert_eq!(mss(900, true), 900);
        assert_eq!([mss(300, true), mss(300, true)], [900; 2], "the end of a write");
        assert_eq!([mss(300, false), mss(300, false)], [900, 300]);
    }
}
