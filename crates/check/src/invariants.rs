//! Invariants of an element, in a few primitives.

use record::SynOffers;
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
    /// The packets that it may drop, duplicate or corrupt.
    pub only: PacketClass,
    /// Whether it may duplicate packets.
    pub copies: bool,
    /// Whether it may corrupt packets.
    pub damages: bool,
    /// Whether it may mark ECN-capable packets.
    pub marks: bool,
    /// What it removes from SYNs and SYN-ACKs.
    pub strips: SynOffers,
    /// What it sends because of a packet that it drops.
    pub answers: Answers,
    /// Index in [`crate::WorldModel::changes`] of what changes during the run.
    pub changes: Option<usize>,
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
    /// The delay of [`ElementChanges::delay`] at the packet's arrival, or longer to keep the order.
    Changing,
    /// Released in bursts at least `min` apart, each within `max` of the one before, or of the first
    /// arrival since; a burst has at least one packet.
    Slots {
        /// The shortest time between two bursts.
        min: Duration,
        /// The longest time to the next burst.
        max: Duration,
        /// Maximum packets of a burst.
        packets: u64,
        /// Bytes that end a burst.
        bytes: u64,
    },
    /// Any time from `least` to `most`.
    Between {
        /// The shortest time.
        least: Duration,
        /// The longest time.
        most: Duration,
    },
    /// A queue in the order of departure times.
    ByTime(TimeQueue),
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
        /// What a packet has beside its IP bytes.
        frame: BucketFrame,
    },
}

/// Bytes that a token bucket and its queue count beside those of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketFrame {
    /// Counted by the queue and the bucket.
    pub header: u32,
    /// Counted by the bucket.
    pub overhead: i32,
    /// The bucket counts at least this number.
    pub least: u32,
    /// Payload of a cell; 0 for a line without cells.
    pub cell: u32,
    /// Bytes added to each cell.
    pub cell_overhead: u32,
}

impl BucketFrame {
    /// Returns the tokens of a packet, in bytes.
    pub(crate) fn price(self, size: u64) -> u64 {
        let framed = i128::from(size) + i128::from(self.header) + i128::from(self.overhead);
        let framed = framed.max(i128::from(self.least)) as u64;
        if self.cell == 0 {
            return framed;
        }
        let cells = framed.div_ceil(u64::from(self.cell));
        cells * u64::from(self.cell + self.cell_overhead)
    }
}

/// A queue in which each packet has a delay of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeQueue {
    /// The shortest delay of a packet that does not leave at once.
    pub least: Duration,
    /// The longest delay, before the transmission.
    pub most: Duration,
    /// Time before its arrival from which the transmission of a packet can count, as a delay below
    /// zero is not zero with a line.
    pub early: Duration,
    /// The line that sends the packets in order, if there is one.
    pub line: Option<TimedLine>,
    /// Whether packets may leave at once.
    pub at_once: bool,
    /// Maximum number of packets held.
    pub room: u32,
}

/// A line with the bytes that it adds to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedLine {
    /// Bits per second.
    pub rate: Rate,
    /// Bytes added to each packet.
    pub overhead: i32,
    /// Payload of a cell; 0 for a line without cells.
    pub cell: u32,
    /// Bytes added to each cell.
    pub cell_overhead: i32,
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
    /// All packets of more IP bytes that arrive from this time on, and no others.
    Larger {
        /// IP bytes of the largest packet that passes.
        than: Bytes,
        /// Start.
        from: Instant,
    },
    /// All packets but SYNs of connections of which no packet has passed for this time, and no
    /// others.
    Idle(Duration),
    /// All packets of a connection of TCP from the first on that meets the condition, and no others.
    FromReset(ResetCondition),
}

/// The first packet of a connection that a box drops to reset it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetCondition {
    /// It follows this many bytes of payload in its direction.
    After(Bytes),
    /// It arrives at this time or later.
    From(Instant),
}

/// What an element sends because of a packet that it drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Nothing.
    None,
    /// An ICMP error to the sender of the packet.
    Icmp,
    /// A RST to its sender.
    Reset,
    /// With the first packet that it drops of a connection, a RST to each end.
    ResetBoth,
}

/// Class of packets that an element selects from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketClass {
    /// All packets.
    #[default]
    All,
    /// Packets with payload.
    Data,
    /// Pure acknowledgments.
    Acks,
    /// SYNs without ACK.
    Syns,
    /// SYNs with ACK.
    SynAcks,
    /// SYNs without ACK that ask for ECN.
    EcnSyns,
}

/// A value over time, constant from each of its instants to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes<T> {
    /// Instants in ascending order, the first [`Instant::ZERO`], and the values from then on.
    pub steps: Vec<(Instant, T)>,
    /// Time after which the steps repeat, beyond the last of them.
    pub period: Option<Duration>,
}

/// What changes about an element during the run; `None` for what is constant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ElementChanges {
    /// Rate of its line in bits per second; 0 suspends it.
    pub rate: Option<Changes<u64>>,
    /// Capacity of its queue.
    pub room: Option<Changes<QueueCapacity>>,
    /// Its delay.
    pub delay: Option<Changes<Duration>>,
    /// Which packets it may select to drop, duplicate or corrupt.
    pub selection: Option<Changes<Selection>>,
}

/// Bounds of a random selection of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// No packet.
    Nothing,
    /// Any packet.
    Any,
    /// Every packet.
    Everything,
}

impl ElementChanges {
    pub(crate) fn are_valid(&self) -> bool {
        self.rate.as_ref().is_none_or(Changes::is_valid)
            && self.room.as_ref().is_none_or(Changes::is_valid)
            && self.delay.as_ref().is_none_or(Changes::is_valid)
            && self.selection.as_ref().is_none_or(Changes::is_valid)
    }
}

impl<T: Copy> Changes<T> {
    /// Returns the value at an instant.
    pub(crate) fn at(&self, now: Instant) -> T {
        let into = self.split(now).1;
        let past = self.steps.iter().rev().find(|(at, _)| at.as_nanos() <= into);
        past.unwrap_or(&self.steps[0]).1
    }

    /// Returns the number of whole periods before an instant, and the nanoseconds since.
    pub(crate) fn split(&self, now: Instant) -> (u64, u64) {
        match self.period {
            Some(period) => {
                (now.as_nanos() / period.as_nanos(), now.as_nanos() % period.as_nanos())
            }
            None => (0, now.as_nanos()),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        let starts = self.steps.first().is_some_and(|(at, _)| *at == Instant::ZERO);
        let ordered = self.steps.is_sorted_by(|one, two| one.0 < two.0);
        let last = self.steps.last().map_or(0, |(at, _)| at.as_nanos());
        starts && ordered && self.period.is_none_or(|period| period.as_nanos() > last)
    }
}

/// A period without service: from `from`, up to but not including `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Start.
    pub from: Instant,
    /// End, exclusive.
    pub until: Instant,
    /// Time after which it returns, longer than it lasts.
    pub period: Option<Duration>,
}

impl ElementInvariants {
    /// Every packet passes at once and unchanged.
    pub const PASS: Self = Self {
        hold: HoldTime::Exactly(Duration::ZERO),
        order: PacketOrder::Kept,
        loss: Loss::Never,
        only: PacketClass::All,
        copies: false,
        damages: false,
        marks: false,
        strips: SynOffers::NONE,
        answers: Answers::None,
        changes: None,
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

    /// Delays of its own for each packet; with a line, packets that do not leave at once stay in
    /// order.
    pub const fn by_time(queue: TimeQueue) -> Self {
        let order = match queue.line {
            Some(_) if !queue.at_once => PacketOrder::Kept,
            _ => PacketOrder::Free,
        };
        Self { hold: HoldTime::ByTime(queue), order, ..Self::PASS }
    }

    /// A delay that changes; order is kept.
    pub const fn changing_delay(changes: usize) -> Self {
        Self { hold: HoldTime::Changing, changes: Some(changes), ..Self::PASS }
    }

    /// Bursts from `min` to `max` apart, which end with their packets or bytes.
    pub const fn slots(min: Duration, max: Duration, packets: u64, bytes: u64) -> Self {
        Self { hold: HoldTime::Slots { min, max, packets, bytes }, ..Self::PASS }
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

    /// Drops packets of more than `than` bytes from a time on; `icmp`: it reports them.
    pub const fn mtu(than: Bytes, from: Instant, icmp: bool) -> Self {
        let answers = if icmp { Answers::Icmp } else { Answers::None };
        Self { loss: Loss::Larger { than, from }, answers, ..Self::PASS }
    }

    /// Removes what SYNs offer.
    pub const fn strip(strips: SynOffers) -> Self {
        Self { strips, ..Self::PASS }
    }

    /// Drops the packets of idle connections; `resets`: it answers them.
    pub const fn forget(idle: Duration, resets: bool) -> Self {
        let answers = if resets { Answers::Reset } else { Answers::None };
        Self { loss: Loss::Idle(idle), answers, ..Self::PASS }
    }

    /// Resets connections.
    pub const fn reset(condition: ResetCondition) -> Self {
        Self { loss: Loss::FromReset(condition), answers: Answers::ResetBoth, ..Self::PASS }
    }

    /// A token bucket without a queue.
    pub const fn policer(rate: Rate, burst: Bytes) -> Self {
        Self::token_bucket(rate, burst, QueueCapacity::Packets(0))
    }

    /// A token bucket with a drop-tail queue of `room` (Linux's sch_tbf).
    pub const fn token_bucket(rate: Rate, burst: Bytes, room: QueueCapacity) -> Self {
        let frame = BucketFrame { header: 0, overhead: 0, least: 0, cell: 0, cell_overhead: 0 };
        Self { hold: HoldTime::Bucket { rate, burst, room, frame }, ..Self::PASS }
    }

    /// The same bucket with packets that are framed.
    #[must_use]
    pub const fn framed(mut self, with: BucketFrame) -> Self {
        if let HoldTime::Bucket { ref mut frame, .. } = self.hold {
            *frame = with;
        }
        self
    }
}

impl Outage {
    /// Returns whether it covers `at`.
    pub fn covers(&self, at: Instant) -> bool {
        self.end(at).is_some()
    }

    /// Returns the end of the outage that covers `at`.
    pub fn end(&self, at: Instant) -> Option<Instant> {
        let lasts = self.until.since(self.from).as_nanos();
        let since = at.as_nanos().checked_sub(self.from.as_nanos())?;
        let into = self.period.map_or(since, |period| since % period.as_nanos());
        (into < lasts).then(|| at + Duration::from_nanos(lasts - into))
    }
}
