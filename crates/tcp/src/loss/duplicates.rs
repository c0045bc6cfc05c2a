//! Losses told by duplicate acknowledgments alone: RFC 5681 section 3.2 and RFC 6582, as in
//! tcp_do_segment and tcp_newreno_partial_ack of FreeBSD.

use cc::{Controller, Recovered, Signal as Sign};
use machine::Cx;
use record::{Cause, Event, Purpose, Recorder};
use units::{Bytes, Offset};

use super::Heard;
use crate::endpoint::Endpoint;

/// Duplicate acknowledgments that stand for a loss (RFC 5681 section 3.2).
pub(super) const DUP_THRESHOLD: u32 = 3;

impl Endpoint {
    /// A duplicate is known by changing nothing at all. Answers to window probes are none.
    pub(crate) fn is_duplicate(&self, heard: &Heard) -> bool {
        !heard.data
            && self.snd.max > self.snd.una
            && self.timers.runs(Purpose::Retransmit)
            && heard.wnd == self.snd.wnd
    }

    /// RFC 6582 section 3.2: a full acknowledgment ends the recovery, a partial one shows the
    /// next loss.
    pub(crate) fn duplicates_settle<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        bytes: u64,
    ) {
        if !self.cc.in_recovery() {
            self.snd.dup_acks = 0;
            return;
        }
        if ack >= self.cc.recovery_point() {
            self.snd.dup_acks = 0;
            let pipe = self.snd.max - ack;
            let change = self.cc.on_recovered(&Recovered { th_ack: ack, pipe });
            self.note(cx, change, Cause::Recovered);
            return;
        }
        self.snd.again = Some(Cause::PartialAck);
        // tcp_newreno_partial_ack: deflate by what left, add back one segment.
        let deflated = self.cwnd().saturating_sub(bytes) + self.maxseg();
        self.cc.set_window(Bytes(deflated));
        self.emit_window(cx, Cause::Recovering);
    }

    pub(crate) fn on_dup_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.dup_acks += 1;
        let count = self.snd.dup_acks;
        self.snd.limited = count.min(2);
        cx.emit(|| Event::DupAck { count });
        if self.cc.in_recovery() {
            // Each one tells that a segment has left the network (RFC 5681 section 3.2, step 4).
            self.cc.set_window(Bytes(self.cwnd() + self.maxseg()));
            self.emit_window(cx, Cause::Recovering);
            self.call_output();
        } else if count == DUP_THRESHOLD {
            // RFC 6582 section 3.2 step 2: not for what an earlier recovery or timeout covers.
            let point = self.cc.recovery_point();
            if self.snd.una > point || point <= Offset(1) {
                self.enter_recovery(cx);
            } else {
                self.snd.dup_acks = 0;
            }
        } else {
            // Limited transmit may release new data.
            self.call_output();
        }
    }

    fn enter_recovery<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.totals.fast_recoveries += 1;
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.snd.again = Some(Cause::FastRetransmit);
        self.snd.timed = None;
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        self.cc.set_window(Bytes(ssthresh + u64::from(DUP_THRESHOLD) * self.maxseg()));
        self.note(cx, change, Cause::FastRetransmit);
        self.call_output();
    }
}
