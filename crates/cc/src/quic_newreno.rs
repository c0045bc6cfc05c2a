//! QUIC's NewReno: RFC 9002 section 7 and appendix B, and INET's implementation
//! (NewRenoCongestionController.cc, commits 58f2b31929 and 6cf5aaa910 of 2025).
//!
//! QUIC works packet by packet: the send time of a packet, not a stream offset, determines whether
//! it belongs to a recovery. So this is not the [`Controller`](crate::Controller) of TCP stacks,
//! which refers to `snd_una`; the events here are those of appendix B. Bytes in flight are counted
//! by the sender, as packets with their QUIC headers.

mod params;
#[cfg(test)]
mod tests;

pub use params::{
    ByteCounterRule, IncreaseTrigger, QuicAvoidance, QuicGrowthRule, QuicNewRenoParams,
};

use units::{Bytes, Instant};

use crate::contract::{Control, Growth, WindowChange};

/// A packet in flight was acknowledged for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketAcked {
    /// Time of transmission.
    pub sent: Instant,
    /// Its place in the order in which the connection's packets are sent.
    pub order: u64,
    /// Size in bytes, QUIC header included.
    pub size: u64,
    /// Nothing is in flight any more.
    pub flight_is_empty: bool,
    /// The sender is limited by the application or flow control, not by the window (section 7.8).
    pub underused: bool,
    /// Bytes in flight before the ACK frame, and the losses that it revealed, were processed.
    pub prior_flight: u64,
}

/// Packets in flight were detected as lost at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketsLost {
    /// Time of detection.
    pub now: Instant,
    /// Send time of the packet with the largest number.
    pub sent: Instant,
    /// Its place in the order in which the connection's packets are sent.
    pub order: u64,
    /// That of the last packet sent so far.
    pub latest: u64,
    /// They establish persistent congestion (section 7.6).
    pub persistent: bool,
    /// Their number.
    pub packets: u64,
}

/// The state before a reduction that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QuicUndo {
    cwnd: u64,
    ssthresh: Option<u64>,
    partial: u64,
    recovery_start: Option<Instant>,
    cutback: Option<u64>,
    /// Packets lost since whose loss has not proved spurious.
    losses: u64,
}

/// NewReno of one QUIC connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuicNewReno {
    params: QuicNewRenoParams,
    /// `max_datagram_size`.
    datagram: u64,
    cwnd: u64,
    ssthresh: Option<u64>,
    /// `congestion_recovery_start_time`.
    recovery_start: Option<Instant>,
    /// Place of the last packet sent before the recovery began (`largestSentAtLastCutback`).
    cutback: Option<u64>,
    /// Largest place of an acknowledged packet.
    largest_acked: u64,
    /// No packet sent after the recovery began has been acknowledged yet.
    in_recovery: bool,
    /// `partialBytesAcked`.
    partial: u64,
    /// Remainder of the divisions of [`QuicAvoidance::Fraction`].
    remainder: u64,
    /// One packet may be sent despite a full window.
    extra_packet: bool,
    undo: Option<QuicUndo>,
}

impl QuicNewReno {
    /// A controller in slow start, for datagrams of `datagram` bytes.
    pub fn new(params: QuicNewRenoParams, datagram: u32) -> Self {
        let cwnd = params.initial_window(datagram);
        Self {
            params,
            datagram: u64::from(datagram),
            cwnd,
            ssthresh: None,
            recovery_start: None,
            cutback: None,
            largest_acked: 0,
            in_recovery: false,
            partial: 0,
            remainder: 0,
            extra_packet: false,
            undo: None,
        }
    }

    /// Processes an acknowledged packet and grows the window where the rules allow it
    /// (`OnPacketAcked`).
    pub fn on_packet_acked(&mut self, acked: &PacketAcked) -> WindowChange {
        if acked.flight_is_empty && self.params.counter.cleared_when_empty {
            self.partial = 0;
        }
        self.largest_acked = self.largest_acked.max(acked.order);
        if self.belongs_to_recovery(acked.sent, self.largest_acked) {
            if self.params.counter.counts_in_recovery && !self.in_slow_start() {
                self.partial += acked.size;
            }
            return WindowChange::None;
        }
        let recovered = core::mem::take(&mut self.in_recovery);
        let may_grow = match self.params.growth {
            QuicGrowthRule::Limited => !acked.underused,
            QuicGrowthRule::InFlight { datagrams } => self.is_used(acked.prior_flight, datagrams),
        };
        let grown = if may_grow { self.grow(acked.size) } else { None };
        match grown {
            Some(growth) => WindowChange::Grew(growth),
            None if recovered => WindowChange::RecoveryEnded,
            None => WindowChange::None,
        }
    }

    /// Processes losses (`OnPacketsLost`).
    pub fn on_packets_lost(&mut self, lost: &PacketsLost) -> WindowChange {
        let mut change = WindowChange::None;
        if self.belongs_to_recovery(lost.sent, lost.order) {
            let is_older =
                |undo: &QuicUndo| undo.cutback.is_some_and(|before| lost.order <= before);
            if let Some(undo) = self.undo.as_mut().filter(|undo| !is_older(undo)) {
                undo.losses += lost.packets;
            }
        } else {
            self.undo = self.params.undoes.then_some(QuicUndo {
                cwnd: self.cwnd,
                ssthresh: self.ssthresh,
                partial: self.partial,
                recovery_start: self.recovery_start,
                cutback: self.cutback,
                losses: lost.packets,
            });
            self.recovery_start = Some(lost.now);
            self.cutback = Some(lost.latest);
            self.in_recovery = true;
            let kept = units::ratio::scaled(self.cwnd, u64::from(self.params.beta), 100);
            self.cwnd = kept.max(self.minimum());
            self.ssthresh = Some(if self.params.threshold_has_floor { self.cwnd } else { kept });
            self.extra_packet = self.params.one_packet_on_entry;
            if self.params.counter.cleared_at_loss {
                self.partial = 0;
            }
            change = WindowChange::RecoveryBegan;
        }
        if lost.persistent {
            self.cwnd = self.minimum();
            (self.recovery_start, self.cutback) = (None, None);
            self.in_recovery = false;
            self.undo = None;
            change = WindowChange::Collapsed;
        }
        change
    }

    /// Processes the acknowledgment of a packet with this place that had been declared lost: the reduction is undone with the
    /// last of those that caused it, unless the window has grown beyond (quic-go, `OnSpuriousLoss`).
    pub fn on_spurious_loss(&mut self, order: u64) -> WindowChange {
        let is_counted = |undo: &&mut QuicUndo| undo.cutback.is_none_or(|before| order > before);
        if self.cutback.is_none_or(|cutback| order > cutback) {
            return WindowChange::None;
        }
        let Some(undo) = self.undo.as_mut().filter(is_counted) else { return WindowChange::None };
        undo.losses = undo.losses.saturating_sub(1);
        if undo.losses > 0 {
            return WindowChange::None;
        }
        let before = *undo;
        self.undo = None;
        if self.cwnd > before.cwnd {
            return WindowChange::None;
        }
        (self.cwnd, self.ssthresh, self.partial) = (before.cwnd, before.ssthresh, before.partial);
        (self.recovery_start, self.cutback) = (before.recovery_start, before.cutback);
        self.in_recovery = false;
        WindowChange::Undone
    }

    /// Sets `max_datagram_size`; a window that is less than the new minimum becomes it. quic-go (`SetMaxDatagramSize`)
    /// raises only one that is the old minimum.
    pub fn set_datagram(&mut self, datagram: u32) {
        self.datagram = u64::from(datagram);
        self.cwnd = self.cwnd.max(self.minimum());
    }

    /// True if one packet may be sent despite a full window; the call consumes the permission.
    pub fn take_extra_packet(&mut self) -> bool {
        core::mem::take(&mut self.extra_packet)
    }

    /// The window and the threshold.
    pub fn control(&self) -> Control {
        Control { window: Bytes(self.cwnd), ssthresh: self.ssthresh.map(Bytes), pacing: None }
    }

    /// True if the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Ends slow start with the present window.
    pub const fn leave_slow_start(&mut self) {
        self.ssthresh = Some(self.cwnd);
    }

    /// True during a recovery period.
    pub const fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    /// Bytes counted towards the next datagram of growth (`partialBytesAcked`).
    pub const fn partial_bytes_acked(&self) -> Bytes {
        Bytes(self.partial)
    }

    const fn minimum(&self) -> u64 {
        self.params.minimum_window as u64 * self.datagram
    }

    /// `InCongestionRecovery`.
    fn belongs_to_recovery(&self, sent: Instant, order: u64) -> bool {
        if self.params.recovery_by_order {
            return self.cutback.is_some_and(|cutback| order <= cutback);
        }
        self.recovery_start.is_some_and(|start| {
            if self.params.start_belongs_to_recovery { sent <= start } else { sent < start }
        })
    }

    /// True if bytes in flight leave no more than these datagrams of the window, or exceed half of it in slow start.
    fn is_used(&self, flight: u64, datagrams: u64) -> bool {
        let half = self.in_slow_start() && flight > self.cwnd / 2;
        half || self.cwnd.saturating_sub(flight) <= datagrams * self.datagram
    }

    fn grow(&mut self, size: u64) -> Option<Growth> {
        let counts_packets = self.params.avoidance == QuicAvoidance::WindowOfPackets;
        if self.in_slow_start() {
            self.cwnd += if counts_packets { self.datagram } else { size };
            self.partial = 0;
            return Some(Growth::SlowStart);
        }
        let before = self.cwnd;
        match self.params.avoidance {
            QuicAvoidance::Fraction { carries } => {
                let share = self.datagram * size + if carries { self.remainder } else { 0 };
                self.cwnd += share / before;
                self.remainder = share % before;
            }
            QuicAvoidance::Counted { trigger } => {
                self.partial += size;
                let due = match trigger {
                    IncreaseTrigger::LastDatagram => {
                        self.partial > before - self.datagram.min(before)
                    }
                    IncreaseTrigger::WholeWindow => self.partial >= before,
                };
                if due {
                    self.cwnd += self.datagram;
                    self.partial = self.partial.saturating_sub(self.cwnd);
                }
            }
            QuicAvoidance::WindowOfPackets => {
                // The count of packets is one of datagrams.
                self.partial += self.datagram;
                if self.partial >= before / self.datagram * self.datagram {
                    self.partial = 0;
                    self.cwnd += self.datagram;
                }
            }
            QuicAvoidance::WindowOfBytes => {
                self.partial += size;
                if self.partial >= before {
                    self.partial -= before;
                    self.cwnd += self.datagram;
                }
            }
        }
        (self.cwnd > before).then_some(Growth::Avoidance)
    }
}
