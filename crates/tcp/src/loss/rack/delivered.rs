//! Segments delivered by an acknowledgment (rack_process_to_cumack, rack_proc_sack_blk,
//! rack_update_rtt).

use recovery::goodput_rack::GoodputSample;
use recovery::rack_freebsd::micros;
use recovery::rack_undo::{ArrivedSegment, UndoDecision};
use recovery::sendmap::SentSegment;
use units::{Duration, Instant, Offset};

use super::state::{FreeBsdRackState, RackProbes};

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
