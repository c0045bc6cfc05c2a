//! Interfaces of everything that runs in virtual time. Layer 2.
//!
//! [`Cx`] is the context of one call: the current time, the source of its events and the recorder.
//! [`Endpoint`] is the sans-IO interface of a transport; [`Element`] that of an element on a path.
//! Both report when they want to run next, so one driver serves both.
//!
//! This crate has no clock and no event queue.

mod bbr_state;

pub use bbr_state::bbr_draft_state;

use record::{Event, EventSource, Purpose, Recorder, SendLimit, Sender, SynOffers};
use units::{Bytes, Dir, Ecn, FlowId, Instant, SeqNum};

/// The context of one call: the time, the source of events and the recorder.
#[derive(Debug)]
pub struct Cx<'a, R: Recorder> {
    /// Current time.
    pub now: Instant,
    /// Host and flow that events belong to.
    pub source: EventSource,
    /// Receives the events.
    pub rec: &'a mut R,
}

impl<R: Recorder> Cx<'_, R> {
    /// Records an event; the closure runs only if the recorder is on.
    #[inline(always)]
    pub fn emit(&mut self, event: impl FnOnce() -> Event) {
        if R::ON {
            self.rec.record(self.now, self.source, event(), None);
        }
    }

    /// Records an event of a sender; the recorder may read the sender's state after it.
    #[inline(always)]
    pub fn emit_with_state(&mut self, sender: &impl Sender, event: impl FnOnce() -> Event) {
        if R::ON {
            self.rec.record_sender(self.now, self.source, event, sender);
        }
    }
}

/// A notification from a transport to its application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Signal {
    /// The connection is established.
    Connected,
    /// The send buffer has space again.
    Writable,
    /// Data can be read, or the peer has closed.
    Readable,
    /// Both sides have closed.
    Closed,
    /// The connection was reset, refused or timed out.
    Aborted,
}

/// A transport endpoint without clock or socket.
///
/// After any `handle_*` or a call from the application: call [`Endpoint::poll_transmit`] until it
/// returns an `Err`, then [`Endpoint::poll_timeout`] and [`Endpoint::poll_signal`]. After
/// `handle_timeout(now)` no deadline at or before `now` remains.
pub trait Endpoint {
    /// The unit of transmission.
    type Segment;

    /// A segment arrived.
    fn handle_segment<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Self::Segment);

    /// The deadline that [`Endpoint::poll_timeout`] returned has been reached.
    fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>);

    /// Writes the next segment to send into `slot`.
    ///
    /// # Errors
    /// The reason why nothing can be sent now.
    fn poll_transmit<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Self::Segment,
    ) -> Result<(), SendLimit>;

    /// The next deadline and its purpose.
    fn poll_timeout(&self) -> Option<(Instant, Purpose)>;

    /// The next notification for the application.
    fn poll_signal(&mut self) -> Option<Signal>;
}

/// Index of a packet in a pool: elements pass indices, not packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u32);

/// The fields of a packet that an element can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketView {
    /// IP bytes.
    pub size: Bytes,
    /// Bytes of payload; 0 if it carries no data.
    pub payload: u32,
    /// Connection that the packet belongs to.
    pub flow: FlowId,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: SeqNum,
    /// True for a SYN.
    pub syn: bool,
    /// True for a SYN without ACK that asks for ECN: it has ECE and CWR (RFC 3168 section 6.1.1).
    pub ecn_syn: bool,
    /// Direction on its connection.
    pub dir: Dir,
    /// Acknowledgment that the packet carries.
    pub ack: PacketAck,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

/// The acknowledgment that a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketAck {
    /// None: the packet has no acknowledgment number.
    None,
    /// A pure acknowledgment of all before this number: no data, no SACK blocks, no flags.
    Pure(SeqNum),
    /// An acknowledgment of all before this number, with data, SACK blocks or flags.
    Piggybacked(SeqNum),
}

/// The result of offering a packet to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketVerdict {
    /// The element holds the packet and will release it.
    Queued,
    /// The element holds the packet and will release it; it dropped another packet to make room.
    Replaced(PacketId),
    /// The packet continues at once.
    Forwarded,
    /// The packet continues at once, followed by a copy.
    Duplicated,
    /// The packet continues at once with a wrong checksum.
    Corrupted,
    /// The packet, a SYN, continues at once without some of what it offers.
    Stripped(SynOffers),
    /// The packet is dropped.
    Dropped,
    /// The packet is dropped, and the element sends others because of it.
    Rejected(BoxAnswer),
}

/// What an element sends because of a packet that it does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxAnswer {
    /// An ICMP error to its sender: the packet is larger than this MTU in bytes.
    TooBig {
        /// The MTU.
        mtu: u32,
    },
    /// A RST to its sender.
    Reset,
    /// A RST to its receiver in its place, and one to its sender.
    ResetBoth,
}

/// An action of an element on a packet that it holds or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketAction {
    /// The packet was marked CE (RFC 3168).
    Marked(PacketId),
    /// The packet was dropped.
    Dropped(PacketId),
}

/// An element on a path.
///
/// A packet that is forwarded at once must not overtake one due at or before the same time, unless
/// the element reorders packets.
pub trait Element {
    /// Offers a packet to the element.
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict;

    /// When the next packet held leaves.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// The next packet that leaves at or before `now`; call until `None`.
    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let _ = now;
        None
    }
    /// The next further action of the last [`Element::accept`] or [`Element::wake`]; call until
    /// `None`.
    fn next_action(&mut self) -> Option<PacketAction> {
        None
    }
}
