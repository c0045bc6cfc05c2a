//! Acknowledgments where SACK is not used: RFC 6582, with the steps of the stack around it.

use cc::{AckEvent, CongestionSignal as Sign, Controller};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Purpose, Recorder};
use units::{Instant, Offset};

use crate::connection::Connection;
use crate::loss::newreno::{self, AckInput, AckOutcome};
use crate::received_ack::ReceivedAck;
use crate::sender::Sender;
use crate::sent::DeliveredPackets;
use crate::timers::Timers;

impl Sender {
    /// Processes an acknowledgment that advances `snd_una`, without SACK.
    pub(super) fn on_new_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) {
        let ack = received.th_ack;
        let bytes = ack - self.una;
        self.end_limited_transmit();
        self.undo_spurious_timeout(conn, cx, segment);
        let mut delivered = DeliveredPackets::default();
        self.scoreboard.acknowledge(ack, |sent_segment| delivered.add(sent_segment));
        self.take_rtt(conn, cx, segment, ack, &delivered);
        self.rexmt.shift = 0;
        if ack == self.max {
            timers.stop(Purpose::Retransmit);
        } else {
            self.arm_retransmit(conn, timers, cx.now);
        }
        // tcp_do_segment ends the recovery before it counts the acknowledgment.
        let recovering = self.cc.in_recovery();
        let packets = delivered.packets;
        if let Some(end) = self.rexmt.cwr_end {
            if ack > end {
                self.end_cwr(conn, cx, ack, true);
            }
        } else {
            let input = self.ack_input(conn, cx.now, ack);
            let outcome = newreno::on_new_ack(&input, &mut self.rexmt, &mut self.cc);
            self.apply(conn, cx, &outcome);
        }
        let nsegs = received.nsegs;
        let change = self.cc.on_acked(&AckEvent {
            now: cx.now,
            ticks: conn.clock.tick(cx.now),
            rtt: self.rtt.sample.take(),
            srtt: self.smoothed(conn),
            snd_nxt: self.nxt,
            una: ack,
            bytes,
            packets: packets as u32,
            nsegs,
            ends_recovery: recovering && !self.cc.in_recovery(),
            retransmitting: self.nxt != self.max,
            snd_wnd: self.peer.wnd,
            window_limited: self.usage.limited,
            max_packets_out: self.usage.max_packets_out as u32,
        });
        self.advance(conn, cx, ack, received.wnd, nsegs, change);
        self.call_output();
    }

    /// Is the acknowledgment a duplicate: does it change nothing at all? Answers to window probes
    /// are not.
    pub(super) fn is_duplicate(&self, timers: &Timers, received: &ReceivedAck) -> bool {
        !received.data
            && self.max > self.una
            && timers.runs(Purpose::Retransmit)
            && received.wnd == self.peer.wnd
    }

    pub(super) fn on_dup_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
    ) {
        self.rexmt.dup_acks += 1;
        let count = self.rexmt.dup_acks;
        cx.emit(|| Event::DupAck { count });
        let input = self.ack_input(conn, cx.now, ack);
        let outcome = newreno::on_dup_ack(&input, &mut self.rexmt, &mut self.cc);
        self.apply(conn, cx, &outcome);
    }

    fn ack_input(&self, conn: &Connection, now: Instant, ack: Offset) -> AckInput {
        AckInput {
            ack,
            una: self.una,
            max: self.max,
            maxseg: conn.maxseg(),
            loss: self.congested(conn, now, Sign::Loss),
        }
    }

    /// Does what a loss detector decided.
    fn apply<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>, outcome: &AckOutcome) {
        if outcome.recovery_began {
            self.totals.fast_recoveries += 1;
            self.rtt.timing = None;
        }
        if let Some((change, cause)) = outcome.window {
            self.note(conn, cx, change, cause);
        }
        if outcome.recovering {
            self.emit_window(conn, cx, Cause::Recovering);
        }
        if outcome.output {
            self.call_output();
        }
    }

    /// Ends limited transmit: no more duplicates.
    pub(crate) const fn end_limited_transmit(&mut self) {
        self.rexmt.limited = 0;
    }

    /// Undoes a timeout if the first ACK after it echoes a timestamp older than the retransmission:
    /// the original had arrived (tcp_do_segment's t_badrxtwin; RFC 3522).
    fn undo_spurious_timeout<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        let Some(sent) = self.rexmt.timeout_stamp else { return };
        self.rexmt.timeout_stamp = None;
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let tsecr_before = echo != 0 && (echo.wrapping_sub(sent) as i32) < 0;
        if self.rexmt.shift != 1 || !tsecr_before {
            return;
        }
        let change = self.cc.on_congested(&self.congested(conn, cx.now, Sign::SpuriousTimeout));
        self.totals.spurious += 1;
        self.nxt = self.max;
        self.note(conn, cx, change, Cause::Undone);
    }
}
