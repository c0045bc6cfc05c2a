//! Queue disciplines: the order in which queued packets leave, and which of them are marked or
//! dropped before the queue is full (active queue management, RFC 7567).

pub mod codel;
pub mod fq_codel;
pub mod pie;
pub mod red;

use std::collections::VecDeque;

use machine::{PacketAction, PacketId, PacketView};
use units::{Bytes, Duration, Instant};

use crate::link::QueueLimit;
use crate::selection::RandomSource;

/// A queue discipline with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QdiscConfig {
    /// First in, first out; drops packets that do not fit.
    #[default]
    DropTail,
    /// CoDel, RFC 8289.
    CoDel(codel::CoDelParams),
    /// FQ-CoDel, RFC 8290.
    FqCoDel(fq_codel::FqCoDelParams),
    /// PIE, RFC 8033.
    Pie(pie::PieParams),
    /// RED, Floyd and Jacobson 1993.
    Red(red::RedParams),
}

/// A queued packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket {
    /// Packet number.
    pub packet: PacketId,
    /// IP bytes.
    pub size: Bytes,
    /// When it was enqueued.
    pub enqueued_at: Instant,
    /// Whether it is ECN-capable (RFC 3168).
    pub ecn_capable: bool,
}

/// Drops and marks of the discipline, oldest first.
pub(crate) type QueueOutcomes = VecDeque<PacketAction>;

/// Packets in order of arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<QueuedPacket>,
    bytes: Bytes,
}

impl Fifo {
    pub(crate) const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: Bytes::ZERO }
    }

    pub(crate) fn push(&mut self, packet: QueuedPacket) {
        self.bytes += packet.size;
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.size;
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// IP bytes of all packets.
    pub(crate) const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Returns whether `size` more bytes fit.
    fn has_room(&self, limit: QueueLimit, size: Bytes) -> bool {
        match limit {
            QueueLimit::Bytes(limit) => self.bytes + size <= limit,
            QueueLimit::Packets(limit) => self.len() < limit as usize,
        }
    }
}

/// State of a queue discipline.
#[derive(Debug, Clone)]
pub(crate) enum Qdisc {
    DropTail(Fifo),
    CoDel(codel::CoDel),
    FqCoDel(fq_codel::FqCoDel),
    Pie(pie::Pie),
    Red(red::Red),
}

impl Qdisc {
    /// Creates an empty queue; its line sends a packet of 1,000 bytes in `slot`.
    pub(crate) fn new(
        policy: QdiscConfig,
        slot: Duration,
        random_source: &RandomSource<'_>,
    ) -> Self {
        match policy {
            QdiscConfig::DropTail => Self::DropTail(Fifo::new()),
            QdiscConfig::CoDel(params) => Self::CoDel(codel::CoDel::new(params)),
            QdiscConfig::FqCoDel(params) => {
                Self::FqCoDel(fq_codel::FqCoDel::new(params, random_source))
            }
            QdiscConfig::Pie(params) => Self::Pie(pie::Pie::new(params, random_source)),
            QdiscConfig::Red(params) => Self::Red(red::Red::new(params, slot, random_source)),
        }
    }

    /// Enqueues a packet; returns false if it is dropped. On an idle line (`idle`) the packet is
    /// sent at once and needs no room.
    pub(crate) fn enqueue(
        &mut self,
        packet: QueuedPacket,
        view: &PacketView,
        limit: QueueLimit,
        idle: bool,
        fates: &mut QueueOutcomes,
    ) -> bool {
        let fits = |queue: &Fifo| idle || queue.has_room(limit, packet.size);
        match self {
            Self::DropTail(queue) => {
                let room = fits(queue);
                if room {
                    queue.push(packet);
                }
                room
            }
            Self::CoDel(codel) => {
                let room = fits(&codel.queue);
                if room {
                    codel.enqueue(packet);
                }
                room
            }
            Self::FqCoDel(fq) => {
                fq.enqueue(packet, view);
                if !idle {
                    fq.drop_to(limit, fates);
                }
                true
            }
            Self::Pie(pie) => {
                let room = fits(&pie.queue);
                pie.enqueue(packet, room, fates)
            }
            Self::Red(red) => {
                let room = fits(&red.queue);
                red.enqueue(packet, room, fates)
            }
        }
    }

    /// Dequeues the packet that is sent at `now`.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        fates: &mut QueueOutcomes,
    ) -> Option<QueuedPacket> {
        match self {
            Self::DropTail(queue) => queue.pop(),
            Self::CoDel(codel) => codel.dequeue(now, fates),
            Self::FqCoDel(fq) => fq.dequeue(now, fates),
            Self::Pie(pie) => pie.dequeue(now),
            Self::Red(red) => red.dequeue(now),
        }
    }
}
