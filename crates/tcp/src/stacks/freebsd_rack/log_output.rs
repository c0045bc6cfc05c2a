//! The records of a segment sent (rack_log_output, rack_update_rsm).

use core::hint::cold_path;

use machine::Cx;
use record::{Recorder, SentKind};
use recovery::rack_freebsd::micros;
use recovery::sendmap::RetransmitResult;
use units::Offset;

use super::FreeBsdRack;
use crate::connection::Connection;
use crate::segment_plan::SegmentPlan;
use crate::timers::Timers;

impl FreeBsdRack<'_> {
    /// Records the transmission of a planned segment; the call may end with it.
    pub(crate) fn sent<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        match plan.kind {
            SentKind::Probe => {
                cold_path();
                self.snd.note_probe(plan.at + plan.len, cx.now);
            }
            _ if plan.len > 0 || plan.fin => self.sent_data(conn, cx, plan),
            _ => {}
        }
        self.snd.emit_sent(conn, cx, plan);
        if plan.kind == SentKind::Probe {
            return;
        }
        self.end_segment(conn, timers, cx.now, plan.kind, plan.more);
        if !self.snd.call.due {
            self.snd.validate_bytes(conn, None);
            self.end_hystart_round(conn, cx);
        }
    }

    fn sent_data<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        if plan.len > 0 && self.snd.scoreboard.sums().all.packets == 0 {
            self.snd.begin_flight(conn, cx);
        }
        let sent = self.snd.record_sent(conn, cx.now, plan, true);
        self.log_output(conn, plan.at, sent.end, sent.repeated, &sent.retransmission);
        if sent.repeated {
            if conn.cfg.tso {
                self.snd.buffer.on_retransmitted(plan.at, sent.end);
            }
        } else if self.snd.rtt.timing.is_none() {
            self.snd.rtt.timing = Some((plan.at, cx.now));
        }
    }

    /// Records data sent, new or retransmitted (`repeated`); `retransmission` describes the
    /// retransmission.
    fn log_output(
        &mut self,
        conn: &Connection,
        at: Offset,
        end: Offset,
        repeated: bool,
        retransmission: &RetransmitResult,
    ) {
        let now = self.snd.last.sent;
        let (una, mss, window) = (self.snd.una, conn.mss(), conn.initial_window());
        let in_recovery = self.snd.in_fast_recovery();
        let len = end - at;
        // Without SACK duplicates count as SACKed, of which there can be more than data.
        let flight = (self.snd.max - una).saturating_sub(self.snd.scoreboard.sums().sacked.bytes);
        if let Some(reports) = self.state.hystart.as_deref_mut() {
            reports.on_sent(at, end, flight);
        }
        if in_recovery {
            self.state.prr.on_sent(len);
            self.state.undo.on_retransmitted(retransmission.passed_bytes);
            self.state.reverts.on_sent(len, repeated);
        } else if !repeated {
            self.state.reverts.on_sent(len, false);
        }
        if self.state.call.is_probe {
            self.state.probes.in_progress = true;
            self.state.probes.count += 1;
            if repeated {
                self.state.probes.sent = Some((at, end));
            }
        } else if !repeated {
            self.state.probes.on_progress();
        }
        if !repeated {
            if una == at {
                self.state.probes.timed_at = now;
            }
            self.state.goodput.on_sent(at, end, micros(now), window, mss);
            if end > self.state.timeout.max {
                self.state.timeout.in_recovery = false;
            }
        }
        if repeated && at == self.state.strikes.0 {
            // rack_update_rsm: duplicates of the last transmission do not count for this one.
            self.state.strikes.1 = 0;
        }
        self.state.call.sent += len;
    }
}
