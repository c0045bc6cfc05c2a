//! Contracts of everything that lives in virtual time. Layer 2.
//!
//! [`Cx`] is all a machine may know of the world: the moment, who it is, and who listens.
//! [`Endpoint`] is the sans-IO contract of a transport; [`Element`] that of a station on a path.
//! Both answer the same question, "when do you want to run next", so one driver serves both.
//!
//! What it does not do: there is no clock and no queue of events here.

use record::{Event, Purpose, Recorder, Sender, Waiting, Who};
use units::{Bytes, FlowId, Instant, SeqNum};

/// The moment, the speaker and the listener of one step of a machine.
#[derive(Debug)]
pub struct Cx<'a, R: Recorder> {
    /// The present moment.
    pub now: Instant,
    /// Whom events concern.
    pub who: Who,
    /// Who listens.
    pub rec: &'a mut R,
}

impl<R: Recorder> Cx<'_, R> {
    /// Tells an event; the closure runs only if somebody listens.
    #[inline(always)]
    pub fn emit(&mut self, event: impl FnOnce() -> Event) {
        if R::ON {
            self.rec.record(self.now, self.who, event(), None);
        }
    }

    /// Tells an event of a sender, whose state after it may be read.
    #[inline(always)]
    pub fn emit_of(&mut self, sender: &impl Sender, event: impl FnOnce() -> Event) {
        if R::ON {
            self.rec.record_sender(self.now, self.who, event, sender);
        }
    }
}

/// What a transport tells the application above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Signal {
    /// The connection is established.
    Connected,
    /// The send buffer has room again.
    Writable,
    /// Bytes lie ready to be read, or the peer has closed.
    Readable,
    /// Both sides have closed.
    Closed,
    /// The connection was given up or refused.
    Aborted,
}

/// A transport endpoint without clock or socket.
///
/// After any `handle_*` or a call of the application: drain [`Endpoint::poll_transmit`] until it
/// gives an `Err`, then ask [`Endpoint::poll_timeout`] and [`Endpoint::poll_signal`]. After
/// `handle_timeout(now)` no deadline at or before `now` remains.
pub trait Endpoint {
    /// What travels.
    type Segment;

    /// A segment arrived.
    fn handle_segment<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Self::Segment);

    /// The deadline that [`Endpoint::poll_timeout`] gave has come.
    fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>);

    /// Puts the next segment to send into `slot`.
    ///
    /// # Errors
    /// Nothing to send for now, and why.
    fn poll_transmit<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Self::Segment,
    ) -> Result<(), Waiting>;

    /// The next deadline and what it is for.
    fn poll_timeout(&self) -> Option<(Instant, Purpose)>;

    /// The next thing to tell the application.
    fn poll_signal(&mut self) -> Option<Signal>;
}

/// A packet by its number in a pool: elements pass numbers, not packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u32);

/// What an element may know of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// IP bytes.
    pub size: Bytes,
    /// Bytes of payload; 0 if it carries no data.
    pub payload: u32,
    /// Connection it belongs to.
    pub flow: FlowId,
    /// Number of its first byte, or of its SYN.
    pub seq: SeqNum,
    /// Does it begin a stream?
    pub syn: bool,
    /// Does it travel towards the host that opened the connection?
    pub back: bool,
    /// What it acknowledges.
    pub ack: Ack,
    /// May a queue mark it in place of losing it (ECN field of the IP header, RFC 3168)?
    pub capable: bool,
}

/// What a packet acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// Nothing: it has no acknowledgment number.
    None,
    /// All before this number, and it does nothing else: no data, no SACK blocks, no flags.
    Bare(SeqNum),
    /// All before this number, beside other things.
    Along(SeqNum),
}

/// What became of a packet given to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The element has it and will give it back.
    Taken,
    /// The element has it and will give it back; another that it had is lost in its favour.
    Replaced(PacketId),
    /// It goes on at once.
    Passed,
    /// It goes on at once, and a copy of it behind it.
    Doubled,
    /// It goes on at once, but its checksum is wrong now.
    Damaged,
    /// It is lost.
    Dropped,
}

/// What an element did to a packet that it has, or had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was told that it met congestion (CE, RFC 3168).
    Marked(PacketId),
    /// It is lost.
    Lost(PacketId),
}

/// A station on a path.
///
/// What passes at once must not overtake what is to leave at or before the same moment, unless
/// changing the order is what the element is for.
pub trait Element {
    /// Takes a packet, or lets it pass.
    fn accept(&mut self, now: Instant, packet: PacketId, view: &View) -> Verdict;

    /// When the next packet that it holds leaves.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// A packet that leaves at or before `now`; call until `None`.
    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let _ = now;
        None
    }
    /// What the last call of [`Element::accept`] or [`Element::wake`] did to packets besides; call
    /// until `None`.
    fn next_fate(&mut self) -> Option<Fate> {
        None
    }
}
