//! Shortened paths of the engine for the common cases. A test runs the engine without them and
//! compares the results.

use units::Instant;

use crate::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};

/// A set of shortened paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortcuts(u8);

impl Shortcuts {
    /// Header prediction: the next bytes, or a pure acknowledgment, in order.
    pub const ARRIVAL: Self = Self(1);
    /// An acknowledgment while nothing is missing.
    pub const CALM_ACK: Self = Self(1 << 1);
    /// An output pass without data to send.
    pub const IDLE_PASS: Self = Self(1 << 2);
    /// Further full packets that one output pass covers, and the pass after one that fills the window.
    pub const TRAIN: Self = Self(1 << 3);
    /// A full packet of new data.
    pub const FULL_PACKET: Self = Self(1 << 4);
    /// Such packets are copies of the first.
    pub const BURST: Self = Self(1 << 5);
    /// A packet leaves a first-in, first-out element that only one route uses.
    pub const ELEMENT: Self = Self(1 << 6);
    /// A host without taps, offloads and delays.
    pub const HOST: Self = Self(1 << 7);
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// Is this one in the set?
    #[inline(always)]
    pub const fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }

    /// The set as bits, for [`LongWay`].
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// A recorder of a run without some of the [`Shortcuts`], by their bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct LongWay<R, const WITHOUT: u8>(pub R);

impl<R: Recorder, const WITHOUT: u8> Recorder for LongWay<R, WITHOUT> {
    const ON: bool = R::ON;
    const PACKETS: bool = R::PACKETS;
    const SHORTCUTS: Shortcuts = Shortcuts(R::SHORTCUTS.0 & !WITHOUT);

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.0.record_sender(at, who, event, sender);
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.0.record_packet(at, movement);
    }
}
