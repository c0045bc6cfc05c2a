//! The model of a station: when each packet may leave, and whether there is room for it.
//!
//! A line is reckoned by busy periods, not packet by packet: within one that began at `s` the
//! packet that ends the first `b` bits is out at `s + floor(b / rate)`, whatever the sizes were.

mod service;

use std::collections::VecDeque;

use record::{PacketNumber, StationId};
use units::{Duration, Instant};

use service::Service;

use crate::law::{Hold, Law, Loss, Order, Room, Thinning};
use crate::violation::{Breach, Log, Subject};

const NANOS: u128 = 1_000_000_000;

#[derive(Debug, Clone)]
pub(crate) struct Station {
    id: StationId,
    law: Law,
    meter: Meter,
    /// In the order of arrival.
    held: VecDeque<Held>,
    /// IP bytes of all that is held.
    bytes: u64,
}

/// A connection and the end of it that a packet comes from.
pub(crate) type Way = (u32, u8);

/// What decides about the next departure.
#[derive(Debug, Clone)]
enum Meter {
    None,
    /// The busy period: its first moment and the bits it has taken in.
    Busy {
        since: Instant,
        bits: u128,
    },
    /// The bucket after the last departure, in billionths of a bit, and when that was.
    Bucket {
        level: u128,
        at: Instant,
    },
    /// A line whose next packet is not known before it leaves.
    Service(Service),
}

#[derive(Debug, Clone, Copy)]
struct Held {
    packet: PacketNumber,
    way: Way,
    size: u64,
    entered: Instant,
    earliest: Instant,
    latest: Instant,
}

impl Station {
    pub(crate) fn new(id: StationId, law: Law, traces: &[Vec<u32>]) -> Self {
        let meter = match law.hold {
            Hold::Exactly(_) | Hold::Between { .. } | Hold::Gate(_) => Meter::None,
            Hold::Line { .. } => Meter::Busy { since: Instant::ZERO, bits: 0 },
            Hold::Bucket { burst, .. } => {
                Meter::Bucket { level: billionths(burst.get()), at: Instant::ZERO }
            }
            Hold::Managed { line, .. } => Meter::Service(Service::new(line, traces)),
        };
        Self { id, law, meter, held: VecDeque::new(), bytes: 0 }
    }

    pub(crate) const fn law(&self) -> &Law {
        &self.law
    }

    /// A packet comes in.
    pub(crate) fn enter(&mut self, log: &mut Log, packet: PacketNumber, way: Way, size: u64) {
        let (now, station, about) = (log.now, self.id, Subject::Packet(packet));
        self.overdue(log);
        if !self.has_room(now, size) {
            log.note(about, Breach::NoRoom { station });
        }
        if self.in_outage(now) {
            log.note(about, Breach::PassedAnOutage { station });
        }
        let (earliest, latest) = self.leaves_between(now, size);
        self.held.push_back(Held { packet, way, size, entered: now, earliest, latest });
        self.bytes += size;
    }

    /// A packet is lost, `inside` or at the entrance; `bare`: it carried nothing but an
    /// acknowledgment.
    pub(crate) fn lose(
        &mut self,
        log: &mut Log,
        (packet, size): (PacketNumber, u64),
        bare: bool,
        inside: bool,
    ) {
        self.overdue(log);
        let may = match self.law.loss {
            Loss::Never => false,
            Loss::Any => !inside,
            Loss::BareAcks => bare,
            Loss::During(_) => !inside && self.in_outage(log.now),
            Loss::Thinned(thinning) => self.may_thin(log.now, thinning, inside),
        };
        if !may && (inside || self.has_room(log.now, size)) {
            log.note(Subject::Packet(packet), Breach::LostForNothing { station: self.id });
        }
        if inside {
            self.held.retain(|held| held.packet != packet);
            self.bytes -= size;
        }
    }

    /// May a queue lose a packet now, `inside` or as it comes, though there is room?
    fn may_thin(&self, now: Instant, thinning: Thinning, inside: bool) -> bool {
        let Meter::Service(service) = &self.meter else { return false };
        match thinning {
            Thinning::Full => false,
            Thinning::AtEntrance => !inside,
            Thinning::AtHead => inside && service.is_choosing(now),
            Thinning::PushOut => {
                let newest = self.held.back().map(|held| held.entered);
                // One is on the line.
                inside && (service.is_choosing(now) || (newest == Some(now) && self.held.len() > 1))
            }
        }
    }

    /// A packet goes out.
    pub(crate) fn leave(&mut self, log: &mut Log, packet: PacketNumber) {
        let (station, about) = (self.id, Subject::Packet(packet));
        let Some(place) = self.held.iter().position(|held| held.packet == packet) else { return };
        let way = self.held[place].way;
        let before = self.held.iter().take(place).find(|before| match self.law.order {
            Order::Kept => true,
            Order::KeptByFlow => before.way == way,
            Order::Free => false,
        });
        if let Some(before) = before {
            log.note(about, Breach::Overtook { station, before: before.packet });
        }
        let Some(held) = self.held.remove(place) else { return };
        self.bytes -= held.size;
        let held = match &mut self.meter {
            Meter::Service(service) => {
                let (begin, end) = service.leave(log.now, held.size);
                // What was not there when the line took its packet cannot have been taken.
                let earliest = if held.entered > begin { Instant::MAX } else { end };
                Held { earliest, latest: end, ..held }
            }
            _ => held,
        };
        if log.now < held.earliest {
            log.note(about, Breach::LeftEarly { station, due: held.earliest });
        } else if log.now > held.latest {
            log.note(about, Breach::LeftLate { station, due: held.latest });
        }
        self.overdue(log);
    }

    /// Who should have left by now and has not?
    pub(crate) fn overdue(&mut self, log: &mut Log) {
        let now = log.now;
        if let Meter::Service(service) = &mut self.meter {
            if let Some(first) = self.held.front()
                && let Some(due) = service.overdue(now)
            {
                let breach = Breach::Overdue { station: self.id, due };
                log.note(Subject::Packet(first.packet), breach);
            }
            return;
        }
        let Some(first) = self.held.front_mut().filter(|first| first.latest < now) else { return };
        let breach = Breach::Overdue { station: self.id, due: first.latest };
        log.note(Subject::Packet(first.packet), breach);
        // Told once.
        first.latest = Instant::from_nanos(u64::MAX);
    }

    fn in_outage(&self, now: Instant) -> bool {
        matches!(self.law.loss, Loss::During(outage) if outage.covers(now))
    }

    fn has_room(&self, now: Instant, size: u64) -> bool {
        let fits = |room, packets: usize, bytes: u64| match room {
            Room::Bytes(limit) => bytes + size <= limit.get(),
            Room::Packets(limit) => packets < limit as usize,
        };
        match self.law.hold {
            Hold::Exactly(_) | Hold::Between { .. } | Hold::Gate(_) => true,
            // The first of those held is on the line and does not wait.
            Hold::Managed { room, .. } if self.law.loss == Loss::Thinned(Thinning::PushOut) => {
                // Whoever comes gets in; others have gone for those that came before.
                let most = self.held.iter().map(|held| held.size).max().unwrap_or_default();
                self.held.is_empty()
                    || match room {
                        Room::Bytes(limit) => self.bytes - most <= limit.get(),
                        Room::Packets(limit) => self.held.len() - 1 <= limit as usize,
                    }
            }
            Hold::Line { room, .. } | Hold::Managed { room, .. } => self
                .held
                .front()
                .is_none_or(|first| fits(room, self.held.len() - 1, self.bytes - first.size)),
            Hold::Bucket { burst, room, .. } => {
                let at_once = self.held.is_empty() && self.leaves_bucket(now, size).0 == now;
                size <= burst.get() && (at_once || fits(room, self.held.len(), self.bytes))
            }
        }
    }

    /// The first and the last moment at which a packet that comes now may leave.
    fn leaves_between(&mut self, now: Instant, size: u64) -> (Instant, Instant) {
        let exactly = match self.law.hold {
            Hold::Exactly(span) => now + span,
            Hold::Gate(outage) if outage.covers(now) => outage.until,
            Hold::Gate(_) => now,
            Hold::Between { least, most } => return (now + least, now + most),
            Hold::Managed { .. } => {
                let idle = self.held.is_empty();
                if let Meter::Service(service) = &mut self.meter {
                    service.enter(now, size, idle);
                }
                return (now, Instant::MAX);
            }
            Hold::Line { rate, .. } => {
                let idle = self.held.is_empty();
                let Meter::Busy { since, bits } = &mut self.meter else { return (now, now) };
                if idle {
                    (*since, *bits) = (now, 0);
                }
                *bits += u128::from(size) * 8;
                *since + nanos(*bits * NANOS / u128::from(rate.bits_per_second()))
            }
            Hold::Bucket { .. } => {
                let (at, level) = self.leaves_bucket(now, size);
                self.meter = Meter::Bucket { level, at };
                at
            }
        };
        (exactly, exactly)
    }

    /// When the bucket lets a packet of `size` go that comes now, and what it holds then.
    fn leaves_bucket(&self, now: Instant, size: u64) -> (Instant, u128) {
        let (Hold::Bucket { rate, burst, .. }, Meter::Bucket { level, at }) =
            (self.law.hold, &self.meter)
        else {
            return (now, 0);
        };
        let rate = u128::from(rate.bits_per_second());
        let from = now.max(*at);
        let most = billionths(burst.get());
        let filled = level + u128::from(from.since(*at).as_nanos()) * rate;
        let filled = filled.min(most);
        let price = billionths(size);
        let wait = price.saturating_sub(filled).div_ceil(rate);
        let then = (filled + wait * rate).min(most);
        (from + nanos(wait), then.saturating_sub(price))
    }
}

fn billionths(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * NANOS
}

fn nanos(n: u128) -> Duration {
    Duration::from_nanos(u64::try_from(n).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
