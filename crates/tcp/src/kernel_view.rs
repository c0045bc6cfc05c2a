//! What a congestion controller in C sees of the connection, and the calls that only such controllers have.
//!
//! Source: tcp_input.c of Linux 6.12: tcp_clean_rtx_queue (`pkts_acked`), tcp_in_ack_event, tcp_try_keep_open.

use cc::Controller;
use cc::kernel::{AckApplied, StackView};
use machine::Cx;
use packet::Segment;
use record::{Cause, Recorder};
use recovery::RttEstimator;
use units::{Instant, Offset};

use crate::connection::Connection;
use crate::sender::Sender;

/// What an acknowledgment did to the retransmission queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppliedAck {
    /// `snd_una` after it.
    pub(crate) una: Offset,
    /// Packets that left the queue.
    pub(crate) acked: u64,
    /// Packets newly acknowledged or SACKed.
    pub(crate) delivered: u64,
    /// The window that it advertises.
    pub(crate) wnd: u64,
    /// It echoes congestion.
    pub(crate) echoed: bool,
    /// It has SACK blocks.
    pub(crate) blocks: bool,
}

impl Sender {
    /// Shows the connection to a controller in C; `una` is `snd_una` after the acknowledgment in progress.
    #[inline(always)]
    pub(crate) fn show_controller(&mut self, conn: &Connection, now: Instant, una: Offset) {
        if self.cc.uses_view() {
            self.show_state(conn, now, una);
        }
    }

    fn show_state(&mut self, conn: &Connection, now: Instant, una: Offset) {
        let sums = self.scoreboard.sums();
        let srtt_eighths = match &self.rtt.estimator {
            RttEstimator::Linux(rtt) => rtt.srtt_us(),
            other => other.srtt().map_or(0, |srtt| {
                u32::try_from(srtt.as_micros()).unwrap_or(u32::MAX).saturating_mul(8)
            }),
        };
        let view = StackView {
            now,
            ticks: conn.clock.tick(now),
            una: una.max(self.una),
            snd_nxt: self.nxt,
            snd_wnd: self.peer.wnd,
            mss: conn.negotiated.mss,
            packets_out: sums.all.packets,
            sacked_out: sums.sacked.packets,
            lost_out: sums.lost.packets,
            retrans_out: sums.retransmission.packets,
            lost: self.scoreboard.lost_ever(),
            srtt_eighths,
            min_rtt: self.totals.min_rtt,
            pacing_rate: self.pacing_rate(),
            window_limited: self.usage.limited,
            max_packets_out: self.usage.max_packets_out,
            last_sent: conn.clock.tick(self.last.sent),
        };
        self.cc.view(&view);
    }

    /// Reports an acknowledgment that was applied to the retransmission queue.
    #[inline(always)]
    pub(crate) fn report_applied<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &AppliedAck,
    ) {
        if self.cc.uses_view() {
            self.report_applied_now(conn, cx, segment, ack);
        }
    }

    #[inline(never)]
    fn report_applied_now<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &AppliedAck,
    ) {
        self.show_state(conn, cx.now, ack.una);
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let advances = ack.una > self.una;
        let changes_window = ack.wnd != self.peer.wnd;
        let stamps = segment.timestamps.filter(|_| conn.negotiated.timestamps);
        let applied = AckApplied {
            acked: narrow(ack.acked),
            delivered: narrow(ack.delivered),
            prior_delivered: self.rates.as_ref().and_then(|rates| rates.delivery.prior_delivered()),
            updates_window: advances || changes_window,
            slow_path: ack.blocks || ack.echoed || changes_window || !advances,
            ece: ack.echoed,
            timestamps: stamps.map(|stamps| (stamps.val, stamps.ecr)),
        };
        let change = self.cc.on_ack_applied(&applied);
        self.note(conn, cx, change, Cause::SlowStartExit);
    }

    /// Reports whether anything is missing, outside of recoveries.
    #[inline(always)]
    pub(crate) fn report_order(&mut self, conn: &Connection, now: Instant, una: Offset) {
        if self.cc.uses_view() {
            self.show_state(conn, now, una);
            self.cc.on_order();
        }
    }

    /// The window after the handshake: a controller in C sees the connection before it starts.
    pub(crate) fn introduce_controller(&mut self, conn: &Connection, now: Instant) {
        if self.cc.uses_view() {
            self.cc.set_ecn(self.ecn.agreed());
            self.show_state(conn, now, Offset(1));
        }
    }

    /// True if the controller is in a reduction of its own (tcp_enter_cwr) since the last call.
    #[inline(always)]
    pub(crate) fn has_begun_cwr(&mut self) -> bool {
        self.cc.uses_view() && self.cc.take_cwr_request() && self.cc.in_recovery()
    }
}
