//! Model of an element: when each packet may leave, and whether it fits.
//!
//! A line is computed by busy periods, not packet by packet: within one that started at `s` the
//! packet that ends the first `b` bits leaves at `s + floor(b / rate)`, whatever the packet sizes.

mod service;
mod timed;

use std::collections::VecDeque;

use record::{ElementId, PacketNumber};
use units::{Duration, Instant};

use service::LineService;
use timed::TimedDeparture;

use crate::contents::PacketContents;
use crate::invariants::{
    Answers, ElementChanges, ElementInvariants, HoldTime, Loss, PacketOrder, QueueCapacity,
    Selection, Thinning,
};
use crate::middlebox::{AnswerDue, ConnectionTable};
use crate::violation::{Subject, ViolationKind, ViolationLog};
use crate::world::WorldModel;

const NANOS: u128 = 1_000_000_000;

#[derive(Debug, Clone)]
pub(crate) struct ElementModel {
    id: ElementId,
    law: ElementInvariants,
    meter: ServiceState,
    /// In order of arrival.
    held: VecDeque<HeldPacket>,
    /// IP bytes of all held packets.
    bytes: u64,
    changes: ElementChanges,
    /// Connections, if it knows them.
    connections: ConnectionTable,
    answer_due: Option<AnswerDue>,
}

/// A connection and the end of it that sent a packet.
pub(crate) type FlowDirection = (u32, u8);

/// State that determines the next departure.
#[derive(Debug, Clone)]
enum ServiceState {
    None,
    /// The busy period: its start and the bits received in it.
    Busy {
        since: Instant,
        bits: u128,
    },
    /// The bucket after the last departure, in billionths of a bit, and the time of that.
    Bucket {
        level: u128,
        at: Instant,
    },
    /// The last burst: its time, packets and bytes.
    Burst {
        at: Option<Instant>,
        packets: u64,
        bytes: u64,
    },
    /// A line whose next packet is unknown before its departure.
    Service(LineService),
    /// The last departure of a packet that did not leave at once.
    Spaced {
        last: Instant,
    },
}

#[derive(Debug, Clone, Copy)]
struct HeldPacket {
    packet: PacketNumber,
    way: FlowDirection,
    size: u64,
    entered: Instant,
    earliest: Instant,
    latest: Instant,
}

impl ElementModel {
    pub(crate) fn new(id: ElementId, law: ElementInvariants, world: &WorldModel) -> Self {
        let changes =
            law.changes.and_then(|index| world.changes.get(index)).cloned().unwrap_or_default();
        let meter = match law.hold {
            HoldTime::Exactly(_)
            | HoldTime::Between { .. }
            | HoldTime::Gate(_)
            | HoldTime::Changing => ServiceState::None,
            HoldTime::ByTime(_) => ServiceState::Spaced { last: Instant::ZERO },
            HoldTime::Slots { .. } => ServiceState::Burst { at: None, packets: 0, bytes: 0 },
            HoldTime::Line { .. } => ServiceState::Busy { since: Instant::ZERO, bits: 0 },
            HoldTime::Bucket { burst, .. } => {
                ServiceState::Bucket { level: billionths(burst.get()), at: Instant::ZERO }
            }
            HoldTime::Managed { line, .. } => {
                ServiceState::Service(LineService::new(line, &world.traces, changes.rate.clone()))
            }
        };
        Self {
            id,
            law,
            meter,
            held: VecDeque::new(),
            bytes: 0,
            changes,
            connections: ConnectionTable::default(),
            answer_due: None,
        }
    }

    pub(crate) const fn law(&self) -> &ElementInvariants {
        &self.law
    }

    /// A packet enters.
    pub(crate) fn enter(
        &mut self,
        log: &mut ViolationLog,
        packet: PacketNumber,
        way: FlowDirection,
        (size, contents): (u64, &PacketContents),
    ) {
        let (now, hop_index, about) = (log.now, self.id, Subject::Packet(packet));
        self.overdue(log);
        if !self.has_room(now, size) {
            log.note(about, ViolationKind::NoRoom { hop_index });
        }
        if self.in_outage(now) || self.must_lose(now) {
            log.note(about, ViolationKind::PassedDuringOutage { hop_index });
        }
        if self.is_too_large(now, size) {
            log.note(about, ViolationKind::PassedTooLarge { hop_index });
        }
        if self.connections.drops(self.law.loss, now, way, contents) {
            log.note(about, ViolationKind::PassedMiddlebox { hop_index });
        }
        if matches!(self.law.loss, Loss::Idle(_) | Loss::FromReset(_)) {
            self.connections.pass(now, way, contents.payload.len);
        }
        let (earliest, latest) = self.leaves_between(now, size);
        self.held.push_back(HeldPacket { packet, way, size, entered: now, earliest, latest });
        self.bytes += size;
    }

    /// A packet is dropped, `inside` or on arrival.
    pub(crate) fn lose(
        &mut self,
        log: &mut ViolationLog,
        (packet, size): (PacketNumber, u64),
        (way, hop): (FlowDirection, u32),
        contents: &PacketContents,
        inside: bool,
    ) {
        self.overdue(log);
        let bare = contents.payload.bare;
        let may = match self.law.loss {
            Loss::Never => false,
            Loss::Any => !inside && self.may_select(log.now, contents),
            Loss::BareAcks => bare,
            Loss::During(_) => !inside && self.in_outage(log.now),
            Loss::ByDiscipline(thinning) => self.may_drop(log.now, thinning, inside),
            Loss::Larger { .. } => !inside && self.is_too_large(log.now, size),
            Loss::Idle(_) | Loss::FromReset(_) => {
                !inside && self.connections.drops(self.law.loss, log.now, way, contents)
            }
        };
        self.answer_due = match self.law.answers {
            Answers::None => None,
            answers => self.connections.drop(answers, (log.now, hop), way, contents),
        };
        if !may && (inside || self.has_room(log.now, size)) {
            log.note(Subject::Packet(packet), ViolationKind::LostForNothing { hop_index: self.id });
        }
        if inside {
            self.held.retain(|held| held.packet != packet);
            self.bytes -= size;
        }
    }

    /// Returns whether a queue may drop a packet now, `inside` or on arrival, although it fits.
    fn may_drop(&self, now: Instant, thinning: Thinning, inside: bool) -> bool {
        let ServiceState::Service(service) = &self.meter else { return false };
        match thinning {
            Thinning::Full => false,
            Thinning::AtEntrance => !inside,
            Thinning::AtHead => inside && service.is_dequeueing(now),
            Thinning::PushOut => {
                let newest = self.held.back().map(|held| held.entered);
                // One is in transmission.
                inside
                    && (service.is_dequeueing(now) || (newest == Some(now) && self.held.len() > 1))
            }
        }
    }

    /// Returns the bounds of the element's selection of packets.
    pub(crate) fn selection(&self, now: Instant) -> Selection {
        self.changes.selection.as_ref().map_or(Selection::Any, |changes| changes.at(now))
    }

    /// Returns whether the element may select this packet now.
    pub(crate) fn may_select(&self, now: Instant, contents: &PacketContents) -> bool {
        self.selection(now) != Selection::Nothing && contents.is_of(self.law.only)
    }

    fn must_lose(&self, now: Instant) -> bool {
        self.law.loss == Loss::Any && self.selection(now) == Selection::Everything
    }

    /// A packet leaves in a burst; returns when it may leave at the earliest.
    fn join_burst(&mut self, now: Instant, size: u64) -> Instant {
        let HoldTime::Slots { min, packets: most, bytes: limit, .. } = self.law.hold else {
            return now;
        };
        let ServiceState::Burst { at, packets, bytes } = &mut self.meter else { return now };
        let next = at.map_or(now, |at| at + min);
        if *at != Some(now) {
            (*at, *packets, *bytes) = (Some(now), 0, 0);
            *packets += 1;
            *bytes += size;
            return next;
        }
        // With slots that may follow at once, a burst has no end.
        let full = !min.is_zero() && (*packets >= most || *bytes >= limit);
        *packets += 1;
        *bytes += size;
        if full { next } else { now }
    }

    /// A packet leaves.
    pub(crate) fn leave(&mut self, log: &mut ViolationLog, packet: PacketNumber) {
        let (hop_index, about) = (self.id, Subject::Packet(packet));
        let Some(place) = self.held.iter().position(|held| held.packet == packet) else { return };
        let way = self.held[place].way;
        let before = self.held.iter().take(place).find(|before| match self.law.order {
            PacketOrder::Kept => true,
            PacketOrder::KeptByFlow => before.way == way,
            PacketOrder::Free => false,
        });
        if let Some(before) = before {
            log.note(about, ViolationKind::Overtook { hop_index, before: before.packet });
        }
        let Some(held) = self.held.remove(place) else { return };
        self.bytes -= held.size;
        let held = match &mut self.meter {
            ServiceState::Service(service) => {
                let (begin, end) = service.leave(log.now, held.size);
                // The line cannot have taken a packet that arrived later than its start.
                let earliest = if held.entered > begin { Instant::MAX } else { end };
                HeldPacket { earliest, latest: end, ..held }
            }
            ServiceState::Spaced { last } => {
                let queue = TimedDeparture { law: self.law.hold, now: log.now };
                HeldPacket { earliest: queue.earliest(last, &held), ..held }
            }
            ServiceState::Burst { .. } => {
                HeldPacket { earliest: self.join_burst(log.now, held.size), ..held }
            }
            _ => held,
        };
        if log.now < held.earliest {
            log.note(about, ViolationKind::LeftEarly { hop_index, due: held.earliest });
        } else if log.now > held.latest {
            log.note(about, ViolationKind::LeftLate { hop_index, due: held.latest });
        }
        self.overdue(log);
    }

    /// Reports a packet that should have left by now.
    pub(crate) fn overdue(&mut self, log: &mut ViolationLog) {
        let now = log.now;
        if let ServiceState::Service(service) = &mut self.meter {
            if let Some(first) = self.held.front()
                && let Some(due) = service.overdue(now)
            {
                let breach = ViolationKind::Overdue { hop_index: self.id, due };
                log.note(Subject::Packet(first.packet), breach);
            }
            return;
        }
        let Some(first) = self.held.front_mut().filter(|first| first.latest < now) else { return };
        let breach = ViolationKind::Overdue { hop_index: self.id, due: first.latest };
        log.note(Subject::Packet(first.packet), breach);
        // Report it once.
        first.latest = Instant::from_nanos(u64::MAX);
    }

    fn in_outage(&self, now: Instant) -> bool {
        matches!(self.law.loss, Loss::During(outage) if outage.covers(now))
    }

    fn is_too_large(&self, now: Instant, size: u64) -> bool {
        matches!(self.law.loss, Loss::Larger { than, from } if now >= from && size > than.get())
    }

    /// Returns whether the element may send a packet in that direction now, and where the packet that
    /// it dropped was on its route.
    pub(crate) fn take_answer(&mut self, now: Instant, way: FlowDirection) -> Option<AnswerDue> {
        let due = self.answer_due.as_mut()?;
        due.take(now, way).then_some(*due)
    }

    fn has_room(&self, now: Instant, size: u64) -> bool {
        let fits = |room, packets: usize, bytes: u64| match room {
            QueueCapacity::Bytes(limit) => bytes + size <= limit.get(),
            QueueCapacity::Packets(limit) => packets < limit as usize,
        };
        let now_or = |constant| match &self.changes.room {
            Some(changes) => changes.at(now),
            None => constant,
        };
        match self.law.hold {
            HoldTime::Exactly(_)
            | HoldTime::Between { .. }
            | HoldTime::Gate(_)
            | HoldTime::Changing
            | HoldTime::Slots { .. } => true,
            HoldTime::ByTime(queue) => self.held.len() < queue.room as usize,
            // The first held packet is in transmission and not queued.
            HoldTime::Managed { room, .. }
                if self.law.loss == Loss::ByDiscipline(Thinning::PushOut) =>
            {
                // A new packet always enters; the queue has dropped others for the earlier ones.
                let most = self.held.iter().map(|held| held.size).max().unwrap_or_default();
                let remains = |room: &QueueCapacity| match room {
                    QueueCapacity::Bytes(limit) => self.bytes - most <= limit.get(),
                    QueueCapacity::Packets(limit) => self.held.len() - 1 <= *limit as usize,
                };
                // Packets that a queue made smaller has no room for remain in it.
                self.held.is_empty()
                    || match &self.changes.room {
                        Some(changes) => changes.steps.iter().any(|(_, room)| remains(room)),
                        None => remains(&room),
                    }
            }
            HoldTime::Line { room, .. } | HoldTime::Managed { room, .. } => {
                self.held.front().is_none_or(|first| {
                    fits(now_or(room), self.held.len() - 1, self.bytes - first.size)
                })
            }
            HoldTime::Bucket { burst, room, frame, .. } => {
                let at_once = self.held.is_empty() && self.leaves_bucket(now, size).0 == now;
                let headers = (self.held.len() as u64 + 1) * u64::from(frame.header);
                let fits = fits(room, self.held.len(), self.bytes + headers);
                frame.price(size) <= burst.get() && (at_once || fits)
            }
        }
    }

    /// Returns the earliest and the latest time at which a packet that arrives now may leave.
    fn leaves_between(&mut self, now: Instant, size: u64) -> (Instant, Instant) {
        let exactly = match self.law.hold {
            HoldTime::Exactly(span) => now + span,
            HoldTime::Gate(outage) => outage.end(now).unwrap_or(now),
            HoldTime::Changing => {
                let delay =
                    self.changes.delay.as_ref().map_or(Duration::ZERO, |delay| delay.at(now));
                // It does not overtake the last.
                self.held.back().map_or(now + delay, |last| last.earliest.max(now + delay))
            }
            HoldTime::Slots { max, .. } => {
                // At worst each packet before it takes a burst of its own.
                let bursts = self.held.len() as u64 + 1;
                return (now, now + max.saturating_mul(bursts));
            }
            HoldTime::ByTime(queue) => {
                // With a line it follows the last packet at the latest.
                let delayed = now + queue.most;
                let Some(line) = queue.line else { return (now + queue.least, delayed) };
                let last = self.held.iter().map(|held| held.latest).max().unwrap_or(delayed);
                return (now + queue.least, last.max(delayed) + timed::transmission(line, size));
            }
            HoldTime::Between { least, most } => return (now + least, now + most),
            HoldTime::Managed { .. } => {
                let idle = self.held.is_empty();
                if let ServiceState::Service(service) = &mut self.meter {
                    service.enter(now, size, idle);
                }
                return (now, Instant::MAX);
            }
            HoldTime::Line { rate, .. } => {
                let idle = self.held.is_empty();
                let ServiceState::Busy { since, bits } = &mut self.meter else { return (now, now) };
                if idle {
                    (*since, *bits) = (now, 0);
                }
                *bits += u128::from(size) * 8;
                *since + nanos(*bits * NANOS / u128::from(rate.bits_per_second()))
            }
            HoldTime::Bucket { .. } => {
                let (at, level) = self.leaves_bucket(now, size);
                self.meter = ServiceState::Bucket { level, at };
                at
            }
        };
        (exactly, exactly)
    }

    /// Returns when the bucket releases a packet of `size` that arrives now, and its level then.
    fn leaves_bucket(&self, now: Instant, size: u64) -> (Instant, u128) {
        let (HoldTime::Bucket { rate, burst, frame, .. }, ServiceState::Bucket { level, at }) =
            (self.law.hold, &self.meter)
        else {
            return (now, 0);
        };
        let rate = u128::from(rate.bits_per_second());
        let from = now.max(*at);
        let most = billionths(burst.get());
        let filled = level + u128::from(from.since(*at).as_nanos()) * rate;
        let filled = filled.min(most);
        let price = billionths(frame.price(size));
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
