//! Loss detection by duplicate acknowledgments alone: RFC 5681 section 3.2 and RFC 6582. FreeBSD's
//! base stack has its own order of steps, in `base`.

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd};
use machine::Cx;
use record::{Cause, Event, Purpose, Recorder};
use units::{Bytes, Offset};

use super::ReceivedAck;
use crate::endpoint::TcpEndpoint;
use crate::profile::Family;
use crate::rates::AckDelivery;

/// Duplicate acknowledgments that signal a loss (RFC 5681 section 3.2).
pub(super) const DUP_THRESHOLD: u32 = 3;

impl TcpEndpoint {
    /// Is the acknowledgment a duplicate: does it change nothing at all? Answers to window probes
    /// are not.
    pub(crate) fn is_duplicate(&self, received: &ReceivedAck) -> bool {
        !received.data
            && self.snd.max > self.snd.una
            && self.timers.runs(Purpose::Retransmit)
            && received.wnd == self.snd.wnd
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
            self.snd.dup_acks = 0;
            return;
        }
        if self.holds_recovery(ack) {
            // PRR would have reduced it to this (tcp_cwnd_reduction).
            let control = self.cc.control();
            self.override_window(control.ssthresh.unwrap_or(control.window).min(control.window));
            self.emit_window(cx, Cause::Recovering);
            return;
        }
        if ack >= self.cc.recovery_point() {
            self.snd.dup_acks = 0;
            let pipe = self.snd.max - ack;
            let change = self.cc.on_recovered(&RecoveryEnd { th_ack: ack, pipe });
            self.note(cx, change, Cause::Recovered);
            return;
        }
        self.snd.retransmit_head = Some(Cause::PartialAck);
        // tcp_newreno_partial_ack: deflate by the bytes acknowledged, add back one segment.
        let deflated = self.cwnd().saturating_sub(bytes) + self.maxseg();
        self.override_window(Bytes(deflated));
        self.emit_window(cx, Cause::Recovering);
    }

    /// Does Linux stay in recovery after an acknowledgment of exactly the recovery point? It waits
    /// for more, so that duplicates caused by spurious retransmissions do not begin another
    /// recovery (RFC 6582 section 6; tcp_is_non_sack_preventing_reopen).
    fn holds_recovery(&self, ack: Offset) -> bool {
        self.cfg.profile.family == Family::Linux && ack == self.cc.recovery_point()
    }

    pub(crate) fn on_dup_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.begin_rate_sample();
        self.take_duplicate(cx);
        if self.is_rate_based() {
            self.end_rate_sample(cx, &AckDelivery { packets: 1, ..AckDelivery::default() });
            self.call_output();
        }
    }

    fn take_duplicate<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.dup_acks += 1;
        let count = self.snd.dup_acks;
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
                self.snd.dup_acks = 0;
            }
        } else {
            self.transmit_limited(count);
        }
    }

    /// Limited transmit: duplicate number `count` may release a new segment (RFC 3042).
    fn transmit_limited(&mut self, count: u32) {
        self.snd.limited = count.min(2);
        self.call_output();
    }

    /// Ends limited transmit: no more duplicates.
    pub(crate) const fn end_limited_transmit(&mut self) {
        self.snd.limited = 0;
    }

    fn enter_newreno_recovery<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.totals.fast_recoveries += 1;
        self.abandon_cwr();
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.snd.retransmit_head = Some(Cause::FastRetransmit);
        self.snd.rtt_timing = None;
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        self.override_window(Bytes(ssthresh + u64::from(DUP_THRESHOLD) * self.maxseg()));
        self.note(cx, change, Cause::FastRetransmit);
        self.call_output();
    }
}

#[cfg(test)]
mod tests {
    use cc::Controller;
    use units::Duration;

    use crate::TcpSide;
    use crate::tests::pair::{TcpPair, config};

    #[test]
    fn linux_stays_in_recovery_until_data_beyond_the_recovery_point_is_acknowledged() {
        let recover_or_restore = |system: &str| {
            let mut client = config(system, TcpSide::Client);
            client.profile.sack = false;
            client.tso = false;
            let mut pair = TcpPair::new(client, config(system, TcpSide::Server));
            pair.to_write = 8 * 1_448;
            // The first data segment is lost once.
            pair.lose = |number, segment| segment.payload > 0 && number == 3;
            pair.run(Duration::from_millis(450));
            assert_eq!(pair.client.acknowledged().get(), 8 * 1_448);
            let before = pair.client.cc.in_recovery();
            pair.to_write = 1_448;
            pair.with(TcpSide::Client, |cx, end| end.write(cx, 1_448));
            pair.serve();
            pair.run(Duration::from_millis(1_500));
            (before, pair.client.cc.in_recovery(), pair.client.totals().fast_recoveries)
        };
        assert_eq!(recover_or_restore("linux-6.18"), (true, false, 1));
        assert_eq!(recover_or_restore("freebsd-13.2"), (false, false, 1));
    }
}
