//! rack_log_ack: the segments delivered by an acknowledgment (rack_process_to_cumack,
//! rack_proc_sack_blk, rack_update_rtt), the duplicates it reports, and the losses it shows.

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Recorder};
use recovery::RttEstimator;
use recovery::goodput_rack::GoodputSample;
use recovery::rack_freebsd::micros;
use recovery::rack_undo::{ArrivedSegment, UndoDecision};
use recovery::sendmap::SentSegment;
use units::{Duration, Instant, Offset};

use super::FreeBsdRack;
use super::state::{FreeBsdRackState, RackProbes};
use crate::connection::Connection;
use crate::received_ack::ReceivedAck;

/// Result of rack_log_ack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogAckResult {
    /// Bytes newly acknowledged or SACKed; bytes SACKed before count again when acknowledged
    /// (`changed`).
    pub(super) bytes: u64,
    pub(super) shown: AckEffects,
}

/// The acknowledgment being processed.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckContext {
    pub(super) now: Instant,
    pub(super) th_ack: Offset,
    pub(super) srtt: Duration,
    /// The timestamp it echoes.
    pub(super) echo: Option<u32>,
}

/// Effects of its segments so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AckEffects {
    /// Minimum round trip of its segments, in microseconds (`rs_rtt_lowest`).
    pub(super) rtt: Option<u64>,
    pub(super) goodput: GoodputSample,
    /// A retransmitted segment was delivered: the backoff of the timeout ends.
    pub(super) retransmission: bool,
    /// The recovery was spurious: the threshold before it.
    pub(super) undone: Option<u64>,
    /// The last timeout was spurious.
    pub(super) timeout_undone: bool,
    /// Its blocks report data for the first time.
    pub(super) reported: bool,
}

impl FreeBsdRack<'_> {
    /// rack_log_ack; `struck`: a duplicate has just begun a recovery.
    pub(super) fn log_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
        struck: bool,
    ) -> LogAckResult {
        let mut changed = self.take_delivered(conn, cx, segment, received);
        self.report_rtt_samples(conn, cx, received.th_ack);
        let (una, ack) = (self.snd.una, received.th_ack);
        if received.blocks().is_empty() {
            if ack == una && struck {
                changed.bytes += conn.mss();
            }
        } else {
            self.note_dsack(conn, cx, received);
        }
        if let Some(ssthresh) = changed.shown.undone {
            self.undo_recovery(conn, cx, ssthresh);
        }
        if changed.bytes > 0 {
            self.state.hpts.cancel(cx.now, false);
        }
        let lost = self.overdue(cx.now);
        let mut began = struck;
        if let Some(lost) = &lost
            && !self.snd.in_fast_recovery()
            && !self.is_of_timeout(lost)
        {
            cold_path();
            self.cong_signal(conn, cx);
            self.state.hpts.override_pause();
            self.state.hpts.forget_early();
            began = true;
        }
        if self.snd.in_fast_recovery() && !began {
            self.update_prr(conn, changed.bytes, lost.is_some());
        }
        changed
    }

    /// Applies the acknowledgment and its blocks to the scoreboard.
    fn take_delivered<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) -> LogAckResult {
        let at = AckContext {
            now: cx.now,
            th_ack: received.th_ack,
            srtt: self.snd.rtt.estimator.srtt().unwrap_or(Duration::ZERO),
            echo: segment
                .timestamps
                .filter(|s| conn.negotiated.timestamps && s.ecr != 0)
                .map(|s| s.ecr),
        };
        let una = self.snd.una;
        let (reported, shown) =
            self.state.deliver(&mut self.snd.scoreboard, received, &at, una, &conn.clock);
        if shown.retransmission
            && let RttEstimator::Rack(rtt) = &mut self.snd.rtt.estimator
        {
            self.snd.rexmt.shift = 0;
            rtt.end_backoff();
        }
        if shown.timeout_undone {
            cold_path();
            let change =
                self.snd.cc.on_congested(&self.snd.congested(conn, cx.now, Sign::SpuriousTimeout));
            self.snd.totals.spurious += 1;
            self.snd.note(conn, cx, change, Cause::Undone);
        }
        if shown.reported {
            let count = self.snd.scoreboard.sums().sacked.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::DupAck { count });
        }
        let bytes = received.th_ack.since(una).get() + reported;
        LogAckResult { bytes, shown }
    }

    /// Processes blocks below the acknowledgment, which report duplicates (rack_note_dsack); a
    /// D-SACK round may end.
    fn note_dsack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
    ) {
        let (in_recovery, max) = (self.snd.in_fast_recovery(), self.snd.max);
        let restored =
            self.state.on_duplicates(&mut self.snd.scoreboard, received, in_recovery, max);
        if let Some(ssthresh) = restored {
            self.undo_recovery(conn, cx, ssthresh);
        }
    }

    /// The segment with the oldest transmission, if it is lost now (tcp_rack_output).
    pub(super) fn overdue(&mut self, now: Instant) -> Option<SentSegment> {
        if self.snd.max > self.snd.data_end() {
            // A FIN was sent.
            return None;
        }
        let srtt = self.snd.rtt.estimator.srtt();
        self.state.overdue(&mut self.snd.scoreboard, srtt, now)
    }

    /// Was the segment marked lost by the last timeout, and not retransmitted since
    /// (`RACK_MUST_RXT`)?
    pub(super) fn is_of_timeout(&self, sent_segment: &SentSegment) -> bool {
        self.state.timeout.at.is_some_and(|at| sent_segment.sent_at() < at)
    }
}

impl FreeBsdRackState {
    /// Processes an acknowledged segment; `stamp` is the timestamp of its last transmission.
    pub(super) fn on_acked(
        &mut self,
        sent_segment: &SentSegment,
        at: &AckContext,
        stamp: u32,
        shown: &mut AckEffects,
    ) {
        if let Some((end, first)) = self.timeout.first
            && end <= sent_segment.end()
        {
            self.timeout.first = None;
            shown.timeout_undone |= at.echo == Some(first);
        }
        if sent_segment.sacked() {
            return;
        }
        let now = micros(at.now);
        let rtt = self.time(sent_segment, at, Some(stamp), shown);
        let span = (sent_segment.start(), sent_segment.end());
        self.goodput.on_delivered(span, rtt, Some(at.th_ack), now, &mut shown.goodput);
        self.probes.on_arrived(sent_segment);
        if sent_segment.passed() {
            self.rack.on_reordering(at.now);
            self.reverts.on_passed_acked();
            return;
        }
        match self.undo.on_arrival(&ArrivedSegment::of(sent_segment), true, at.srtt, at.now) {
            UndoDecision::NoUndo => {}
            UndoDecision::Reordered => self.rack.on_reordering(at.now),
            UndoDecision::Undone { ssthresh } => {
                self.rack.on_reordering(at.now);
                self.reverts.forget();
                shown.undone = Some(ssthresh);
            }
        }
    }

    /// Processes a SACKed segment. Returns whether it is evidence for the loss of segments sent
    /// before it.
    pub(super) fn on_reported(
        &mut self,
        sent_segment: &SentSegment,
        at: &AckContext,
        shown: &mut AckEffects,
    ) -> bool {
        let rtt = self.time(sent_segment, at, None, shown);
        let span = (sent_segment.start(), sent_segment.end());
        self.goodput.on_delivered(span, rtt, None, micros(at.now), &mut shown.goodput);
        self.probes.on_arrived(sent_segment);
        if sent_segment.passed() {
            self.rack.on_reordering(at.now);
        }
        let arrival =
            self.undo.on_arrival(&ArrivedSegment::of(sent_segment), false, at.srtt, at.now);
        if arrival != UndoDecision::NoUndo {
            self.rack.on_reordering(at.now);
        }
        arrival == UndoDecision::NoUndo
    }

    /// rack_update_rtt: measures the round trip of a segment; RACK uses that of the segment sent
    /// last. A retransmitted segment gives none if the echo is older than its last transmission
    /// (`stamp`), or if its round trip would be below the minimum. Returns that of a segment sent
    /// once.
    fn time(
        &mut self,
        sent_segment: &SentSegment,
        at: &AckContext,
        stamp: Option<u32>,
        shown: &mut AckEffects,
    ) -> Option<u64> {
        let sent_at = micros(sent_segment.sent_at());
        let rtt = micros(at.now).saturating_sub(sent_at).max(1);
        let once = sent_segment.transmissions() == 1;
        if !once {
            shown.retransmission = true;
            let echoed = at.echo.zip(stamp).map(|(echo, stamp)| echo.wrapping_sub(stamp) as i32);
            let matches = echoed == Some(0);
            let tsecr_before = echoed.is_some_and(|ahead| ahead < 0);
            if tsecr_before || (!matches && self.least.is_none_or(|least| rtt < least)) {
                return None;
            }
            if !matches {
                self.set_latest(sent_at, rtt);
                return None;
            }
        }
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        if let Some(reports) = self.hystart.as_deref_mut() {
            reports.on_rtt(sent_segment.start(), rtt);
        }
        self.set_latest(sent_at, rtt);
        shown.rtt = Some(shown.rtt.map_or(rtt, |least| least.min(rtt)));
        once.then_some(rtt)
    }

    const fn set_latest(&mut self, sent_at: u64, rtt: u64) {
        if sent_at > self.latest.0 {
            self.latest = (sent_at, Duration::from_micros(rtt));
        }
    }

    /// Takes the round trip of a SYN, in microseconds: by its transmission time, and by its echo.
    pub(super) fn on_syn(&mut self, timed: Option<u64>, echoed: Option<u64>) {
        if let Some(rtt) = timed {
            self.least = Some(rtt);
            self.latest.1 = Duration::from_micros(rtt);
        }
        if let Some(rtt) = echoed.or(timed) {
            self.goodput.on_syn(rtt);
        }
    }
}

impl RackProbes {
    /// Records a delivered segment if it was retransmitted as a probe.
    fn on_arrived(&mut self, sent_segment: &SentSegment) {
        if !sent_segment.probe() {
            return;
        }
        let (start, end) = (sent_segment.start(), sent_segment.end());
        self.acked = match self.acked {
            Some((from, to)) if end >= from && start <= to => Some((from.min(start), to.max(end))),
            _ => Some((start, end)),
        };
    }

    /// Is a D-SACK that of a probe (rack_note_dsack)?
    pub(super) fn explains(&self, (start, end): (Offset, Offset)) -> bool {
        let within = |probe: Option<(Offset, Offset)>| {
            probe.is_some_and(|(from, to)| from <= start && end <= to)
        };
        within(self.acked) || within(self.sent)
    }

    /// Resets the probe count: data was acknowledged, or new data was sent that is not a probe.
    pub(super) const fn on_progress(&mut self) {
        self.in_progress = false;
        self.count = 0;
    }
}
