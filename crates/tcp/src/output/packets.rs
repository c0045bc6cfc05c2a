//! Windows that count packets: tcp_write_xmit of Linux (tcp_output.c, 6.18).
//!
//! The congestion window counts packets; a burst holds the bytes that the pacing rate sends in
//! about a millisecond (tcp_tso_autosize), and a smaller one is deferred if the next acknowledgment
//! is near (tcp_tso_should_defer).

use cc::Controller;
use machine::Cx;
use record::{Purpose, Recorder, SendLimit, SentKind};
use recovery::RttEstimator;
use recovery::sendmap::SentSegment;
use units::{Bytes, Duration, Instant, Offset, unlikely};

use super::call::{Pacing, PacketBatch, WriteCall};
use crate::connection::Connection;
use crate::profile::{BurstRule, LinuxBursts, SendQueue};
use crate::segment_plan::SegmentPlan;
use crate::send_buffer::{DeviceLimits, WriteFlags, WriteQueue};
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::timers::Timers;

/// Maximum payload of a burst: `GSO_LEGACY_MAX_SIZE` less room for headers, `MAX_TCP_HEADER` of a
/// kernel without tunnels and WLAN (sk_dst_gso_max_size).
const GSO_MAX: u64 = 65_536 - (192 + 1);
/// Largest window that is not halved for the size of packets (`TCP_MSS_DEFAULT`).
const TCP_MSS_DEFAULT: u64 = 536;

/// A burst is deferred if the next acknowledgment is expected within this time
/// (tcp_tso_should_defer).
const NEAR: Duration = Duration::from_millis(1);

/// The device holds about a millisecond of the pacing rate (`sk_pacing_shift`).
const TSQ_SHIFT: u32 = 10;

/// Limits of a burst.
#[derive(Debug, Clone, Copy)]
struct SendRoom {
    /// Maximum bytes of a burst.
    most: u64,
    /// Bytes that the peer's window allows.
    window: u64,
    /// Congestion window and packets in flight.
    cwnd: u64,
    in_flight: u64,
}

impl SendSide {
    /// A burst of new data from `at` to `end` was sent (tcp_event_new_data_sent): a blocked writer may
    /// have space (tcp_check_space). Sending frees none, so only the first burst of a call is a reason to look, unless
    /// the writer waits for fewer unsent bytes.
    #[inline(always)]
    pub(super) fn on_burst_sent<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        at: Offset,
        end: Offset,
    ) {
        if !conn.queues_packets() {
            return;
        }
        if conn.cfg.tso {
            self.buffer.on_burst_sent(end);
        }
        if at == self.call.nxt_at_call || self.buffer.has_lowat() {
            self.wake_writer(conn, cx);
        }
    }

    /// Plans a pass: a burst within the congestion window, the peer's window and Nagle's rule.
    #[inline(always)]
    pub(super) fn plan_packets(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rule: LinuxBursts,
        now: Instant,
    ) -> Result<SegmentPlan, SendLimit> {
        let mss = conn.mss();
        let end = self.data_end();
        let retransmitting = self.nxt < self.max.min(end);
        let until = if retransmitting { self.max.min(end) } else { end };
        let unsent = until.since(self.nxt).get();
        let cwnd = self.send_window(conn) / mss;
        let in_flight = if retransmitting {
            (self.nxt - self.una).div_ceil(mss)
        } else {
            self.packets_in_flight()
        };
        // tcp_cwnd_test: at least two bursts are in flight.
        let mut quota = cwnd.saturating_sub(in_flight).min((cwnd / 2).max(1));
        let window_end = self.una + self.peer.wnd;
        let fin_due = conn.fin_wanted() && unsent == 0 && self.nxt == end;
        if unlikely(rule.free_fin && quota == 0 && unsent <= mss && conn.fin_wanted()) {
            let nxt = self.nxt;
            quota = u64::from(!retransmitting && self.buffer.head_end(nxt).is_none());
        }
        if unlikely(fin_due) {
            // A FIN alone is a packet like others (tcp_cwnd_test).
            if quota == 0 && self.max == end {
                self.validate_window(true);
                return Err(SendLimit::CongestionWindow);
            }
            return Ok(SegmentPlan {
                at: end,
                len: 0,
                fin: true,
                push: false,
                kind: if self.max > end {
                    SentKind::Retransmission(self.rexmt.cause)
                } else {
                    SentKind::Control
                },
                more: false,
            });
        }
        let outcome = if unsent == 0 {
            Err(if self.buffer.fin { SendLimit::Done } else { SendLimit::Application })
        } else if quota == 0 {
            Err(SendLimit::CongestionWindow)
        } else {
            // tcp_cwnd_test: a burst is at most half of the window.
            let half = (cwnd / 2).max(1);
            let most = self.burst_segments(conn, rule);
            let segments = most.min(quota).min(half);
            let room = window_end.since(self.nxt).get();
            let limited = segments < most || room < most * mss;
            let at = self.nxt;
            let mut head = unsent;
            let pushed = self.pushed_until(conn).filter(|&end| at < end);
            if conn.cfg.tso && !retransmitting {
                let len = if rule.grows { segments * mss } else { 0 };
                head = self.grow_head(len).min(unsent);
                if let Some(end) = pushed {
                    // What follows was not written yet.
                    head = head.min(end.since(at).get());
                }
            }
            let pushed = pushed.is_some();
            let small = limited && head > mss && !retransmitting && !pushed;
            let waits = small.then(|| {
                let free = SendRoom { most: most * mss, window: room, cwnd, in_flight };
                self.defers(conn, now, &free, head, rule.win_divisor)
            });
            match waits.flatten() {
                Some(why) => Err(why),
                None => {
                    // tcp_write_xmit: another packet after it makes one of less than a segment go, as TCP_NAGLE_PUSH
                    // does while a write goes on. tcp_mss_split_point: a larger one is cut at whole segments only if
                    // it is the last one, or if the peer's window is the limit.
                    let any = head < mss || segments * mss <= room;
                    let free = retransmitting || pushed || (any && head < unsent);
                    self.whole_segments(conn, head, segments * mss, room, free)
                }
            }
        };
        let outcome = match outcome {
            Ok(len) if self.call.write.is_some() && self.device_is_full(conn, timers, now, len) => {
                Err(SendLimit::SmallSegment)
            }
            Ok(len)
                if unlikely(rule.device_holds)
                    && !retransmitting
                    && self.throttles(conn, timers, now, len) =>
            {
                Err(SendLimit::SmallSegment)
            }
            outcome => outcome,
        };
        let limited = |why: &SendLimit| in_flight >= cwnd || *why == SendLimit::CongestionWindow;
        let len = outcome.inspect_err(|why| {
            // tcp_push_pending_frames: with nothing left to send the window is not looked at.
            if unsent > 0 || self.nxt != self.call.nxt_at_call {
                self.validate_window(limited(why));
            }
        })?;
        let at = self.nxt;
        let last = at + len == end;
        if len != mss && !len.is_multiple_of(mss) {
            self.nagle.minshall_end = self.nxt + len;
        }
        if !retransmitting && !conn.cfg.tso && !last && !self.measures_rates() {
            // Further passes of this call would plan the same, packet by packet, until the limit is
            // reached; no retransmission can intervene.
            let most = cwnd - in_flight;
            let train = if self.cc.in_recovery() || rule.device_holds {
                0
            } else {
                let room = (unsent - 1).min(window_end.since(self.nxt).get());
                // Usually the congestion window is the limit: then no division is needed.
                let packets = if room >= most * mss { most } else { room / mss };
                packets.saturating_sub(1)
            };
            // The last segment may need no room.
            let last_is_free = unlikely(rule.free_fin) && conn.fin_wanted();
            let fills = train + 1 == most && !last_is_free && !rule.device_holds;
            self.call.batch = PacketBatch::new(train, fills);
        } else if conn.cfg.tso && !retransmitting && !last && !rule.device_holds {
            // A burst that fills the congestion window ends the call, unless something is to be retransmitted.
            let is_calm = !self.measures_rates() && !self.cc.in_recovery() && !conn.fin_wanted();
            let fills = len > cwnd.saturating_sub(in_flight + 1) * mss;
            if is_calm && fills && self.scoreboard.all_in_order() {
                self.call.batch = PacketBatch::new(0, true);
            }
        }
        Ok(SegmentPlan {
            at,
            len,
            fin: last && conn.fin_wanted(),
            push: if retransmitting { last } else { self.ends_push(conn, at, at + len) }
                || len > mss,
            kind: if retransmitting {
                SentKind::Retransmission(self.rexmt.cause)
            } else {
                SentKind::New
            },
            more: true,
        })
    }

    /// Length of a probe of new data: the burst that the windows allow, at least a segment; neither Nagle's rule nor
    /// deferral hold any of it back (tcp_send_loss_probe: tcp_write_xmit with TCP_NAGLE_OFF and a `push_one` of 2).
    pub(crate) fn probe_burst(&mut self, conn: &Connection, rule: LinuxBursts) -> u64 {
        let mss = conn.mss();
        let cwnd = self.send_window(conn) / mss;
        // tcp_cwnd_test
        let quota = cwnd.saturating_sub(self.packets_in_flight()).min((cwnd / 2).max(1));
        let most = quota.max(1).min(self.burst_segments(conn, rule)) * mss;
        let unsent = self.data_end().since(self.nxt).get();
        let head = match conn.cfg.tso {
            true => self.grow_head(if rule.grows { most } else { 0 }).min(unsent),
            false => unsent,
        };
        let len = head.min(most).min((self.una + self.peer.wnd).since(self.nxt).get());
        if !len.is_multiple_of(mss) {
            self.nagle.minshall_end = self.nxt + len;
        }
        len
    }

    /// tcp_tso_should_defer: defers a burst that is smaller than possible if the next
    /// acknowledgment is expected within a millisecond; returns the limiting window. `head`: length
    /// of the packet at the head of the queue.
    fn defers(
        &mut self,
        conn: &Connection,
        now: Instant,
        free: &SendRoom,
        head: u64,
        win_divisor: u32,
    ) -> Option<SendLimit> {
        let mss = conn.mss();
        let tail = self.nxt + head >= self.data_end();
        let recover_or_restore = self.in_fast_recovery() || self.repairs_timeout();
        if recover_or_restore || now.since(self.last_departure()) > NEAR {
            return None;
        }
        let congestion = (free.cwnd - free.in_flight) * mss;
        let limit = free.window.min(congestion);
        let share = match u64::from(win_divisor) {
            0 => 3 * mss + 1,
            divisor => self.peer.wnd.min(free.cwnd * mss) / divisor,
        };
        if limit >= free.most || (!tail && limit >= head) || limit >= share {
            return None;
        }
        let RttEstimator::Linux(rtt) = &self.rtt.estimator else { return None };
        let srtt = Duration::from_nanos(125 * u64::from(rtt.srtt_us()));
        let expected = self.scoreboard.first()?.sent_at() + srtt;
        let near = Duration::from_nanos(srtt.as_nanos() / 2).min(NEAR);
        if expected.since(now) > near {
            return None;
        }
        if congestion < free.window {
            if congestion <= head {
                return Some(SendLimit::CongestionWindow);
            }
        } else if free.window <= head {
            return Some(SendLimit::PeerWindow);
        }
        // With a FIN, no data can be added any more.
        (!conn.fin_wanted()).then_some(SendLimit::SmallSegment)
    }

    /// Length of a burst: whole segments, or all unsent data, or what the peer's window allows if
    /// it is `free` of Nagle's rule or fulfils it.
    fn whole_segments(
        &self,
        conn: &Connection,
        unsent: u64,
        most: u64,
        room: u64,
        free: bool,
    ) -> Result<u64, SendLimit> {
        let mss = conn.mss();
        let most = most.min(if conn.cfg.tso { u64::MAX } else { mss });
        if room < unsent.min(mss) {
            return Err(SendLimit::PeerWindow);
        }
        // tcp_mss_split_point: a burst may end with a partial segment at the edge of the window.
        let needed = unsent.min(room);
        if most <= needed {
            return Ok(most);
        }
        let whole = needed / mss * mss;
        let alone = unsent < mss;
        if needed == whole || free || self.partial_may_go(conn, alone) {
            return Ok(needed);
        }
        if whole > 0 { Ok(whole) } else { Err(SendLimit::SmallSegment) }
    }

    /// tcp_nagle_check with Minshall's rule: a partial segment waits only while another partial
    /// one is in flight (tcp_minshall_check). Only where it is `alone` does a FIN make it go, or
    /// TCP_NAGLE_PUSH (tcp_nagle_test, but not tcp_mss_split_point).
    fn partial_may_go(&self, conn: &Connection, alone: bool) -> bool {
        let more = self.call.write.is_some_and(|call| call.more);
        if self.call.nagle_off || (alone && (self.buffer.fin || (self.nagle.uncorks && !more))) {
            return true;
        }
        if more || self.nagle.corked {
            return false;
        }
        conn.cfg.nodelay || self.nagle.minshall_end <= self.una || self.sends_new_data_only()
    }

    /// The write queue at a write of the application.
    pub(crate) fn write_queue(
        &self,
        conn: &Connection,
        now: Instant,
        rule: LinuxBursts,
    ) -> WriteQueue {
        let mss = conn.mss();
        let burst = self.tso_autosize(conn, rule) * mss;
        let window = (self.cwnd() / mss).saturating_sub(self.packets_in_flight()) * mss;
        let window = window.min(self.unpaced(conn, now, burst));
        WriteQueue {
            nxt: self.max,
            unsent: self.data_end().since(self.max).get(),
            bursts: 0,
            size_goal: self.size_goal(conn) * mss,
            burst,
            sendable: window,
            peer: (self.una + self.peer.wnd).since(self.nxt).get(),
            mss,
            half_window: self.peer.max_wnd / 2,
            device: None,
            continues: false,
            lowat: u64::MAX,
            flags: WriteFlags::default(),
        }
    }
}

impl Sender {
    /// The packet at the head of the queue takes what it lacks of `len` bytes from the next one
    /// (tcp_grow_skb), whether it is sent or deferred; returns its length.
    #[inline]
    fn grow_head(&mut self, len: u64) -> u64 {
        let (nxt, end) = (self.nxt, self.data_end());
        if self.buffer.head_end(nxt).is_some() {
            self.buffer.grow_head(nxt + len, end);
        }
        self.buffer.head_end(nxt).unwrap_or(end).since(nxt).get()
    }

    /// The output call of a write into `queue`; `pushed`: end of what it sends by tcp_push_one.
    pub(crate) fn begin_write_call(
        &self,
        conn: &Connection,
        queue: &WriteQueue,
        pushed: Offset,
    ) -> WriteCall {
        let goal = if conn.cfg.tso { queue.size_goal } else { conn.mss() };
        let begins = self.buffer.tail_start(self.nxt);
        let tail = (self.data_end() - begins) % goal;
        WriteCall { tail, device: queue.device, pushed, more: queue.flags.more }
    }

    /// Does a burst of `len` bytes that no write sends wait because the device holds enough
    /// (tcp_small_queue_check)? It was cut off the head of the queue. The device is done with what it
    /// holds right afterwards, when all packets of the interrupt are processed and a writer that waits has written
    /// (tcp_tsq_write).
    fn throttles(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        len: u64,
    ) -> bool {
        if !conn.cfg.tso || self.call.write.is_some() || self.device_limits(conn, now).takes(len) {
            return false;
        }
        self.buffer.cut_head(self.nxt + len, self.data_end());
        timers.set(Purpose::Pacing, now);
        true
    }

    /// What the device holds: the packets sent at this instant, unless it is done with them.
    pub(crate) fn device_limits(&self, conn: &Connection, now: Instant) -> DeviceLimits {
        let splits = matches!(conn.cfg.profile.burst, BurstRule::Linux(rule) if rule.splits);
        let split = if splits { conn.mss() } else { 0 };
        let done = self.call.device_done;
        let held = |sent: &&SentSegment| sent.sent_at() >= now && sent.start() >= done;
        let mut begin = self.max;
        for sent in self.scoreboard.iter().rev().take_while(held) {
            begin = sent.start();
            // More makes no difference.
            if self.max - begin > GSO_MAX {
                break;
            }
        }
        let packets = self.buffer.packets_from(begin, self.max);
        let overhead = self.buffer.overhead();
        let held = DeviceLimits::memory(self.max - begin, packets, overhead, split);
        let in_flight = if self.max > self.una { self.buffer.packets_in_flight() } else { 0 };
        DeviceLimits { held, most: self.pacing_rate() >> TSQ_SHIFT, in_flight, overhead, split }
    }

    /// Does the next burst of a write, of `len` bytes, wait because the device still holds others
    /// of the flow? The device is done with the packets of one instant right afterwards, so this
    /// matters only for what the application does at the same instant: a FIN then goes with the
    /// last data.
    fn device_is_full(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        len: u64,
    ) -> bool {
        let (nxt, end) = (self.nxt, self.data_end());
        let closes = conn.fin_wanted();
        let Some(WriteCall { tail, device: Some(device), pushed, .. }) = &mut self.call.write
        else {
            return false;
        };
        // tcp_should_autocork: what a write leaves in a packet that is not full waits for more, and
        // with it all that is not sent yet (tcp_push).
        let corked = *tail > 0
            && nxt >= *pushed
            && device.in_flight > 0
            && device.held + 1 > *tail + device.overhead;
        let waits = !closes && (corked || (nxt + len == end && !device.takes(len)));
        device.hold(len);
        if waits {
            self.call.write = None;
            timers.set(Purpose::Pacing, now);
        }
        waits
    }

    /// tcp_update_pacing_rate, after every acknowledgment: records the inputs of the rate.
    pub(crate) fn update_pacing_rate(&mut self, conn: &Connection) {
        let RttEstimator::Linux(rtt) = &self.rtt.estimator else { return };
        if rtt.srtt_us() == 0 {
            return;
        }
        let control = self.cc.control();
        self.pacing = Pacing {
            srtt_us: rtt.srtt_us(),
            mss: conn.negotiated.mss,
            cwnd: control.window.get(),
            ssthresh: control.ssthresh.map_or(u64::MAX, Bytes::get),
            packets_out: self.scoreboard.sums().all.packets,
        };
    }

    /// Maximum of full segments in a packet of the write queue (tcp_xmit_size_goal,
    /// tcp_bound_to_half_wnd).
    fn size_goal(&self, conn: &Connection) -> u64 {
        (self.bound_to_half_window(GSO_MAX) / conn.mss()).max(1)
    }

    /// tcp_bound_to_half_wnd: a small window is not halved, and one of zero is no bound.
    pub(crate) fn bound_to_half_window(&self, size: u64) -> u64 {
        match self.peer.max_wnd {
            0 => size,
            tiny @ 1..=TCP_MSS_DEFAULT => size.min(tiny),
            window => size.min(window / 2),
        }
    }

    /// Maximum segments of a burst: one without TSO.
    fn burst_segments(&self, conn: &Connection, rule: LinuxBursts) -> u64 {
        if conn.cfg.tso { self.tso_autosize(conn, rule) } else { 1 }
    }

    /// Maximum segments of a retransmission (tcp_tso_segs in tcp_xmit_retransmit_queue).
    pub(crate) fn burst_limit(&self, conn: &Connection) -> u64 {
        match conn.cfg.profile.burst {
            BurstRule::Linux(rule) => self.burst_segments(conn, rule),
            BurstRule::FreeBsd { .. } | BurstRule::Rfc => 1,
        }
    }

    /// tcp_tso_autosize.
    fn tso_autosize(&self, conn: &Connection, rule: LinuxBursts) -> u64 {
        let rate_based = self.cc.rate_based();
        if let Some(segments) = rate_based.and_then(|cc| cc.burst(GSO_MAX)) {
            return u64::from(segments);
        }
        let least = self.cc.min_burst().unwrap_or(rule.min_segments);
        let least = u64::from(least);
        let min_rtt = self.totals.min_rtt.map_or(0, Duration::as_micros);
        let shift = (min_rtt >> rule.rtt_log).min(63);
        let bytes = (self.pacing_rate() >> 10) + (GSO_MAX >> shift);
        (bytes.min(GSO_MAX) / conn.mss()).max(least).min((GSO_MAX / conn.mss()).max(1))
    }

    /// tcp_cwnd_validate, at the end of a call that sent data or was limited by the window: records
    /// whether the window or the application limits the flight.
    pub(super) fn validate_window(&mut self, limited: bool) {
        if self.nxt == self.call.nxt_at_call && !limited {
            return;
        }
        let packets = self.scoreboard.sums().all.packets;
        if self.una >= self.usage.end
            || limited
            || (!self.usage.limited && packets > self.usage.max_packets_out)
        {
            self.usage.limited = limited;
            self.usage.max_packets_out = packets;
            self.usage.end = self.nxt;
        }
    }
}

impl Connection {
    /// Is unsent data a queue of packets?
    #[inline]
    pub(crate) fn queues_packets(&self) -> bool {
        self.cfg.profile.rules.sending.queue == SendQueue::Packets
    }

    /// Is the host the model of a guest, whose card holds packets and whose computation takes no time?
    pub(crate) fn is_of_guest(&self) -> bool {
        matches!(self.cfg.profile.burst, BurstRule::Linux(rule) if rule.device_holds)
    }
}
