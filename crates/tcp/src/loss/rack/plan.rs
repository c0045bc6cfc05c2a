//! Plans the next segment of a call of rack_output.

use machine::Cx;
use record::{Cause, Event, Recorder, SendLimit, SentKind};

use crate::connection::Connection;
use crate::loss::LossDetector;
use crate::output::bytes::ByteLimits;
use crate::profile::BurstRule;
use crate::segment_plan::SegmentPlan;
use crate::sender::Sender;
use crate::state::{ReceiveSide, SendSide};

impl SendSide {
    /// Plans a pass: a lost segment or a probe, else new data, else a FIN; with it the bytes that
    /// the windows allow after it.
    pub(crate) fn plan_rack<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
    ) -> Result<(SegmentPlan, u64), SendLimit> {
        if self.probe.persisting {
            return Err(SendLimit::PeerWindow);
        }
        let window = self.cwnd();
        if let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector {
            rack.burst.begin(window);
        }
        if let Some(plan) = self.plan_rack_retransmission(conn, cx) {
            return Ok((plan, 0));
        }
        if self.nxt < self.max {
            // After a closed window or a smaller path MTU: from snd_nxt on.
            // Without limited transmit, which is for duplicates that are no SACKs.
            let limits = ByteLimits { burst: conn.largest_burst(), window, room: None };
            return self.plan_bytes(conn, rcv, cx, limits).map(|plan| (plan, 0));
        }
        if self.buffer.used() == 0 {
            return self.plan_rack_fin(conn);
        }
        self.plan_rack_data(conn, rcv, cx)
    }

    /// Plans new data: the bytes that the windows allow, or the PRR credit in a recovery, but no
    /// partial segment unless it is the last or nothing is outstanding.
    fn plan_rack_data<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
    ) -> Result<(SegmentPlan, u64), SendLimit> {
        let mss = conn.mss();
        let offset = self.nxt - self.una;
        let available = self.buffer.used();
        let unsent = available.saturating_sub(offset);
        let in_recovery = self.in_fast_recovery();
        let cwnd = self.cwnd();
        let wnd = self.peer.wnd;
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else {
            return Err(SendLimit::Done);
        };
        let fast = core::mem::take(&mut rack.call.fast);
        let probe = core::mem::take(&mut rack.call.probe_new);
        let is_probe = rack.call.is_probe;
        let (credit, share) = (rack.prr.prr_sndcnt, rack.settings.send_buffer_share);
        let most = rack.burst.most(mss);
        let sums = self.scoreboard.sums();
        let flight = sums.all.bytes - sums.sacked.bytes;
        let room = wnd.saturating_sub(offset);
        let mut len = if fast > 0 && !is_probe {
            fast.min(unsent).min(room)
        } else if in_recovery {
            let len = unsent.min(room).min(credit);
            // PRR may send more than a segment; a partial one only if it is the last.
            if len < mss && len < unsent { 0 } else { len }
        } else if probe > 0 {
            probe.min(unsent).min(room)
        } else {
            cwnd.min(wnd).saturating_sub(flight).min(room).min(unsent)
        };
        // No partial segment, unless little is in flight.
        let least = mss.min(self.peer.max_wnd / 2);
        let much = flight > 2 * mss;
        let partial = len < mss && (wnd < least || (cwnd >= 4 * mss && much));
        let shut = len < most && room < least && much;
        if !is_probe && len < unsent && (partial || shut) {
            len = 0;
        }
        let sendwin = cwnd.min(wnd);
        if let Some(size) = self.buffer.autoscale_by(share, wnd, sendwin, unsent) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }
        if len == 0 {
            return Err(self.waiting_reason(unsent, cwnd));
        }
        let goes = len >= mss
            || ((self.call.idle || conn.cfg.nodelay) && len == unsent)
            || offset == 0
            || (self.peer.max_wnd > 0 && len >= self.peer.max_wnd / 2)
            || (room < mss && offset < 2 * mss);
        if !goes {
            let last = len == unsent;
            return Err(if last {
                SendLimit::SmallSegment
            } else {
                self.waiting_reason(unsent, cwnd)
            });
        }
        Ok(self.cut_rack_burst(conn, rcv, len, unsent, most, fast > 0))
    }

    /// Plans a retransmission: by a timer, of a lost segment, or as a probe.
    fn plan_rack_retransmission<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
    ) -> Option<SegmentPlan> {
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return None };
        let timed_out = rack.timeout.at == Some(cx.now);
        let lost = if let Some(place) = rack.call.retransmit.take() {
            rack.call.probe = None;
            let cause = if timed_out { Cause::Timeout } else { Cause::FastRetransmit };
            Some((place, cause))
        } else if let Some(lost) = self.overdue(cx.now) {
            let of_timeout = self.is_of_timeout(&lost);
            let was_recovering = self.loss_detector.freebsd_rack()?.timeout.in_recovery;
            if !self.in_fast_recovery() && !of_timeout && !was_recovering {
                self.begin_rack_recovery(conn, cx);
            }
            let cause = if of_timeout { Cause::Timeout } else { Cause::FastRetransmit };
            Some((lost.start(), cause))
        } else {
            let rack = self.loss_detector.freebsd_rack()?;
            rack.call.probe.take().map(|place| (place, Cause::LossProbe))
        };
        let (place, cause) = lost?;
        let place = place.max(self.una);
        let sent_segment = *self.scoreboard.get(place)?;
        let data_end = self.data_end();
        let end = sent_segment.end().min(data_end).min(place + conn.mss());
        let len = end.since(place).get();
        let fin = len == 0 && sent_segment.end() > data_end;
        let kind = SentKind::Retransmission(cause);
        let push = len > 0 && end == data_end;
        Some(SegmentPlan { at: place, len, fin, push, kind, more: false })
    }
}

impl Sender {
    /// Cuts a burst of at most `most` bytes out of `len`, in whole segments unless it is the last or
    /// its mbufs are too many for the device; only the burst limit of the interface lets another
    /// follow in the call. What is left of an earlier burst is not rounded (rack_fast_output).
    fn cut_rack_burst(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        len: u64,
        unsent: u64,
        most: u64,
        fast: bool,
    ) -> (SegmentPlan, u64) {
        let mss = conn.mss();
        let mut burst = len;
        let mut more = false;
        if len > mss {
            if conn.cfg.tso && rcv.reassembly.is_empty() {
                let headers = u64::from(conn.cfg.ip.header_len()) + 20 + (conn.maxseg() - mss);
                let largest = conn.largest_burst().saturating_sub(headers).max(mss);
                more = burst > largest;
                burst = burst.min(largest);
                if burst < unsent && !fast {
                    burst -= burst % mss;
                }
                burst = burst.min(most);
                let offset = self.nxt - self.una;
                burst = self.buffer.one_packet(offset, burst);
            } else {
                burst = mss;
                more = true;
            }
        }
        let at = self.nxt;
        let push = burst == unsent;
        (SegmentPlan { at, len: burst, fin: false, push, kind: SentKind::New, more }, len - burst)
    }

    /// A FIN is sent once all data is acknowledged (rack_output).
    fn plan_rack_fin(&mut self, conn: &Connection) -> Result<(SegmentPlan, u64), SendLimit> {
        let unsent = self.nxt == self.una && self.max == self.una;
        if conn.fin_wanted() && unsent && self.nxt == self.data_end() {
            let at = self.nxt;
            let kind = SentKind::Control;
            return Ok((SegmentPlan { at, len: 0, fin: true, push: false, kind, more: false }, 0));
        }
        Err(if self.buffer.fin { SendLimit::Done } else { SendLimit::Application })
    }
}

impl Connection {
    /// Maximum IP bytes of a burst.
    fn largest_burst(&self) -> u64 {
        match self.cfg.profile.burst {
            BurstRule::FreeBsd { max } => max.get(),
            BurstRule::Linux(_) | BurstRule::Rfc => 65_535,
        }
    }
}
