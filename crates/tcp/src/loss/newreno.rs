//! Loss detection by duplicate acknowledgments alone: RFC 5681 section 3.2 and RFC 6582. FreeBSD's
//! base stack has its own order of steps, in `base`.

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd};
use machine::Cx;
use record::{Cause, Event, Purpose, Recorder};
use units::{Bytes, Offset};

use super::{DUP_THRESHOLD, ReceivedAck};
use crate::endpoint::TcpEndpoint;

impl TcpEndpoint {
    /// Is the acknowledgment a duplicate: does it change nothing at all? Answers to window probes
    /// are not.
    pub(crate) fn is_duplicate(&self, received: &ReceivedAck) -> bool {
        !received.data
            && self.snd.max > self.snd.una
            && self.timers.runs(Purpose::Retransmit)
            && received.wnd == self.snd.peer.wnd
    }

    /// RFC 6582 section 3.2: a full acknowledgment ends the recovery, a partial one shows the
    /// next loss.
    pub(crate) fn newreno_settle<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        bytes: u64,
    ) {
        if !self.cc.in_recovery() {
            self.snd.rexmt.dup_acks = 0;
            return;
        }
        if ack >= self.cc.recovery_point() {
            self.snd.rexmt.dup_acks = 0;
            let pipe = self.snd.max - ack;
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: ack, pipe });
            self.note(cx, change, Cause::Recovered);
            return;
        }
        self.snd.rexmt.head = Some(Cause::PartialAck);
        // tcp_newreno_partial_ack: deflate by the bytes acknowledged, add back one segment.
        let deflated = self.cwnd().saturating_sub(bytes) + self.maxseg();
        self.override_window(Bytes(deflated));
        self.emit_window(cx, Cause::Recovering);
    }

    pub(crate) fn on_dup_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.rexmt.dup_acks += 1;
        let count = self.snd.rexmt.dup_acks;
        cx.emit(|| Event::DupAck { count });
        if self.cc.in_recovery() {
            // Each one signals that a segment has left the network (RFC 5681 section 3.2, step 4).
            self.override_window(Bytes(self.cwnd() + self.maxseg()));
            self.emit_window(cx, Cause::Recovering);
            self.call_output();
        } else if count == DUP_THRESHOLD {
            // RFC 6582 section 3.2 step 2: not for what an earlier recovery or timeout covers.
            let point = self.cc.recovery_point();
            if self.snd.una > point || point <= Offset(1) {
                self.enter_newreno_recovery(cx);
            } else {
                self.snd.rexmt.dup_acks = 0;
            }
        } else {
            self.transmit_limited(count);
        }
    }

    /// Limited transmit: duplicate number `count` may release a new segment (RFC 3042).
    fn transmit_limited(&mut self, count: u32) {
        self.snd.rexmt.limited = count.min(2);
        self.call_output();
    }

    /// Ends limited transmit: no more duplicates.
    pub(crate) const fn end_limited_transmit(&mut self) {
        self.snd.rexmt.limited = 0;
    }

    fn enter_newreno_recovery<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.totals.fast_recoveries += 1;
        self.abandon_cwr();
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.snd.rexmt.head = Some(Cause::FastRetransmit);
        self.snd.rtt.timing = None;
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        self.override_window(Bytes(ssthresh + u64::from(DUP_THRESHOLD) * self.maxseg()));
        self.note(cx, change, Cause::FastRetransmit);
        self.call_output();
    }
}
