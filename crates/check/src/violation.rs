//! All that can be wrong with a record.

use core::fmt;

use record::{Cause, PacketNumber, SentKind, StationId, Who};
use units::{Bytes, HostId, Instant, Offset};

use crate::world::WorldError;

/// Why a record is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The description of the world makes no sense.
    World(WorldError),
    /// What cannot have happened, in the order in which it was found; the rest of a long list is
    /// left out.
    Record(Vec<Violation>),
}

/// Something that cannot have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// When it is said to have happened.
    pub at: Instant,
    /// To whom.
    pub about: Subject,
    /// What is wrong with it.
    pub what: Breach,
}

/// Whom a violation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The record as a whole.
    Record,
    /// A packet.
    Packet(PacketNumber),
    /// One end of a connection.
    End(Who),
}

/// What is wrong. Offsets count from 0 at the first payload byte; a FIN is one byte more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// Time ran back from `before`.
    TimeRanBack {
        /// The moment that had been reached.
        before: Instant,
    },
    /// No connection of that number has an end on that host.
    NoSuchEnd,
    /// There is no such station.
    NoSuchStation {
        /// Its number.
        station: StationId,
    },

    // Packets.
    /// It has the wrong number: packets and copies are counted without a gap.
    WrongNumber {
        /// The number that is next.
        expected: PacketNumber,
    },
    /// It moves and never departed.
    NeverDeparted,
    /// It moves after it arrived or was lost.
    IsGone,
    /// It is somewhere else, or was already there.
    IsElsewhere {
        /// Where it is said to be.
        station: StationId,
    },
    /// It left one place and came to no other.
    Vanished,
    /// It arrived at a host that is not the end of its road, or not yet.
    NotAtTheEnd {
        /// Where it is said to have arrived.
        host: HostId,
    },
    /// It left a station too early.
    LeftEarly {
        /// The station.
        station: StationId,
        /// The earliest possible moment.
        due: Instant,
    },
    /// It left a station too late.
    LeftLate {
        /// The station.
        station: StationId,
        /// The latest possible moment.
        due: Instant,
    },
    /// It never left a station.
    Overdue {
        /// The station.
        station: StationId,
        /// The latest possible moment.
        due: Instant,
    },
    /// It left a station that keeps the order before another one.
    Overtook {
        /// The station.
        station: StationId,
        /// The packet that came before it.
        before: PacketNumber,
    },
    /// It found room in a queue that was full.
    NoRoom {
        /// The station.
        station: StationId,
    },
    /// It was lost where nothing is lost without reason, and there was room.
    LostForNothing {
        /// The station.
        station: StationId,
    },
    /// It passed when nothing passes.
    PassedAnOutage {
        /// The station.
        station: StationId,
    },
    /// It was copied where nothing is copied, or the second time.
    MayNotCopy {
        /// The station.
        station: StationId,
    },
    /// It was damaged where nothing is damaged.
    MayNotDamage {
        /// The station.
        station: StationId,
    },
    /// It was marked where nothing is marked, or cannot be marked.
    MayNotMark {
        /// The station.
        station: StationId,
    },
    /// It departed, and its stack had sent nothing of the kind.
    NeverSent,
    /// Its headers are of an impossible size, or the packet is too large.
    BadSize {
        /// IP bytes.
        size: Bytes,
        /// Payload bytes.
        payload: Bytes,
    },
    /// A packet to it was lost and the event of that loss is missing, or tells another story.
    UntrueLoss,

    // Bytes that leave.
    /// What left the stack did not leave the card.
    Kept {
        /// The first byte missing.
        at: Offset,
        /// Bytes missing.
        bytes: Bytes,
    },
    /// Nothing but the handshake may go before the connection is established, or the handshake
    /// was answered before anything came.
    NotConnected,
    /// It carries what its kind cannot carry.
    BadKind {
        /// The kind.
        kind: SentKind,
    },
    /// The sender's state is missing.
    NoState,
    /// The sender's state says one thing, its events another.
    StateDiffers {
        /// Which number.
        field: Field,
        /// What the state says.
        said: u64,
        /// What follows from the events.
        known: u64,
    },
    /// New bytes begin elsewhere than behind the last one sent.
    NotNext {
        /// Where they begin.
        at: Offset,
        /// Behind the last one sent.
        snd_max: Offset,
    },
    /// Bytes are sent again that never were sent, or that are acknowledged.
    NotOutstanding {
        /// The first byte.
        at: Offset,
        /// Oldest byte not acknowledged.
        snd_una: Offset,
        /// Behind the last one sent.
        snd_max: Offset,
    },
    /// The application has not written so much.
    NeverWritten {
        /// Behind the last byte sent.
        upto: Offset,
        /// Behind the last byte written.
        written: Offset,
    },
    /// Bytes were sent again, and nothing that came after them gave that reason.
    NoReason {
        /// The first byte.
        at: Offset,
        /// The reason given.
        cause: Cause,
    },
    /// Bytes were sent again twice, and nothing happened in between.
    TwiceForOneReason {
        /// The first byte.
        at: Offset,
    },
    /// A probe of the window without the timer for it.
    NoProbeDue,
    /// New bytes beyond the congestion window.
    BeyondCwnd {
        /// Bytes under way, the new ones included.
        flight: Bytes,
        /// The window.
        cwnd: Bytes,
    },
    /// More in a fast recovery than its rule lets go.
    BeyondInRecovery {
        /// Bytes that the window, or the threshold, has to hold.
        held: Bytes,
        /// That.
        cwnd: Bytes,
    },
    /// New bytes beyond the window that the peer offers.
    BeyondPeerWindow {
        /// Bytes under way, the new ones included.
        flight: Bytes,
        /// The window.
        window: Bytes,
    },

    // What is said about the peer.
    /// `snd_una` did not move forward, or not by that much.
    BadAdvance {
        /// `snd_una` before.
        before: Offset,
        /// `snd_una` now.
        una: Offset,
        /// Bytes newly acknowledged, as told.
        bytes: Bytes,
    },
    /// What was never sent is acknowledged.
    AckOfUnsent {
        /// New `snd_una`.
        una: Offset,
        /// Behind the last one sent.
        snd_max: Offset,
    },
    /// More is acknowledged than any packet that came can have told.
    AckTooSoon {
        /// New `snd_una`.
        una: Offset,
        /// What the peer had when the newest of the packets that came left it.
        told: Offset,
    },
    /// The application read bytes twice, or not all.
    BadRead {
        /// All bytes read, as told.
        upto: Offset,
        /// Read before.
        before: Offset,
        /// Bytes read, as told.
        bytes: Bytes,
    },
    /// The application read what had not arrived without a gap.
    ReadTooSoon {
        /// All bytes read.
        upto: Offset,
        /// All before this place had arrived.
        arrived: Offset,
    },
    /// More packets or bytes were merged than had arrived.
    MergedFromNothing,
}

/// A number of the sender's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the fields of SenderState")]
pub enum Field {
    SndUna,
    SndNxt,
    SndMax,
    Cwnd,
    Buffered,
    Pipe,
}

impl fmt::Display for Field {
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

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TimeRanBack { before } => write!(f, "comes after {before:?}"),
            Self::NoSuchEnd => write!(f, "is not in the world"),
            Self::NoSuchStation { station } => write!(f, "is at station {}: no such", station.0),
            Self::WrongNumber { expected } => write!(f, "appears when {} is next", expected.0),
            Self::NeverDeparted => write!(f, "moves but never departed"),
            Self::IsGone => write!(f, "moves after it arrived or was lost"),
            Self::IsElsewhere { station } => write!(f, "cannot be at station {}", station.0),
            Self::Vanished => write!(f, "left one place and came to no other"),
            Self::NotAtTheEnd { host } => write!(f, "cannot arrive at host {}", host.0),
            Self::LeftEarly { station, due } => {
                write!(f, "left station {} before {due:?}", station.0)
            }
            Self::LeftLate { station, due } => {
                write!(f, "left station {} after {due:?}", station.0)
            }
            Self::Overdue { station, due } => {
                write!(f, "is still at station {}; it had to leave at {due:?}", station.0)
            }
            Self::Overtook { station, before } => {
                write!(f, "overtook packet {} in station {}", before.0, station.0)
            }
            Self::NoRoom { station } => write!(f, "entered station {}, which was full", station.0),
            Self::LostForNothing { station } => {
                write!(f, "was lost at station {} without a reason", station.0)
            }
            Self::PassedAnOutage { station } => {
                write!(f, "passed station {} during an outage", station.0)
            }
            Self::MayNotCopy { station } => write!(f, "cannot be copied at station {}", station.0),
            Self::MayNotDamage { station } => {
                write!(f, "cannot be damaged at station {}", station.0)
            }
            Self::MayNotMark { station } => {
                write!(f, "cannot be marked at station {}", station.0)
            }
            Self::NeverSent => write!(f, "departed, but its stack sent nothing of the kind"),
            Self::BadSize { size, payload } => write!(f, "has {size}, {payload} of them payload"),
            Self::UntrueLoss => write!(f, "has lost a packet, or is told so, and not both"),
            Self::Kept { at, bytes } => write!(f, "sent {bytes} from {at} that never departed"),
            Self::NotConnected => write!(f, "speaks before the connection is established"),
            Self::BadKind { kind } => {
                write!(f, "sent what the kind `{}` cannot carry", kind.name())
            }
            Self::NoState => write!(f, "sent without telling its state"),
            Self::StateDiffers { field, said, known } => {
                write!(f, "reports {field} as {said}; it is {known}")
            }
            Self::NotNext { at, snd_max } => {
                write!(f, "sent new bytes from {at} on; the next is {snd_max}")
            }
            Self::NotOutstanding { at, snd_una, snd_max } => {
                write!(f, "sent {at} again; outstanding are {snd_una} to {snd_max}")
            }
            Self::NeverWritten { upto, written } => {
                write!(f, "sent up to {upto}; written are {written}")
            }
            Self::NoReason { at, cause } => {
                let cause = cause.name();
                write!(f, "sent {at} again for {cause}, of which nothing was seen since")
            }
            Self::TwiceForOneReason { at } => {
                write!(f, "sent {at} again twice; nothing came in between")
            }
            Self::NoProbeDue => write!(f, "probed the window before the timer fired"),
            Self::BeyondCwnd { flight, cwnd } => {
                write!(f, "has {flight} under way; the congestion window is {cwnd}")
            }
            Self::BeyondInRecovery { held, cwnd } => {
                write!(f, "lets {held} go in a recovery that may hold {cwnd}")
            }
            Self::BeyondPeerWindow { flight, window } => {
                write!(f, "has {flight} under way; the peer's window is {window}")
            }
            Self::BadAdvance { before, una, bytes } => {
                write!(f, "moved snd_una from {before} to {una} for {bytes}")
            }
            Self::AckOfUnsent { una, snd_max } => {
                write!(f, "took an ACK of {una}; sent are {snd_max}")
            }
            Self::AckTooSoon { una, told } => {
                write!(f, "took an ACK of {una}; no packet that came can tell more than {told}")
            }
            Self::BadRead { upto, before, bytes } => {
                write!(f, "read {bytes} after {before}, and {upto} in all")
            }
            Self::ReadTooSoon { upto, arrived } => {
                write!(f, "read up to {upto}; arrived without a gap are {arrived}")
            }
            Self::MergedFromNothing => write!(f, "merged more than had arrived"),
        }
    }
}

/// Violations kept; those behind them mostly follow from the first.
const MOST: usize = 32;

/// The moment, and what was found so far.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) now: Instant,
    pub(crate) found: Vec<Violation>,
}

impl Log {
    pub(crate) const fn new() -> Self {
        Self { now: Instant::ZERO, found: Vec::new() }
    }

    #[cold]
    pub(crate) fn note(&mut self, about: Subject, what: Breach) {
        if self.found.len() < MOST {
            self.found.push(Violation { at: self.now, about, what });
        }
    }
}
