//! What each system concludes from what was delivered and when.

use recovery::burst_rack::Burst;
use recovery::dsack::Block;
use recovery::prr::linux::PrrLinux;
use recovery::prr::rack::PrrRack;
use recovery::prr::rfc9937::{Flight, Prr9937};
use recovery::rack::{Delivered, Found, Rack, Standing};
use recovery::rack_freebsd::RackFreeBsd;
use recovery::rack_undo::{Arrival, Arrived, RackUndo, Reverts};
use recovery::sendmap::{Piece, SendMap, Sums};
use units::{Duration, Instant, Offset};

use super::budget::Budget;
use crate::profile::{RackRule, TimedRule};

/// Who judges.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) enum Judge {
    /// RFC 8985.
    Rfc(Rack),
    /// Linux.
    Linux(Rack),
    /// FreeBSD's RACK stack.
    FreeBsd(Box<FreeBsd>),
}

/// FreeBSD's RACK stack.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct FreeBsd {
    rule: RackRule,
    rack: RackFreeBsd,
    undo: RackUndo,
    reverts: Reverts,
    burst: Burst,
    /// When the packet sent last of those delivered had left, in microseconds, and its round trip
    /// (`rc_rack_tmit_time`, `rc_rack_rtt`).
    latest: (u64, Duration),
    /// Least round trip of a packet sent once (`rc_rack_min_rtt`).
    least: Option<Duration>,
}

/// When something was delivered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    pub(super) srtt: Duration,
    pub(super) min_rtt: Duration,
}

/// How the sender stands when a duplicate is reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) una: Offset,
    pub(super) max: Offset,
    /// It is that of a tail loss probe.
    pub(super) of_probe: bool,
    pub(super) in_recovery: bool,
    /// Something under way has been passed.
    pub(super) any_passed: bool,
}

impl Judge {
    pub(super) fn new(rule: TimedRule) -> Self {
        match rule {
            TimedRule::Rfc => Self::Rfc(Rack::new()),
            TimedRule::Linux => Self::Linux(Rack::new()),
            TimedRule::Rack(rule) => Self::FreeBsd(Box::new(FreeBsd {
                rule,
                rack: RackFreeBsd::new(rule.thresh),
                undo: RackUndo::new(rule.rtt_divisor),
                reverts: Reverts::none(),
                burst: Burst::new(rule.burst),
                latest: (0, Duration::ZERO),
                least: None,
            })),
        }
    }

    /// Does the system take a recovery back by timestamps and D-SACK (tcp_try_undo_recovery)?
    pub(super) const fn takes_back(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    /// A packet was reported, shown as it stood before. Does it pass all that was sent before it?
    pub(super) fn on_reported(&mut self, piece: &Piece, echo_older: bool, at: &Moment) -> bool {
        match self {
            Self::Rfc(_) | Self::Linux(_) => {
                self.on_delivered(piece, echo_older, at);
                // RACK passes by its own clock.
                false
            }
            Self::FreeBsd(freebsd) => freebsd.on_reported(piece, at),
        }
    }

    #[inline(never)]
    fn on_delivered(&mut self, piece: &Piece, echo_older: bool, at: &Moment) {
        let (rack, echo_older) = match self {
            Self::Rfc(rack) => (rack, echo_older),
            // tcp_rack_advance judges by the round trip alone: out of order, an older timestamp is
            // echoed whatever arrived.
            Self::Linux(rack) => (rack, false),
            Self::FreeBsd(_) => return,
        };
        rack.on_delivered(&Delivered::of(piece, echo_older), at.now, at.min_rtt);
    }

    /// A packet was acknowledged, shown as it stood before. Tells the threshold to go back to if
    /// that shows the recovery to be needless.
    pub(super) fn on_acked(&mut self, piece: &Piece, echo_older: bool, at: &Moment) -> Option<u64> {
        if piece.sacked() {
            return None;
        }
        match self {
            Self::Rfc(_) | Self::Linux(_) => {
                self.on_delivered(piece, echo_older, at);
                None
            }
            Self::FreeBsd(freebsd) => freebsd.on_acked(piece, echo_older, at),
        }
    }

    /// Is it FreeBSD's (rack_log_ack)?
    pub(super) const fn is_freebsd(&self) -> bool {
        matches!(self, Self::FreeBsd(_))
    }

    /// An acknowledgment without any block: the older of the reverts is decided.
    pub(super) fn on_bare_ack(&mut self, any_passed: impl FnOnce() -> bool) -> Option<u64> {
        match self {
            Self::FreeBsd(freebsd) if freebsd.reverts.may_revert() => {
                let reverted = freebsd.reverts.on_bare_ack(any_passed());
                reverted.filter(|_| freebsd.rule.revert_unsent)
            }
            _ => None,
        }
    }

    /// An acknowledgment with blocks came, what it reports twice is noted: a round of duplicates may
    /// end.
    pub(super) fn end_round(&mut self, th_ack: Offset) {
        if let Self::FreeBsd(freebsd) = self {
            freebsd.rack.on_ack(th_ack);
        }
    }

    /// A duplicate was reported. Tells the threshold to go back to if that shows a recovery that is
    /// over to have been needless.
    pub(super) fn on_duplicate(&mut self, (start, end): Block, shown: &Shown) -> Option<u64> {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => {
                rack.on_duplicate(shown.una, shown.max);
                None
            }
            Self::FreeBsd(freebsd) => {
                // rack_note_dsack: that of a probe counts as bytes, not as reordering.
                if !shown.of_probe {
                    freebsd.rack.on_duplicate(shown.max);
                }
                let (bytes, recovers) = (end - start, shown.in_recovery);
                let reverted = freebsd.reverts.on_duplicate(bytes, recovers, shown.any_passed);
                reverted.filter(|_| freebsd.rule.revert_duplicates)
            }
        }
    }

    #[cfg(test)]
    pub(super) fn rounds_with_duplicates(&self) -> u32 {
        if let Self::FreeBsd(freebsd) = self { freebsd.rack.num_dsack() } else { 0 }
    }

    /// Packets, or acknowledgments, changed places.
    pub(super) fn see_reordering(&mut self, now: Instant) {
        if let Self::FreeBsd(freebsd) = self {
            freebsd.rack.on_reordering(now);
        }
    }

    #[cfg(test)]
    pub(super) fn saw_reordering(&self) -> bool {
        matches!(self, Self::FreeBsd(freebsd) if freebsd.rack.reorder_ts().is_some())
    }

    /// A recovery begins; `ssthresh` as it was before.
    pub(super) fn begin(&mut self, ssthresh: u64) {
        if let Self::FreeBsd(freebsd) = self {
            freebsd.undo.begin(ssthresh);
            freebsd.reverts = Reverts::begin(ssthresh);
        }
    }

    /// A recovery, or a timeout's repair, is over.
    pub(super) fn on_recovered(&mut self) {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.on_recovered(),
            Self::FreeBsd(freebsd) => {
                freebsd.rack.on_recovered();
                freebsd.undo.end();
            }
        }
    }

    /// A recovery proved needless and is left.
    pub(super) fn leave(&mut self) {
        if let Self::FreeBsd(freebsd) = self {
            freebsd.undo.end();
        }
    }

    /// `bytes` left in a recovery, `again` or for the first time; `passed_bytes` of them had been
    /// passed.
    pub(super) fn on_sent(&mut self, bytes: u64, again: bool, passed_bytes: u64) {
        if let Self::FreeBsd(freebsd) = self {
            freebsd.undo.on_resent(passed_bytes);
            freebsd.reverts.on_sent(bytes, again);
        }
    }

    /// How bursts are spread, where they are.
    pub(super) fn burst(&mut self) -> Option<&mut Burst> {
        if let Self::FreeBsd(freebsd) = self { Some(&mut freebsd.burst) } else { None }
    }

    /// Are calls held back after a burst, for all that is known?
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::FreeBsd(freebsd) if freebsd.burst.held_until().is_some())
    }

    /// The least round trip, or else this, and the shortest wait, where bursts are spread.
    pub(super) fn road(&self, srtt: Duration) -> Option<(Duration, Duration)> {
        let Self::FreeBsd(freebsd) = self else { return None };
        Some((freebsd.least.unwrap_or(srtt), freebsd.rule.thresh.least_wait))
    }

    /// Segments of unused credit that a recovery leaves behind.
    pub(super) fn addback(&self) -> u64 {
        match self {
            Self::FreeBsd(freebsd) => u64::from(freebsd.rule.addback),
            Self::Rfc(_) | Self::Linux(_) => 0,
        }
    }

    /// Nothing is under way, or a probe is due: duplicates tell nothing any more.
    pub(super) fn forget_duplicates(&mut self) {
        if let Self::FreeBsd(freebsd) = self {
            freebsd.reverts.forget();
        }
    }

    /// Looks for losses.
    pub(super) fn detect(
        &mut self,
        map: &mut SendMap,
        standing: &Standing,
        srtt: Option<Duration>,
    ) -> Found {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.detect_loss(map, standing),
            Self::FreeBsd(freebsd) => freebsd.look(map, srtt, standing.now),
        }
    }

    /// FreeBSD: the packet sent longest ago, if it is lost now. Other systems mark what is lost.
    pub(super) fn overdue(
        &mut self,
        map: &mut SendMap,
        srtt: Option<Duration>,
        now: Instant,
    ) -> Option<Piece> {
        let Self::FreeBsd(freebsd) = self else { return None };
        if freebsd.look(map, srtt, now).packets == 0 {
            return None;
        }
        map.oldest().copied()
    }

    /// The timer fired: what of the flight is lost. FreeBSD takes all of it for lost
    /// (rack_remxt_tmr).
    pub(super) fn on_timeout(&mut self, map: &mut SendMap, standing: &Standing) {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => {
                rack.on_timeout(map, standing);
            }
            Self::FreeBsd(freebsd) => {
                freebsd.undo.end();
                freebsd.reverts.forget();
                map.lose_all();
            }
        }
    }

    /// Round trip of the packet judged newest.
    pub(super) fn rack_rtt(&self) -> Duration {
        match self {
            Self::Rfc(rack) | Self::Linux(rack) => rack.rtt(),
            Self::FreeBsd(freebsd) => freebsd.latest.1,
        }
    }

    /// How sending is held back in a recovery that begins with this flight and window; `unacked` bytes
    /// had been sent beyond what was acknowledged before.
    pub(super) fn budget(&self, flight: &Sums, unacked: u64, window: u64, mss: u64) -> Budget {
        match self {
            Self::Rfc(_) => Budget::Rfc(Prr9937::begin(&Flight {
                outstanding: flight.all.bytes,
                sacked: flight.sacked.bytes,
                newly_sacked: 0,
                newly_acked: 0,
            })),
            Self::Linux(_) => Budget::Linux(PrrLinux::begin(window / mss)),
            // rack_cong_signal runs before snd_una moves.
            Self::FreeBsd(_) => Budget::FreeBsd(PrrRack::begin(unacked, mss)),
        }
    }
}

impl FreeBsd {
    #[inline(never)]
    fn on_reported(&mut self, piece: &Piece, at: &Moment) -> bool {
        self.time(piece, false, at.now);
        if piece.passed() {
            self.rack.on_reordering(at.now);
        }
        let arrival = self.undo.on_arrival(&Arrived::of(piece), false, at.srtt, at.now);
        if arrival != Arrival::Ordinary {
            self.rack.on_reordering(at.now);
        }
        arrival == Arrival::Ordinary
    }

    #[inline(never)]
    fn on_acked(&mut self, piece: &Piece, echo_older: bool, at: &Moment) -> Option<u64> {
        self.time(piece, echo_older, at.now);
        if piece.passed() {
            self.rack.on_reordering(at.now);
            self.reverts.on_passed_acked();
            return None;
        }
        let arrival = self.undo.on_arrival(&Arrived::of(piece), true, at.srtt, at.now);
        if arrival != Arrival::Ordinary {
            self.rack.on_reordering(at.now);
        }
        match arrival {
            Arrival::Undone { ssthresh } => {
                self.reverts.forget();
                Some(ssthresh)
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn look(&mut self, map: &mut SendMap, srtt: Option<Duration>, now: Instant) -> Found {
        let rtt = RackFreeBsd::rtt(self.latest.1, srtt);
        let thresh = self.rack.thresh(rtt, now);
        self.rack.look(map, true, 0, thresh, now)
    }

    /// rack_update_rtt: the round trip of the packet sent last, of those sent at once that of the
    /// first to be delivered. One sent again tells nothing if its original may have arrived: the
    /// echo is older, or it came back sooner than any packet sent once.
    fn time(&mut self, piece: &Piece, echo_older: bool, now: Instant) {
        let rtt = now.since(piece.sent_at()).max(Duration::from_micros(1));
        if piece.transmissions() == 1 {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        } else if echo_older || self.least.is_none_or(|least| rtt < least) {
            return;
        }
        let sent_at = piece.sent_at().as_nanos() / 1_000;
        if sent_at > self.latest.0 {
            self.latest = (sent_at, rtt);
        }
    }
}
