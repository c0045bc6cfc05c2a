//! What a station may do to packets, in few primitives.

use units::{Bytes, Duration, Instant, Rate};

/// The law of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Law {
    /// How long a packet stays.
    pub hold: Hold,
    /// Which packets leave in the order in which they came.
    pub order: Order,
    /// What may be lost, besides what finds no room.
    pub loss: Loss,
    /// May it make a second packet of one?
    pub copies: bool,
    /// May it damage packets?
    pub damages: bool,
    /// May it mark packets that can be marked?
    pub marks: bool,
}

/// What a line can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Bits per second.
    Rate(Rate),
    /// 1,500 bytes at each moment of the recording of [`crate::World::traces`] with this index.
    Trace(usize),
}

/// How a queue thins itself out before it is full, or when it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinning {
    /// Not at all: what finds no room is lost.
    Full,
    /// Any packet may be lost as it comes.
    AtEntrance,
    /// Those at the head may be lost whenever the next one is to go.
    AtHead,
    /// The same, and the newest packet may push out others.
    PushOut,
}

/// How long a packet stays at a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The same time for every packet.
    Exactly(Duration),
    /// Any time from `least` to `most`.
    Between {
        /// The shortest stay.
        least: Duration,
        /// The longest stay.
        most: Duration,
    },
    /// No time, but what comes during an outage stays until it is over.
    Gate(Outage),
    /// A queue in front of a line that sends bit after bit and never rests while packets wait.
    Line {
        /// Bits per second.
        rate: Rate,
        /// Room of the queue, not counting the packet on the line.
        room: Room,
    },
    /// A line that never rests while packets wait, whichever of them it takes next.
    Managed {
        /// What it can send.
        line: Line,
        /// Room of the queue, not counting the packet on the line.
        room: Room,
    },
    /// A token bucket, full at the beginning: a packet goes in the first whole nanosecond in which
    /// the bucket holds its size, and takes that much out.
    Bucket {
        /// What flows into the bucket.
        rate: Rate,
        /// The most it holds; a larger packet never passes.
        burst: Bytes,
        /// Room for packets that wait.
        room: Room,
    },
}

/// Which packets leave a station in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All.
    Kept,
    /// Those of one connection and one way.
    KeptByFlow,
    /// They may overtake each other.
    Free,
}

/// Room of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// IP bytes.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u32),
}

/// What may be lost at a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing, except for want of room.
    Never,
    /// Any packet.
    Any,
    /// Bare acknowledgments, also one that waits.
    BareAcks,
    /// Whatever comes during an outage, all of it; nothing at other times.
    During(Outage),
    /// What a queue thins out.
    Thinned(Thinning),
}

/// A time in which nothing passes: from `from`, up to but not including `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Its first moment.
    pub from: Instant,
    /// The first moment after it.
    pub until: Instant,
}

impl Law {
    /// Every packet passes at once and untouched.
    pub const PASS: Self = Self {
        hold: Hold::Exactly(Duration::ZERO),
        order: Order::Kept,
        loss: Loss::Never,
        copies: false,
        damages: false,
        marks: false,
    };

    /// A drop-tail queue of `room` in front of a line.
    pub const fn link(rate: Rate, room: Room) -> Self {
        Self { hold: Hold::Line { rate, room }, ..Self::PASS }
    }

    /// A queue that thins itself out, in front of a line; `marks`: it may mark packets.
    pub const fn managed(line: Line, room: Room, thinning: Thinning, marks: bool) -> Self {
        let order = match thinning {
            // Connections take turns.
            Thinning::PushOut => Order::KeptByFlow,
            _ => Order::Kept,
        };
        let (hold, loss) = (Hold::Managed { line, room }, Loss::Thinned(thinning));
        Self { hold, order, loss, marks, ..Self::PASS }
    }

    /// A fixed delay.
    pub const fn delay(span: Duration) -> Self {
        Self { hold: Hold::Exactly(span), ..Self::PASS }
    }

    /// Loses whichever packets it likes.
    pub const fn loss() -> Self {
        Self { loss: Loss::Any, ..Self::PASS }
    }

    /// A delay that differs from packet to packet, `most` at most; order is kept.
    pub const fn jitter(most: Duration) -> Self {
        Self { hold: Hold::Between { least: Duration::ZERO, most }, ..Self::PASS }
    }

    /// Lets packets overtake each other, holding none longer than `most`.
    pub const fn reorder(most: Duration) -> Self {
        Self { order: Order::Free, ..Self::jitter(most) }
    }

    /// Makes copies; of two that pass at one moment either may be told first.
    pub const fn duplicate() -> Self {
        Self { copies: true, order: Order::Free, ..Self::PASS }
    }

    /// Damages packets.
    pub const fn corrupt() -> Self {
        Self { damages: true, ..Self::PASS }
    }

    /// Holds packets for `most` at most, and loses bare acknowledgments that come or wait.
    pub const fn thin(most: Duration) -> Self {
        Self { loss: Loss::BareAcks, order: Order::KeptByFlow, ..Self::jitter(most) }
    }

    /// Loses all that comes during an outage.
    pub const fn outage(outage: Outage) -> Self {
        Self { loss: Loss::During(outage), ..Self::PASS }
    }

    /// Holds all that comes during an outage until it is over.
    pub const fn gate(outage: Outage) -> Self {
        Self { hold: Hold::Gate(outage), ..Self::PASS }
    }

    /// A token bucket that loses what would have to wait.
    pub const fn policer(rate: Rate, burst: Bytes) -> Self {
        Self::token_bucket(rate, burst, Room::Packets(0))
    }

    /// A token bucket with a drop-tail queue of `room` (sch_tbf of Linux).
    pub const fn token_bucket(rate: Rate, burst: Bytes, room: Room) -> Self {
        Self { hold: Hold::Bucket { rate, burst, room }, ..Self::PASS }
    }
}

impl Outage {
    /// Does it cover `at`?
    pub fn covers(&self, at: Instant) -> bool {
        self.from <= at && at < self.until
    }
}
