//! RACK: time-based loss detection.
//!
//! Source: RFC 8985 section 6, with switches for the differences of Linux 6.18 (tcp_recovery.c).
//! FreeBSD's own threshold is in [`crate::rack_freebsd`].

use core::hint::cold_path;

use units::{Duration, Instant, Offset};

use crate::sendmap::{DeliveredRun, SendMap, SentSegment};

/// Recoveries for which a widened window is kept (section 6.2 step 4; `TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u8 = 16;
/// SACKed packets that indicate a loss while no reordering was seen (`DupThresh`).
const DUP_THRESHOLD: u64 = 3;

/// A packet that an acknowledgment or a SACK block delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredSegment {
    /// Time of its last transmission.
    pub sent_at: Instant,
    /// The byte following its last.
    pub end: Offset,
    /// It was retransmitted.
    pub retransmitted: bool,
    /// The acknowledgment echoes a timestamp older than the retransmission: the original arrived.
    pub echo_older: bool,
}

impl DeliveredSegment {
    /// Describes a sent segment that was delivered.
    pub fn of(segment: &SentSegment, echo_older: bool) -> Self {
        let retransmission = segment.transmissions() > 1;
        Self {
            sent_at: segment.sent_at(),
            end: segment.end(),
            retransmitted: retransmission,
            echo_older,
        }
    }
}

/// The sender's state at loss detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackInput {
    /// Current time.
    pub now: Instant,
    /// In recovery, from a loss or a timeout.
    pub in_recovery: bool,
    /// Recent minimum RTT.
    pub min_rtt: Duration,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// The result of loss detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RackLosses {
    /// Packets newly marked lost.
    pub packets: u64,
    /// Timeout of the reordering timer: when the last of the packets that may still be lost
    /// expires.
    pub reo_timeout: Option<Duration>,
}

/// The RACK state of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Rack {
    /// Send time of the most recently sent packet delivered (`RACK.xmit_ts`), and its end.
    newest: Option<(Instant, Offset)>,
    /// Its RTT (`RACK.rtt`).
    rtt: Duration,
    /// A packet was delivered since the last loss detection (`advanced`).
    advanced: bool,
    /// Highest byte delivered (`RACK.fack`).
    fack: Offset,
    reordering_seen: bool,
    /// Quarters of the minimum RTT; eight bits, as in Linux.
    reo_wnd_mult: u8,
    reo_wnd_persist: u8,
    rule: DsackRule,
}

/// How D-SACKs widen the reordering window.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum DsackRule {
    /// RFC 8985: a round with a D-SACK ends once data beyond this is acknowledged (`RACK.dsack_round`).
    Rfc { round: Option<Offset> },
    /// Linux, whose times are in whole microseconds: a D-SACK is to widen the window (`rack.dsack_seen`), and when the
    /// window was last widened (`rack.last_delivered`).
    Linux { seen: bool, widened_at: Instant },
}

impl Rack {
    /// The state before any delivery.
    pub const fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            advanced: false,
            fack: Offset(0),
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST,
            rule: DsackRule::Rfc { round: None },
        }
    }

    /// The same, by Linux's rules.
    pub const fn linux() -> Self {
        Self { rule: DsackRule::Linux { seen: false, widened_at: Instant::ZERO }, ..Self::new() }
    }

    const fn is_linux(&self) -> bool {
        matches!(self.rule, DsackRule::Linux { .. })
    }

    /// `at` as the system's clock shows it.
    #[inline(always)]
    const fn clock(&self, at: Instant) -> Instant {
        if self.is_linux() {
            Instant::from_nanos(at.as_nanos() - at.as_nanos() % 1_000)
        } else {
            at
        }
    }

    /// Like [`Rack::on_delivered`] for a run of packets sent once and in this order: those between
    /// the first and the last add no information.
    #[inline(always)]
    pub fn on_run_delivered(&mut self, row: &DeliveredRun, now: Instant) {
        let last = row.last;
        self.reordering_seen |= row.first.end < self.fack;
        self.fack = self.fack.max(last.end);
        self.rtt = self.clock(now).since(self.clock(last.sent_at));
        self.advanced = true;
        self.newest = self.newest.max(Some((last.sent_at, last.end)));
    }

    /// Takes the round-trip time of a delivered packet; returns whether it has one.
    pub fn take_rtt(&mut self, packet: &DeliveredSegment, now: Instant, min_rtt: Duration) -> bool {
        let rtt = self.clock(now).since(self.clock(packet.sent_at));
        // Ambiguous: not the retransmission if the RTT would be below the minimum. The kernel
        // compares its timestamps of whole microseconds; a paced packet's may be of a later time, which
        // counts as zero (tcp_stamp_us_delta).
        let whole_us = (now.as_nanos() / 1_000).saturating_sub(packet.sent_at.as_nanos() / 1_000);
        let below = whole_us < min_rtt.as_micros();
        if packet.retransmitted && (packet.echo_older || below) {
            return false;
        }
        // Section 6.2 step 2 takes the RTT of every packet; the clock only advances.
        self.rtt = rtt;
        self.advanced = true;
        true
    }

    /// Steps 1 to 3 for one delivered packet: the most recently sent one sets the clock; one below
    /// the highest that was never retransmitted shows reordering. Packets may come in any order. Returns
    /// whether its round-trip time was taken.
    pub fn on_delivered(
        &mut self,
        packet: &DeliveredSegment,
        now: Instant,
        min_rtt: Duration,
    ) -> bool {
        if packet.end > self.fack {
            self.fack = packet.end;
        } else if packet.end < self.fack && !packet.retransmitted {
            self.reordering_seen = true;
        }
        let taken = self.take_rtt(packet, now, min_rtt);
        if taken && self.newest.is_none_or(|newest| newest < (packet.sent_at, packet.end)) {
            self.newest = Some((packet.sent_at, packet.end));
        }
        taken
    }

    /// True if a packet was delivered since the last call (`rack.advanced` of Linux).
    pub const fn take_advanced(&mut self) -> bool {
        core::mem::replace(&mut self.advanced, false)
    }

    /// RTT of the packet considered most recent.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Send time and end of the most recently sent packet delivered (`RACK.xmit_ts`,
    /// `RACK.end_seq`).
    pub const fn newest(&self) -> Option<(Instant, Offset)> {
        self.newest
    }

    /// Reordering was detected in another way than by [`Rack::on_delivered`].
    pub const fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Linux: reordering was seen as `tp->reord_seen` counts it, D-SACKs included.
    pub const fn set_reordering_seen(&mut self, seen: bool) {
        self.reordering_seen = seen;
    }

    /// True once reordering was seen.
    pub const fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// The acknowledgment has a D-SACK: at most once per round the window widens by a quarter of
    /// the minimum RTT (step 4).
    pub fn on_duplicate(&mut self, snd_una: Offset, snd_max: Offset) {
        let DsackRule::Rfc { round } = &mut self.rule else { return };
        if round.is_none_or(|end| snd_una >= end) {
            *round = Some(snd_max);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = PERSIST;
        }
    }

    /// Linux: an acknowledgment begins whose D-SACK is to widen the window (`rack.dsack_seen` of
    /// tcp_dsack_seen).
    pub const fn on_dsack_seen(&mut self) {
        if let DsackRule::Linux { seen, .. } = &mut self.rule {
            *seen = true;
        }
    }

    /// Linux: does a D-SACK wait for an acknowledgment that delivers a packet?
    pub const fn dsack_pending(&self) -> bool {
        matches!(self.rule, DsackRule::Linux { seen: true, .. })
    }

    /// Linux: the packets that an acknowledgment delivers were processed (tcp_rack_update_reo_wnd). A
    /// D-SACK widens the window unless the latest of them was sent, at `sent_at` (`prior_delivered` of
    /// the rate sample), before it was last widened; with none it waits.
    #[inline]
    pub fn update_reo_wnd(&mut self, sent_at: Option<Instant>, now: Instant) {
        if let DsackRule::Linux { seen: pending @ true, widened_at } = &mut self.rule {
            cold_path();
            let Some(sent_at) = sent_at else { return };
            *pending = false;
            if sent_at >= *widened_at {
                self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
                *widened_at = now;
                self.reo_wnd_persist = PERSIST;
            }
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// A recovery from loss or timeout ended: after sixteen without a D-SACK the window returns to
    /// its initial width.
    pub fn on_recovered(&mut self) {
        self.on_linux_recovered();
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Linux: the same; the width changes at the next update.
    pub const fn on_linux_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// Linux: a window reduction was undone: losses are detected again (`rack.advanced` in tcp_undo_cwnd_reduction).
    pub const fn on_undo(&mut self) {
        self.advanced = true;
    }

    /// Linux: D-SACKs have undone a recovery (tcp_try_undo_dsack).
    pub fn on_dsack_undo(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(PERSIST);
    }

    /// The reordering window (step 4, RACK_update_reo_wnd); `sacked` is the number of SACKed
    /// packets.
    pub fn reo_wnd(&self, sacked: u64, standing: &RackInput) -> Duration {
        if !self.reordering_seen && (standing.in_recovery || sacked >= DUP_THRESHOLD) {
            return Duration::ZERO;
        }
        let quarter = match self.is_linux() {
            true => Duration::from_micros(standing.min_rtt.as_micros() / 4),
            false => Duration::from_nanos(standing.min_rtt.as_nanos() / 4),
        };
        quarter.saturating_mul(u64::from(self.reo_wnd_mult)).min(standing.srtt)
    }

    /// Step 5 (RACK_detect_loss): packets sent before the most recently sent delivered one are lost
    /// once its RTT and the window have elapsed since their transmission.
    pub fn detect_loss(&self, map: &mut SendMap, standing: &RackInput) -> RackLosses {
        let Some((sent_at, end)) = self.newest else { return RackLosses::default() };
        map.pass(sent_at, end);
        let allowed = self.rtt + self.reo_wnd(map.sums().sacked.packets, standing);
        let now = self.clock(standing.now);
        let expires = |segment: &SentSegment| self.clock(segment.sent_at()) + allowed;
        let (packets, newest) = map.mark_passed_lost(|segment| expires(segment) <= now);
        let reo_timeout = newest.map(|segment| expires(segment).since(now));
        RackLosses { packets, reo_timeout }
    }

    /// Section 6.3: on a timeout the first packet is lost, others only if their time has expired;
    /// returns the number of packets marked lost.
    pub fn on_timeout(&self, map: &mut SendMap, standing: &RackInput) -> u64 {
        let allowed = match self.is_linux() {
            // tcp_timeout_mark_lost
            true => self.rtt,
            false => self.rtt + self.reo_wnd(map.sums().sacked.packets, standing),
        };
        let now = self.clock(standing.now);
        let expired = |segment: &SentSegment| self.clock(segment.sent_at()) + allowed <= now;
        let first = map.first().map(SentSegment::start);
        let mut lost = u64::from(first.is_some_and(|first| map.lose(first)));
        while map.oldest().is_some_and(expired) {
            lost += u64::from(map.mark_oldest_lost().is_some());
        }
        lost + map.mark_unlisted_lost(expired)
    }
}

impl Default for Rack {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
