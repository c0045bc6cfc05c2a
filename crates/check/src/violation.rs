//! The possible violations in a record.

use core::fmt;

use record::{Cause, ElementId, EventSource, PacketNumber, SentKind};
use units::{Bytes, HostId, Instant, Offset};

use crate::world::WorldError;

/// Reason why a record is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The description of the world is inconsistent.
    World(WorldError),
    /// Violations in the order of detection; a long list is truncated.
    Record(Vec<Violation>),
}

/// A violation of an invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Time of the event.
    pub at: Instant,
    /// Subject of the event.
    pub about: Subject,
    /// Kind of violation.
    pub what: ViolationKind,
}

/// Subject of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The record as a whole.
    Record,
    /// A packet.
    Packet(PacketNumber),
    /// One end of a connection.
    End(EventSource),
}

/// Kinds of violations. Offsets count from 0 at the first payload byte; a FIN is one byte more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViolationKind {
    /// Time decreased from `before`.
    TimeRanBack {
        /// Time reached before.
        before: Instant,
    },
    /// No connection of that number has an end on that host.
    NoSuchEndpoint,
    /// The element does not exist.
    NoSuchElement {
        /// Its number.
        hop_index: ElementId,
    },

    // Packets.
    /// The packet number is wrong: packets and copies are numbered without gaps.
    WrongNumber {
        /// The next number.
        expected: PacketNumber,
    },
    /// The packet has events but was never sent.
    UnknownPacket,
    /// The packet has events after its arrival or drop.
    AlreadyGone,
    /// The packet is elsewhere, or was already there.
    IsElsewhere {
        /// Its element according to the record.
        hop_index: ElementId,
    },
    /// The packet left one element and reached no other.
    Vanished,
    /// The packet arrived at a host that is not, or not yet, the end of its route.
    NotAtTheEnd {
        /// Its host according to the record.
        host: HostId,
    },
    /// The packet left an element too early.
    LeftEarly {
        /// The element.
        hop_index: ElementId,
        /// Earliest possible time.
        due: Instant,
    },
    /// The packet left an element too late.
    LeftLate {
        /// The element.
        hop_index: ElementId,
        /// Latest possible time.
        due: Instant,
    },
    /// The packet never left an element.
    Overdue {
        /// The element.
        hop_index: ElementId,
        /// Latest possible time.
        due: Instant,
    },
    /// The packet overtook another in an element that keeps order.
    Overtook {
        /// The element.
        hop_index: ElementId,
        /// The packet that arrived before it.
        before: PacketNumber,
    },
    /// The packet entered a full queue.
    NoRoom {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet was dropped although it fits, at an element without other drops.
    LostForNothing {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet is larger than the element passes.
    PassedTooLarge {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet passed a box that had forgotten or reset its connection.
    PassedMiddlebox {
        /// The element.
        hop_index: ElementId,
    },
    /// The element sent a packet without a dropped one that it answers, or of another kind.
    UnexpectedInjection {
        /// The element.
        hop_index: ElementId,
    },
    /// The element may not remove options from the packet, or not as many bytes.
    UnexpectedRewrite {
        /// The element.
        hop_index: ElementId,
    },
    /// The header of the packet is not that with which it left its host, less what elements removed.
    HeaderChanged,
    /// The packet passed during an outage.
    PassedDuringOutage {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet was duplicated at an element that does not duplicate, or twice.
    UnexpectedDuplicate {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet was corrupted at an element that does not corrupt.
    UnexpectedCorruption {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet was marked at an element that does not mark, or is not ECN-capable.
    UnexpectedMark {
        /// The element.
        hop_index: ElementId,
    },
    /// The packet departed without a matching transmission of its stack.
    NeverSent,
    /// The headers have an impossible size, or the packet is too large.
    BadSize {
        /// IP bytes.
        size: Bytes,
        /// Payload bytes.
        payload: Bytes,
    },
    /// The event of a packet drop is missing, or does not match the drop.
    DropMismatch,

    // Transmission.
    /// Data sent by the stack did not leave the card.
    Kept {
        /// The first missing byte.
        at: Offset,
        /// Number of missing bytes.
        bytes: Bytes,
    },
    /// Data before the connection is established, or a handshake reply before any packet arrived.
    NotConnected,
    /// The segment carries data that its kind cannot carry.
    BadKind {
        /// The kind.
        kind: SentKind,
    },
    /// The sender's state is missing.
    NoState,
    /// The sender's state contradicts its events.
    StateDiffers {
        /// Field of the state.
        field: StateField,
        /// Reported value.
        said: u64,
        /// Value according to the events.
        known: u64,
    },
    /// New bytes do not start at `snd_max`.
    NotNext {
        /// Where they start.
        at: Offset,
        /// End of the data sent.
        snd_max: Offset,
    },
    /// Retransmitted bytes were never sent, or are acknowledged.
    NotOutstanding {
        /// The first byte.
        at: Offset,
        /// Oldest unacknowledged byte.
        snd_una: Offset,
        /// End of the data sent.
        snd_max: Offset,
    },
    /// The application has not written the bytes sent.
    NeverWritten {
        /// End of the bytes sent.
        upto: Offset,
        /// End of the bytes written.
        written: Offset,
    },
    /// Bytes were retransmitted without an event that justifies the given cause.
    UnjustifiedRetransmission {
        /// The first byte.
        at: Offset,
        /// The cause given.
        cause: Cause,
    },
    /// Bytes were retransmitted twice without an event in between.
    RepeatedRetransmission {
        /// The first byte.
        at: Offset,
    },
    /// A window probe without its timer.
    NoProbeDue,
    /// New bytes exceed the congestion window.
    BeyondCwnd {
        /// Bytes in flight, the new ones included.
        flight: Bytes,
        /// The window.
        cwnd: Bytes,
    },
    /// Transmission in a fast recovery exceeds the limit of the stack.
    BeyondRecoveryLimit {
        /// Bytes compared with the window or threshold.
        held: Bytes,
        /// The window or threshold.
        cwnd: Bytes,
    },
    /// New bytes exceed the peer's receive window.
    BeyondPeerWindow {
        /// Bytes in flight, the new ones included.
        flight: Bytes,
        /// The window.
        window: Bytes,
    },

    // Feedback from the peer.
    /// `snd_una` did not advance, or not by the reported amount.
    BadAdvance {
        /// `snd_una` before.
        before: Offset,
        /// `snd_una` now.
        una: Offset,
        /// Bytes newly acknowledged, as reported.
        bytes: Bytes,
    },
    /// Unsent data is acknowledged.
    AckOfUnsent {
        /// New `snd_una`.
        una: Offset,
        /// End of the data sent.
        snd_max: Offset,
    },
    /// The acknowledgment exceeds what any received packet can carry.
    AckTooSoon {
        /// New `snd_una`.
        una: Offset,
        /// Upper bound: data the peer had when it sent the newest packet received.
        reported: Offset,
    },
    /// The connection is established although the accept queue is full.
    AcceptQueueFull,
    /// The application reads or writes before it can have taken the connection.
    NotAccepted,
    /// The application read bytes twice, or skipped some.
    BadRead {
        /// All bytes read, as reported.
        upto: Offset,
        /// Read before.
        before: Offset,
        /// Bytes read, as reported.
        bytes: Bytes,
    },
    /// The application read data that had not arrived contiguously.
    ReadTooSoon {
        /// All bytes read.
        upto: Offset,
        /// End of the contiguous data.
        arrived: Offset,
    },
    /// More packets or bytes were merged than had arrived.
    MergedFromNothing,
}

/// A field of the sender's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the fields of SenderState")]
pub enum StateField {
    SndUna,
    SndNxt,
    SndMax,
    Cwnd,
    Buffered,
    Pipe,
}

impl fmt::Display for StateField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SndUna => "snd_una",
            Self::SndNxt => "snd_nxt",
            Self::SndMax => "snd_max",
            Self::Cwnd => "cwnd",
            Self::Buffered => "buffered",
            Self::Pipe => "pipe",
        })
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World(error) => error.fmt(f),
            Self::Record(violations) => violations.iter().try_for_each(|v| writeln!(f, "{v}")),
        }
    }
}

impl core::error::Error for Rejection {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.at)?;
        match self.about {
            Subject::Record => {}
            Subject::Packet(packet) => write!(f, "packet {} ", packet.0)?,
            Subject::End(who) => write!(f, "flow {} at host {} ", who.flow.0, who.host.0)?,
        }
        self.what.fmt(f)
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TimeRanBack { before } => write!(f, "comes after {before:?}"),
            Self::NoSuchEndpoint => write!(f, "does not exist"),
            Self::NoSuchElement { hop_index } => write!(f, "is at unknown element {}", hop_index.0),
            Self::WrongNumber { expected } => write!(f, "appears before number {}", expected.0),
            Self::UnknownPacket => write!(f, "has an event but was never sent"),
            Self::AlreadyGone => write!(f, "has an event after it arrived or was dropped"),
            Self::IsElsewhere { hop_index } => write!(f, "cannot be at element {}", hop_index.0),
            Self::Vanished => write!(f, "left an element and reached no other"),
            Self::NotAtTheEnd { host } => write!(f, "cannot arrive at host {}", host.0),
            Self::LeftEarly { hop_index, due } => {
                write!(f, "left element {} before {due:?}", hop_index.0)
            }
            Self::LeftLate { hop_index, due } => {
                write!(f, "left element {} after {due:?}", hop_index.0)
            }
            Self::Overdue { hop_index, due } => {
                write!(f, "is still at element {}; it had to leave at {due:?}", hop_index.0)
            }
            Self::Overtook { hop_index, before } => {
                write!(f, "overtook packet {} in element {}", before.0, hop_index.0)
            }
            Self::NoRoom { hop_index } => {
                write!(f, "entered element {}, which was full", hop_index.0)
            }
            Self::LostForNothing { hop_index } => {
                write!(f, "was dropped at element {} without a reason", hop_index.0)
            }
            Self::PassedTooLarge { hop_index } => {
                write!(f, "is larger than element {} passes", hop_index.0)
            }
            Self::PassedMiddlebox { hop_index } => {
                write!(f, "passed element {}, which no longer passes its connection", hop_index.0)
            }
            Self::UnexpectedInjection { hop_index } => {
                write!(f, "cannot come from element {}", hop_index.0)
            }
            Self::UnexpectedRewrite { hop_index } => {
                write!(f, "cannot be changed so at element {}", hop_index.0)
            }
            Self::HeaderChanged => write!(f, "arrived with a header that it cannot have"),
            Self::PassedDuringOutage { hop_index } => {
                write!(f, "passed element {} during an outage", hop_index.0)
            }
            Self::UnexpectedDuplicate { hop_index } => {
                write!(f, "cannot be copied at element {}", hop_index.0)
            }
            Self::UnexpectedCorruption { hop_index } => {
                write!(f, "cannot be corrupted at element {}", hop_index.0)
            }
            Self::UnexpectedMark { hop_index } => {
                write!(f, "cannot be marked at element {}", hop_index.0)
            }
            Self::NeverSent => write!(f, "departed, but its stack sent no such packet"),
            Self::BadSize { size, payload } => write!(f, "has {size}, {payload} of them payload"),
            Self::DropMismatch => write!(f, "has a drop without its event, or the reverse"),
            Self::Kept { at, bytes } => write!(f, "sent {bytes} from {at} that never departed"),
            Self::NotConnected => write!(f, "sends before the connection is established"),
            Self::BadKind { kind } => {
                write!(f, "sent data that the kind `{}` cannot carry", kind.name())
            }
            Self::NoState => write!(f, "sent without a state"),
            Self::StateDiffers { field, said, known } => {
                write!(f, "reports {field} as {said}; it is {known}")
            }
            Self::NotNext { at, snd_max } => {
                write!(f, "sent new bytes from {at} on; the next is {snd_max}")
            }
            Self::NotOutstanding { at, snd_una, snd_max } => {
                write!(f, "retransmitted {at}; outstanding are {snd_una} to {snd_max}")
            }
            Self::NeverWritten { upto, written } => {
                write!(f, "sent up to {upto}; the application wrote {written}")
            }
            Self::UnjustifiedRetransmission { at, cause } => {
                let cause = cause.name();
                write!(f, "retransmitted {at} for {cause} without a preceding event")
            }
            Self::RepeatedRetransmission { at } => {
                write!(f, "retransmitted {at} twice without an event in between")
            }
            Self::NoProbeDue => write!(f, "probed the window before the timer fired"),
            Self::BeyondCwnd { flight, cwnd } => {
                write!(f, "has {flight} in flight; the congestion window is {cwnd}")
            }
            Self::BeyondRecoveryLimit { held, cwnd } => {
                write!(f, "has {held} in flight in recovery; the limit is {cwnd}")
            }
            Self::BeyondPeerWindow { flight, window } => {
                write!(f, "has {flight} in flight; the peer's window is {window}")
            }
            Self::BadAdvance { before, una, bytes } => {
                write!(f, "moved snd_una from {before} to {una} for {bytes}")
            }
            Self::AckOfUnsent { una, snd_max } => {
                write!(f, "accepted an ACK of {una}; snd_max is {snd_max}")
            }
            Self::AckTooSoon { una, reported } => {
                write!(f, "accepted an ACK of {una}; the packets received cover at most {reported}")
            }
            Self::AcceptQueueFull => write!(f, "is established with a full accept queue"),
            Self::NotAccepted => write!(f, "is used before it can have been accepted"),
            Self::BadRead { upto, before, bytes } => {
                write!(f, "read {bytes} after {before}, but reports {upto} in total")
            }
            Self::ReadTooSoon { upto, arrived } => {
                write!(f, "read up to {upto}; contiguous data ends at {arrived}")
            }
            Self::MergedFromNothing => write!(f, "merged more than had arrived"),
        }
    }
}

/// Violations kept; later ones are mostly consequences of the first.
const MOST: usize = 32;

/// The current time, and the violations found so far.
#[derive(Debug, Clone)]
pub(crate) struct ViolationLog {
    pub(crate) now: Instant,
    pub(crate) found: Vec<Violation>,
}

impl ViolationLog {
    pub(crate) const fn new() -> Self {
        Self { now: Instant::ZERO, found: Vec::new() }
    }

    #[cold]
    pub(crate) fn note(&mut self, about: Subject, what: ViolationKind) {
        if self.found.len() < MOST {
            self.found.push(Violation { at: self.now, about, what });
        }
    }
}
