//! The fast path: acknowledgments while nothing is missing, which are most of a transfer.
//!
//! A shortened [`SendSide::rack_tlp_ack`]: no SACK blocks, nothing lost, retransmitted or
//! probed. This is header prediction for the sender (tcp_do_segment of FreeBSD, the fast path of
//! tcp_rcv_established of Linux).

use cc::Controller;
use machine::Cx;
use packet::Segment;
use record::{Purpose, Recorder};
use units::Offset;

use super::detector::RackDetector;
use crate::connection::Connection;
use crate::kernel_view::AppliedAck;
use crate::send_side::SendSide;
use crate::stacks::Stack;
use crate::timers::Timers;

impl SendSide {
    /// Processes an acknowledgment without blocks if nothing is missing; returns false if it does
    /// not qualify.
    pub(crate) fn fast_path_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        wnd: u64,
    ) -> bool {
        let Stack::RackTlp(loss) = &mut self.stack else { return false };
        let calm_here = loss.allows_fast_path();
        let (RackDetector::Rfc(rack) | RackDetector::Linux(rack)) = &mut loss.detector else {
            return false;
        };
        let calm = calm_here
            && !rack.dsack_pending()
            && ack > self.sender.una
            && self.sender.scoreboard.all_in_order()
            && self.sender.rexmt.shift == 0
            && self.sender.rexmt.timeout_stamp.is_none()
            && self.sender.rexmt.cwr_end.is_none()
            && self.sender.rates.is_none()
            && !self.sender.cc.in_recovery();
        if !calm {
            return false;
        }
        let queued = self.sender.scoreboard.sums().all.packets;
        let row = self.sender.scoreboard.acknowledge_in_order(ack);
        loss.planned = None;
        if let Some(row) = &row {
            if !loss.reno {
                rack.on_run_delivered(row, cx.now);
            }
            loss.tlp.on_rtt_sample();
            self.take_batch_rtt(conn, cx, segment, ack, row);
        }
        if self.cc.uses_view() {
            let acked = queued.saturating_sub(self.scoreboard.sums().all.packets);
            let delivered = row.as_ref().map_or(0, |row| row.packets);
            let (echoed, blocks) = (false, false);
            let applied = AppliedAck { una: ack, acked, delivered, wnd, echoed, blocks };
            self.report_applied(conn, cx, segment, &applied);
        }
        if ack == self.max {
            timers.stop(Purpose::Retransmit);
        } else {
            self.arm_retransmit_inline(conn, timers, cx.now);
        }
        timers.stop(Purpose::Reorder);
        let nsegs = u32::from(segment.nsegs.max(1));
        let packets = row.map_or(0, |row| row.packets);
        let change = self.grow_unless_held(conn, cx.now, ack, packets, nsegs);
        self.advance(conn, cx, ack, wnd, nsegs, change);
        if self.has_begun_cwr() {
            self.begin_own_cwr(conn, cx);
        }
        self.plan_probe_timer_inline(conn, timers, cx.now);
        self.call_output();
        true
    }
}
