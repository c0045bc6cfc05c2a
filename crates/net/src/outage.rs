//! A period in which the path passes no packet.

use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

/// Treatment of packets that arrive during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageMode {
    /// They are dropped.
    Drop,
    /// They are held and leave together, in order, when it ends.
    Hold,
}

/// Passes no packet from `from` up to but not including `until`, once or periodically.
#[derive(Debug, Clone)]
pub struct Outage {
    from: Instant,
    until: Instant,
    period: Option<Duration>,
    mode: OutageMode,
    held: VecDeque<PacketId>,
}

impl Outage {
    /// Creates an outage.
    pub const fn new(from: Instant, until: Instant, during: OutageMode) -> Self {
        Self { from, until, period: None, mode: during, held: VecDeque::new() }
    }

    /// Repeats the outage each `period`, which is longer than the outage.
    #[must_use]
    pub fn repeated(self, period: Option<Duration>) -> Self {
        Self { period, ..self }
    }

    /// Moves a periodic outage to the last that has begun. Packets held in the one before have left
    /// by then: an outage ends before the next begins.
    fn advance(&mut self, now: Instant) {
        if let Some(period) = self.period
            && now >= self.from + period
        {
            let rounds = now.since(self.from).as_nanos() / period.as_nanos();
            let shift = period.saturating_mul(rounds);
            (self.from, self.until) = (self.from + shift, self.until + shift);
        }
    }
}

impl Element for Outage {
    fn accept(&mut self, now: Instant, packet: PacketId, _: &PacketView) -> PacketVerdict {
        self.advance(now);
        let passes = now < self.from || now >= self.until;
        match self.mode {
            OutageMode::Drop if !passes => PacketVerdict::Dropped,
            // At the very end of the outage, the held packets leave first.
            OutageMode::Hold if !passes || !self.held.is_empty() => {
                self.held.push_back(packet);
                PacketVerdict::Queued
            }
            _ => PacketVerdict::Forwarded,
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        (!self.held.is_empty()).then_some(self.until)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        if now < self.until { None } else { self.held.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

    fn verdicts(outage: &mut Outage, at: [u64; 4]) -> [PacketVerdict; 4] {
        at.map(|ns| outage.accept(Instant::from_nanos(ns), PacketId(ns as u32), &data(1_500)))
    }

    #[test]
    fn the_end_does_not_belong_to_it() {
        let (from, until) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let mut outage = Outage::new(from, until, OutageMode::Drop);
        let (lost, passed) = (PacketVerdict::Dropped, PacketVerdict::Forwarded);
        assert_eq!(verdicts(&mut outage, [9, 10, 19, 20]), [passed, lost, lost, passed]);
        assert_eq!(outage.next_wake(), None);
    }

    #[test]
    fn held_packets_leave_at_the_end_in_order() {
        let (from, until) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let mut outage = Outage::new(from, until, OutageMode::Hold);
        let (held, passed) = (PacketVerdict::Queued, PacketVerdict::Forwarded);
        assert_eq!(verdicts(&mut outage, [9, 10, 19, 20]), [passed, held, held, held]);
        assert_eq!(outage.wake(Instant::from_nanos(19)), None);
        assert_eq!(drain(&mut outage), [(20, 10), (20, 19), (20, 20)]);
        assert_eq!(verdicts(&mut outage, [20, 21, 22, 23]), [passed; 4]);
    }

    #[test]
    fn a_periodic_outage_returns() {
        let (from, until) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let every =
            |during| Outage::new(from, until, during).repeated(Some(Duration::from_nanos(100)));
        let (lost, passed) = (PacketVerdict::Dropped, PacketVerdict::Forwarded);
        let mut outage = every(OutageMode::Drop);
        assert_eq!(verdicts(&mut outage, [9, 10, 19, 20]), [passed, lost, lost, passed]);
        assert_eq!(verdicts(&mut outage, [109, 110, 119, 120]), [passed, lost, lost, passed]);
        assert_eq!(verdicts(&mut outage, [509, 510, 611, 620]), [passed, lost, lost, passed]);
        let mut outage = every(OutageMode::Hold);
        assert_eq!(verdicts(&mut outage, [209, 210, 219, 219])[3], PacketVerdict::Queued);
        assert_eq!(drain(&mut outage), [(220, 210), (220, 219), (220, 219)]);
    }
}
