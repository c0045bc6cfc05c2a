//! Queue disciplines: the order in which queued packets leave, and which of them are marked or
//! dropped before the queue is full (active queue management, RFC 7567).

pub mod codel;
pub mod fq_codel;
pub mod pie;
pub mod red;

use std::collections::VecDeque;

use machine::{PacketAction, PacketId, PacketView};
use units::{Bytes, Duration, Ecn, Instant};

use crate::link::QueueLimit;
use crate::selection::RandomSource;

/// A queued packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket {
    /// Packet number.
    pub packet: PacketId,
    /// IP bytes.
    pub size: Bytes,
    /// When it was enqueued.
    pub enqueued_at: Instant,
    /// ECN field of the IP header.
    pub ecn: Ecn,
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

/// What a discipline may know of its line when it is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueSite<'a> {
    /// Time in which the line sends a packet of 1,000 bytes.
    pub(crate) slot: Duration,
    pub(crate) random_source: &'a RandomSource<'a>,
}

/// An arriving packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueArrival<'a> {
    pub(crate) packet: QueuedPacket,
    pub(crate) view: &'a PacketView,
    /// Capacity of the queue.
    pub(crate) limit: QueueLimit,
    /// The line is idle: the packet is sent at once and needs no room.
    pub(crate) idle: bool,
}

impl QueueArrival<'_> {
    /// Does it fit into `queue`?
    fn fits(&self, queue: &Fifo) -> bool {
        self.idle || queue.has_room(self.limit, self.packet.size)
    }
}

/// A queue discipline.
pub(crate) trait QueueDiscipline: Sized {
    /// Its parameters.
    type Params;

    /// Creates an empty queue.
    fn create(params: Self::Params, site: &QueueSite<'_>) -> Self;

    /// Enqueues a packet; returns false if it is dropped.
    fn take(&mut self, arrival: &QueueArrival<'_>, fates: &mut QueueOutcomes) -> bool;

    /// Dequeues the packet that is sent at `now`.
    fn give(&mut self, now: Instant, fates: &mut QueueOutcomes) -> Option<QueuedPacket>;
}

/// The registry of queue disciplines: a variant of [`QdiscConfig`], its parameters, its state, its name.
macro_rules! disciplines {
    ($($(#[$doc:meta])* $name:ident($params:ty) = $state:ty, $text:literal;)*) => {
        /// A queue discipline with its parameters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum QdiscConfig {
            /// First in, first out; drops packets that do not fit.
            #[default]
            DropTail,
            $($(#[$doc])* $name($params),)*
        }

        impl QdiscConfig {
            /// The names of all disciplines.
            pub const NAMES: &[&str] = &["drop-tail", $($text,)*];

            /// Its name, as in scenario files.
            pub const fn name(&self) -> &'static str {
                match self {
                    Self::DropTail => "drop-tail",
                    $(Self::$name(_) => $text,)*
                }
            }
        }

        /// State of a queue discipline.
        #[derive(Debug, Clone)]
        pub(crate) enum Qdisc {
            DropTail(Fifo),
            $($name($state),)*
        }

        impl Qdisc {
            /// Creates an empty queue.
            pub(crate) fn new(policy: QdiscConfig, site: &QueueSite<'_>) -> Self {
                match policy {
                    QdiscConfig::DropTail => Self::DropTail(Fifo::create((), site)),
                    $(QdiscConfig::$name(params) => Self::$name(<$state>::create(params, site)),)*
                }
            }

            /// Enqueues a packet; returns false if it is dropped.
            pub(crate) fn enqueue(
                &mut self,
                arrival: &QueueArrival<'_>,
                fates: &mut QueueOutcomes,
            ) -> bool {
                match self {
                    Self::DropTail(queue) => queue.take(arrival, fates),
                    $(Self::$name(queue) => queue.take(arrival, fates),)*
                }
            }

            /// Dequeues the packet that is sent at `now`.
            pub(crate) fn dequeue(
                &mut self,
                now: Instant,
                fates: &mut QueueOutcomes,
            ) -> Option<QueuedPacket> {
                match self {
                    Self::DropTail(queue) => queue.give(now, fates),
                    $(Self::$name(queue) => queue.give(now, fates),)*
                }
            }
        }
    };
}

disciplines! {
    /// CoDel, RFC 8289.
    CoDel(codel::CoDelParams) = codel::CoDel, "codel";
    /// FQ-CoDel, RFC 8290.
    FqCoDel(fq_codel::FqCoDelParams) = fq_codel::FqCoDel, "fq_codel";
    /// PIE, RFC 8033.
    Pie(pie::PieParams) = pie::Pie, "pie";
    /// RED, Floyd and Jacobson 1993.
    Red(red::RedParams) = red::Red, "red";
}

impl QueueDiscipline for Fifo {
    type Params = ();

    fn create((): (), _site: &QueueSite<'_>) -> Self {
        Self::new()
    }

    fn take(&mut self, arrival: &QueueArrival<'_>, _fates: &mut QueueOutcomes) -> bool {
        let room = arrival.fits(self);
        if room {
            self.push(arrival.packet);
        }
        room
    }

    fn give(&mut self, _now: Instant, _fates: &mut QueueOutcomes) -> Option<QueuedPacket> {
        self.pop()
    }
}
