//! RACK: losses judged by the time packets were sent.
//!
//! Source: RFC 8985 section 6, with the switches in which Linux 6.18 differs (tcp_recovery.c). FreeBSD's
//! own threshold is in [`crate::rack_freebsd`].

use units::{Duration, Instant, Offset};

use crate::sendmap::{Piece, Row, SendMap};

/// Recoveries for which a widened window is kept (section 6.2 step 4; `TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u8 = 16;
/// Packets reported that stand for a loss while no reordering is known (`DupThresh`).
const DUP_THRESHOLD: u64 = 3;

/// A packet that an acknowledgment or a block delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// When it left last.
    pub sent_at: Instant,
    /// Behind its last byte.
    pub end: Offset,
    /// It had been sent more than once.
    pub resent: bool,
    /// The acknowledgment echoes a timestamp older than its retransmission: it was the original that
    /// arrived.
    pub echo_older: bool,
}

impl Delivered {
    /// A piece that was delivered.
    pub fn of(piece: &Piece, echo_older: bool) -> Self {
        let resent = piece.transmissions() > 1;
        Self { sent_at: piece.sent_at(), end: piece.end(), resent, echo_older }
    }
}

/// Where the sender stands when losses are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Now.
    pub now: Instant,
    /// In recovery, from a loss or a timeout.
    pub in_recovery: bool,
    /// Least round trip measured lately.
    pub min_rtt: Duration,
    /// Smoothed round trip.
    pub srtt: Duration,
}

/// What came of looking for losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Packets newly lost.
    pub packets: u64,
    /// When to look again if nothing arrives: for the last of those that may still be lost.
    pub again_after: Option<Duration>,
}

/// The state of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Rack {
    /// When the packet sent last of those delivered had left (`RACK.xmit_ts`), and its end.
    newest: Option<(Instant, Offset)>,
    /// Its round trip (`RACK.rtt`).
    rtt: Duration,
    /// Something was delivered since losses were last looked for (`advanced`).
    advanced: bool,
    /// Highest byte delivered (`RACK.fack`).
    fack: Offset,
    reordering_seen: bool,
    /// Quarters of the least round trip; eight bits, as Linux keeps it.
    reo_wnd_mult: u8,
    reo_wnd_persist: u8,
    /// A round with a duplicate ends once something beyond this is acknowledged
    /// (`RACK.dsack_round`).
    dsack_round: Option<Offset>,
}

impl Rack {
    /// Nothing was delivered.
    pub const fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            advanced: false,
            fack: Offset(0),
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST,
            dsack_round: None,
        }
    }

    /// The same for a row of packets that were sent once and in this order: what lies between the
    /// first and the last tells nothing more.
    #[inline(always)]
    pub fn on_row_delivered(&mut self, row: &Row, now: Instant) {
        let last = row.last;
        self.reordering_seen |= row.first.end < self.fack;
        self.fack = self.fack.max(last.end);
        self.rtt = now.since(last.sent_at);
        self.advanced = true;
        self.newest = self.newest.max(Some((last.sent_at, last.end)));
    }

    /// Steps 1 to 3 for one packet that was delivered: the newest of them sets the clock, one below
    /// the highest, never sent again, shows reordering. Packets in the order they were sent, or any.
    pub fn on_delivered(&mut self, packet: &Delivered, now: Instant, min_rtt: Duration) {
        if packet.end > self.fack {
            self.fack = packet.end;
        } else if packet.end < self.fack && !packet.resent {
            self.reordering_seen = true;
        }
        let rtt = now.since(packet.sent_at);
        // Which of two transmissions was it? Not the second, if it came back impossibly soon.
        if packet.resent && (packet.echo_older || rtt < min_rtt) {
            return;
        }
        // Section 6.2 step 2 takes the round trip of every packet; the clock only moves on.
        self.rtt = rtt;
        self.advanced = true;
        if self.newest.is_none_or(|newest| newest < (packet.sent_at, packet.end)) {
            self.newest = Some((packet.sent_at, packet.end));
        }
    }

    /// Was anything delivered since this was last asked (`rack.advanced` of Linux)?
    pub const fn take_advanced(&mut self) -> bool {
        core::mem::replace(&mut self.advanced, false)
    }

    /// Round trip of the packet judged newest.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Reordering was seen in another way than by [`Rack::on_delivered`].
    pub const fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Has any packet overtaken another?
    pub const fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// The acknowledgment reports a duplicate: at most once per round the window widens by a quarter
    /// of the least round trip (step 4).
    pub fn on_duplicate(&mut self, snd_una: Offset, snd_max: Offset) {
        if self.dsack_round.is_some_and(|end| snd_una >= end) {
            self.dsack_round = None;
        }
        if self.dsack_round.is_none() {
            self.dsack_round = Some(snd_max);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = PERSIST;
        }
    }

    /// A recovery, or a timeout's, ended: after sixteen without a duplicate the window is as narrow as
    /// at first.
    pub fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// The reordering window (step 4, RACK_update_reo_wnd); `sacked` packets are reported.
    pub fn reo_wnd(&self, sacked: u64, standing: &Standing) -> Duration {
        if !self.reordering_seen && (standing.in_recovery || sacked >= DUP_THRESHOLD) {
            return Duration::ZERO;
        }
        let quarters = standing.min_rtt.as_nanos() / 4;
        let window = quarters.saturating_mul(u64::from(self.reo_wnd_mult));
        Duration::from_nanos(window).min(standing.srtt)
    }

    /// Step 5 (RACK_detect_loss): packets sent before the newest delivered are lost once its round trip
    /// and the window have passed since.
    pub fn detect_loss(&self, map: &mut SendMap, standing: &Standing) -> Found {
        let Some((sent_at, end)) = self.newest else { return Found::default() };
        map.pass(sent_at, end);
        let allowed = self.rtt + self.reo_wnd(map.sums().sacked.packets, standing);
        let expired = |piece: &Piece| piece.sent_at() + allowed <= standing.now;
        let (packets, newest) = map.lose_passed(expired);
        let again_after = newest.map(|piece| (piece.sent_at() + allowed).since(standing.now));
        Found { packets, again_after }
    }

    /// Section 6.3: on a timeout the first packet is lost, others only if their time is over; returns
    /// how many.
    pub fn on_timeout(&self, map: &mut SendMap, standing: &Standing) -> u64 {
        let allowed = self.rtt + self.reo_wnd(map.sums().sacked.packets, standing);
        let first = map.first().map(Piece::start);
        let mut lost = u64::from(first.is_some_and(|first| map.lose(first)));
        while map.oldest().is_some_and(|piece| piece.sent_at() + allowed <= standing.now) {
            lost += u64::from(map.lose_oldest().is_some());
        }
        lost
    }
}

impl Default for Rack {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
