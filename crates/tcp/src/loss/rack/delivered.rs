//! What an acknowledgment shows of single segments (rack_process_to_cumack, rack_proc_sack_blk,
//! rack_update_rtt).

use recovery::goodput_rack::GoodputSample;
use recovery::rack_freebsd::micros;
use recovery::rack_undo::{Arrival, Arrived};
use recovery::sendmap::Piece;
use units::{Duration, Instant, Offset};

use super::{Probes, RackLoss};

/// The acknowledgment in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arriving {
    pub(super) now: Instant,
    pub(super) th_ack: Offset,
    pub(super) srtt: Duration,
    /// The timestamp it echoes.
    pub(super) echo: Option<u32>,
}

/// What it has shown so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shown {
    /// Least round trip of its segments, in microseconds (`rs_rtt_lowest`).
    pub(super) rtt: Option<u64>,
    pub(super) goodput: GoodputSample,
    /// A segment sent more than once arrived: the timeout is not backed off any more.
    pub(super) resent: bool,
    /// The recovery was needless: the threshold it began with.
    pub(super) undone: Option<u64>,
    /// The last timeout was spurious.
    pub(super) timeout_undone: bool,
}

impl RackLoss {
    /// A segment is acknowledged; `stamp` is the timestamp of its last transmission.
    pub(super) fn on_acked(&mut self, piece: &Piece, at: &Arriving, stamp: u32, shown: &mut Shown) {
        if let Some((end, first)) = self.timeout.first
            && end <= piece.end()
        {
            self.timeout.first = None;
            shown.timeout_undone |= at.echo == Some(first);
        }
        if piece.sacked() {
            return;
        }
        let now = micros(at.now);
        let rtt = self.time(piece, at, Some(stamp), shown);
        let span = (piece.start(), piece.end());
        self.goodput.on_delivered(span, rtt, Some(at.th_ack), now, &mut shown.goodput);
        self.probes.on_arrived(piece);
        if piece.passed() {
            self.rack.on_reordering(at.now);
            self.reverts.on_passed_acked();
            return;
        }
        match self.undo.on_arrival(&Arrived::of(piece), true, at.srtt, at.now) {
            Arrival::Ordinary => {}
            Arrival::Reordered => self.rack.on_reordering(at.now),
            Arrival::Undone { ssthresh } => {
                self.rack.on_reordering(at.now);
                self.reverts.forget();
                shown.undone = Some(ssthresh);
            }
        }
    }

    /// A segment is reported. Does it pass all that was sent before it?
    pub(super) fn on_reported(&mut self, piece: &Piece, at: &Arriving, shown: &mut Shown) -> bool {
        let rtt = self.time(piece, at, None, shown);
        let span = (piece.start(), piece.end());
        self.goodput.on_delivered(span, rtt, None, micros(at.now), &mut shown.goodput);
        self.probes.on_arrived(piece);
        if piece.passed() {
            self.rack.on_reordering(at.now);
        }
        let arrival = self.undo.on_arrival(&Arrived::of(piece), false, at.srtt, at.now);
        if arrival != Arrival::Ordinary {
            self.rack.on_reordering(at.now);
        }
        arrival == Arrival::Ordinary
    }

    /// rack_update_rtt: the round trip of a segment; that of the one sent last is RACK's. One that was
    /// sent more than once shows none if an echo is older than its last transmission (`stamp`), or if it
    /// came back sooner than any before. Returns that of a segment sent once.
    fn time(
        &mut self,
        piece: &Piece,
        at: &Arriving,
        stamp: Option<u32>,
        shown: &mut Shown,
    ) -> Option<u64> {
        let sent_at = micros(piece.sent_at());
        let rtt = micros(at.now).saturating_sub(sent_at).max(1);
        let once = piece.transmissions() == 1;
        if !once {
            shown.resent = true;
            let echoed = at.echo.zip(stamp).map(|(echo, stamp)| echo.wrapping_sub(stamp) as i32);
            let matches = echoed == Some(0);
            let older = echoed.is_some_and(|ahead| ahead < 0);
            if older || (!matches && self.least.is_none_or(|least| rtt < least)) {
                return None;
            }
            if !matches {
                self.set_latest(sent_at, rtt);
                return None;
            }
        }
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.set_latest(sent_at, rtt);
        shown.rtt = Some(shown.rtt.map_or(rtt, |least| least.min(rtt)));
        once.then_some(rtt)
    }

    const fn set_latest(&mut self, sent_at: u64, rtt: u64) {
        if sent_at > self.latest.0 {
            self.latest = (sent_at, Duration::from_micros(rtt));
        }
    }

    /// The round trip of a SYN, in microseconds: by when it was sent, and by its echo.
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

impl Probes {
    /// A segment arrived; one retransmitted as a probe is remembered.
    fn on_arrived(&mut self, piece: &Piece) {
        if !piece.probe() {
            return;
        }
        let (start, end) = (piece.start(), piece.end());
        self.acked = match self.acked {
            Some((from, to)) if end >= from && start <= to => Some((from.min(start), to.max(end))),
            _ => Some((start, end)),
        };
    }

    /// Is a duplicate that of a probe (rack_note_dsack)?
    pub(super) fn explains(&self, (start, end): (Offset, Offset)) -> bool {
        let within = |probe: Option<(Offset, Offset)>| {
            probe.is_some_and(|(from, to)| from <= start && end <= to)
        };
        within(self.acked) || within(self.sent)
    }

    /// Something was acknowledged, or new data was sent that is no probe.
    pub(super) const fn on_progress(&mut self) {
        self.in_progress = false;
        self.count = 0;
    }
}
