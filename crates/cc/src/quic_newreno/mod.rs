//! QUIC's NewReno: RFC 9002 section 7 and appendix B, and INET's reading of it
//! (NewRenoCongestionController.cc, commits 58f2b31929 and 6cf5aaa910 of 2025).
//!
//! QUIC judges packet by packet: whether one belongs to a recovery is told by when it left, not by
//! a place in the stream. So this is not the [`Controller`](crate::Controller) of TCP stacks, which
//! speaks of `snd_una`; the events here are those of appendix B. Bytes in flight are the
//! sender's, packets with their QUIC headers.

mod params;
#[cfg(test)]
mod tests;

pub use params::{Avoidance, Counter, Params, Trigger};

use units::{Bytes, Instant};

use crate::contract::{Change, Control, Growth};

/// A packet in flight was acknowledged for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketAcked {
    /// When it left.
    pub sent: Instant,
    /// Its bytes, QUIC header included.
    pub size: u64,
    /// Nothing is in flight any more.
    pub flight_is_empty: bool,
    /// The application or flow control, not the window, holds the sender back (section 7.8).
    pub underused: bool,
}

/// Packets in flight were lost, found at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketsLost {
    /// The moment.
    pub now: Instant,
    /// When the one with the largest number left.
    pub sent: Instant,
    /// They prove persistent congestion (section 7.6).
    pub persistent: bool,
}

/// NewReno of one QUIC connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuicNewReno {
    params: Params,
    /// `max_datagram_size`.
    datagram: u64,
    cwnd: u64,
    ssthresh: Option<u64>,
    /// `congestion_recovery_start_time`.
    recovery_start: Option<Instant>,
    /// No packet that left after the recovery began has been acknowledged yet.
    in_recovery: bool,
    /// `partialBytesAcked`.
    partial: u64,
    /// What the divisions of [`Avoidance::Fraction`] left.
    remainder: u64,
    /// A packet may leave in spite of a full window.
    one_packet: bool,
}

impl QuicNewReno {
    /// A controller in slow start, for datagrams of `datagram` bytes.
    pub fn new(params: Params, datagram: u32) -> Self {
        let datagram = u64::from(datagram);
        // Section 7.2: ten datagrams, but no more than 14,720 bytes, unless two are more.
        let bound = (2 * datagram).max(14_720);
        let cwnd = (u64::from(params.initial_window) * datagram).min(bound);
        Self {
            params,
            datagram,
            cwnd,
            ssthresh: None,
            recovery_start: None,
            in_recovery: false,
            partial: 0,
            remainder: 0,
            one_packet: false,
        }
    }

    /// Counts an acknowledged packet and grows the window where the rules allow it
    /// (`OnPacketAcked`).
    pub fn on_packet_acked(&mut self, acked: &PacketAcked) -> Change {
        if acked.flight_is_empty && self.params.counter.cleared_when_empty {
            self.partial = 0;
        }
        if self.belongs_to_recovery(acked.sent) {
            if self.params.counter.counts_in_recovery && !self.in_slow_start() {
                self.partial += acked.size;
            }
            return Change::None;
        }
        let recovered = core::mem::take(&mut self.in_recovery);
        let grown = if acked.underused { None } else { self.grow(acked.size) };
        match grown {
            Some(growth) => Change::Grew(growth),
            None if recovered => Change::RecoveryEnded,
            None => Change::None,
        }
    }

    /// Answers losses (`OnPacketsLost`).
    pub fn on_packets_lost(&mut self, lost: &PacketsLost) -> Change {
        let mut change = Change::None;
        if !self.belongs_to_recovery(lost.sent) {
            self.recovery_start = Some(lost.now);
            self.in_recovery = true;
            let kept = units::ratio::scaled(self.cwnd, u64::from(self.params.beta), 100);
            self.cwnd = kept.max(self.minimum());
            self.ssthresh = Some(if self.params.threshold_has_floor { self.cwnd } else { kept });
            self.one_packet = self.params.one_packet_on_entry;
            if self.params.counter.cleared_at_loss {
                self.partial = 0;
            }
            change = Change::RecoveryBegan;
        }
        if lost.persistent {
            self.cwnd = self.minimum();
            self.recovery_start = None;
            self.in_recovery = false;
            change = Change::Collapsed;
        }
        change
    }

    /// May one packet leave in spite of a full window? Asking uses the permission up.
    pub fn take_extra_packet(&mut self) -> bool {
        core::mem::take(&mut self.one_packet)
    }

    /// The window and the threshold.
    pub fn control(&self) -> Control {
        Control { window: Bytes(self.cwnd), ssthresh: self.ssthresh.map(Bytes), pacing: None }
    }

    /// Is the window below the threshold?
    pub fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Does a recovery period run?
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
    fn belongs_to_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| {
            if self.params.start_belongs_to_recovery { sent <= start } else { sent < start }
        })
    }

    fn grow(&mut self, size: u64) -> Option<Growth> {
        if self.in_slow_start() {
            self.cwnd += size;
            self.partial = 0;
            return Some(Growth::SlowStart);
        }
        let before = self.cwnd;
        match self.params.avoidance {
            Avoidance::Fraction { carries } => {
                let share = self.datagram * size + if carries { self.remainder } else { 0 };
                self.cwnd += share / before;
                self.remainder = share % before;
            }
            Avoidance::Counted { trigger } => {
                self.partial += size;
                let due = match trigger {
                    Trigger::LastDatagram => self.partial > before - self.datagram.min(before),
                    Trigger::WholeWindow => self.partial >= before,
                };
                if due {
                    self.cwnd += self.datagram;
                    self.partial = self.partial.saturating_sub(self.cwnd);
                }
            }
            Avoidance::WindowOfBytes => {
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
