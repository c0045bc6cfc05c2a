//! Invariants of an element, in a few primitives.

use units::{Bytes, Duration, Instant, Rate};

/// Invariants of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementInvariants {
    /// How long a packet is held.
    pub hold: HoldTime,
    /// Which packets leave in order of arrival.
    pub order: PacketOrder,
    /// Which packets may be dropped, besides those that do not fit.
    pub loss: Loss,
    /// Whether it may duplicate packets.
    pub copies: bool,
    /// Whether it may corrupt packets.
    pub damages: bool,
    /// Whether it may mark ECN-capable packets.
    pub marks: bool,
}

/// Capacity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Bits per second.
    Rate(Rate),
    /// 1,500 bytes at each time of the trace in [`crate::WorldModel::traces`] with this index.
    Trace(usize),
}

/// Where a queue discipline may drop packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinning {
    /// Tail drop only: packets that do not fit.
    Full,
    /// Any packet on arrival.
    AtEntrance,
    /// Packets at the head, whenever the line takes the next one.
    AtHead,
    /// Packets at the head, and others when a packet arrives at a full queue.
    PushOut,
}

/// How long an element holds a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldTime {
    /// The same time for every packet.
    Exactly(Duration),
    /// Any time from `least` to `most`.
    Between {
        /// The shortest time.
        least: Duration,
        /// The longest time.
        most: Duration,
    },
    /// No time, except for packets that arrive during an outage, until its end.
    Gate(Outage),
    /// A queue in front of a line that transmits continuously while packets wait.
    Line {
        /// Bits per second.
        rate: Rate,
        /// Capacity of the queue, excluding the packet in transmission.
        room: QueueCapacity,
    },
    /// A work-conserving line that may take the packets in any order.
    Managed {
        /// Its capacity.
        line: Line,
        /// Capacity of the queue, excluding the packet in transmission.
        room: QueueCapacity,
    },
    /// A token bucket, full at the start: a packet leaves in the first whole nanosecond in which
    /// the bucket holds its size in tokens, and consumes them.
    Bucket {
        /// Token rate.
        rate: Rate,
        /// Capacity of the bucket; a larger packet never passes.
        burst: Bytes,
        /// Capacity of the queue.
        room: QueueCapacity,
    },
}

/// Which packets leave an element in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketOrder {
    /// All packets.
    Kept,
    /// Those of one direction of a connection.
    KeptByFlow,
    /// Packets may overtake each other.
    Free,
}

/// Capacity of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueCapacity {
    /// IP bytes.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u32),
}

/// Packets that may be dropped at an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// None, except those that do not fit.
    Never,
    /// Any packet.
    Any,
    /// Pure acknowledgments, also from the queue.
    BareAcks,
    /// All packets that arrive during an outage, and no others.
    During(Outage),
    /// Packets dropped by a queue discipline.
    ByDiscipline(Thinning),
}

/// A period without service: from `from`, up to but not including `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Start.
    pub from: Instant,
    /// End, exclusive.
    pub until: Instant,
}

impl ElementInvariants {
    /// Every packet passes at once and unchanged.
    pub const PASS: Self = Self {
        hold: HoldTime::Exactly(Duration::ZERO),
        order: PacketOrder::Kept,
        loss: Loss::Never,
        copies: false,
        damages: false,
        marks: false,
    };

    /// A drop-tail queue of `room` in front of a line.
    pub const fn link(rate: Rate, room: QueueCapacity) -> Self {
        Self { hold: HoldTime::Line { rate, room }, ..Self::PASS }
    }

    /// A queue discipline in front of a line; `marks`: it may mark packets.
    pub const fn managed(line: Line, room: QueueCapacity, thinning: Thinning, marks: bool) -> Self {
        let order = match thinning {
            // Connections are served in turn.
            Thinning::PushOut => PacketOrder::KeptByFlow,
            _ => PacketOrder::Kept,
        };
        let (hold, loss) = (HoldTime::Managed { line, room }, Loss::ByDiscipline(thinning));
        Self { hold, order, loss, marks, ..Self::PASS }
    }

    /// A fixed delay.
    pub const fn delay(span: Duration) -> Self {
        Self { hold: HoldTime::Exactly(span), ..Self::PASS }
    }

    /// Drops arbitrary packets.
    pub const fn loss() -> Self {
        Self { loss: Loss::Any, ..Self::PASS }
    }

    /// A random delay per packet, at most `most`; order is kept.
    pub const fn jitter(most: Duration) -> Self {
        Self { hold: HoldTime::Between { least: Duration::ZERO, most }, ..Self::PASS }
    }

    /// Reorders packets, holding none longer than `most`.
    pub const fn reorder(most: Duration) -> Self {
        Self { order: PacketOrder::Free, ..Self::jitter(most) }
    }

    /// Duplicates packets; of two that pass at one instant either may be recorded first.
    pub const fn duplicate() -> Self {
        Self { copies: true, order: PacketOrder::Free, ..Self::PASS }
    }

    /// Corrupts packets.
    pub const fn corrupt() -> Self {
        Self { damages: true, ..Self::PASS }
    }

    /// Holds packets for at most `most`, and drops arriving or held pure acknowledgments.
    pub const fn thin(most: Duration) -> Self {
        Self { loss: Loss::BareAcks, order: PacketOrder::KeptByFlow, ..Self::jitter(most) }
    }

    /// Drops all packets that arrive during an outage.
    pub const fn outage(outage: Outage) -> Self {
        Self { loss: Loss::During(outage), ..Self::PASS }
    }

    /// Holds all packets that arrive during an outage until its end.
    pub const fn gate(outage: Outage) -> Self {
        Self { hold: HoldTime::Gate(outage), ..Self::PASS }
    }

    /// A token bucket without a queue.
    pub const fn policer(rate: Rate, burst: Bytes) -> Self {
        Self::token_bucket(rate, burst, QueueCapacity::Packets(0))
    }

    /// A token bucket with a drop-tail queue of `room` (Linux's sch_tbf).
    pub const fn token_bucket(rate: Rate, burst: Bytes, room: QueueCapacity) -> Self {
        Self { hold: HoldTime::Bucket { rate, burst, room }, ..Self::PASS }
    }
}

impl Outage {
    /// Returns whether it covers `at`.
    pub fn covers(&self, at: Instant) -> bool {
        self.from <= at && at < self.until
    }
}
