//! Views of packets for the tests of this crate.

use machine::{Ack, Element, PacketId, View};
use units::{Bytes, FlowId, Instant, SeqNum};

/// A data packet of `size` IP bytes.
pub(crate) const fn data(size: u32) -> View {
    let payload = size.saturating_sub(52);
    let ack = Ack::Along(SeqNum(1));
    View {
        size: Bytes(size as u64),
        payload,
        flow: FlowId(0),
        back: false,
        ack,
        seq: SeqNum(1),
        syn: false,
        capable: false,
    }
}

/// A bare ACK of all before `ack`.
pub(crate) const fn bare_ack(ack: u32) -> View {
    let ack = Ack::Bare(SeqNum(ack));
    View { size: Bytes(52), back: true, ack, ..data(52) }
}

/// The same without payload, so that rules for data do not concern it.
pub(crate) const fn handshake() -> View {
    View { size: Bytes(60), ack: Ack::None, ..data(52) }
}

/// All that leaves, with its moment, if the element runs whenever it asks to.
pub(crate) fn drain(element: &mut impl Element) -> Vec<(u64, u32)> {
    let mut left = Vec::new();
    while let Some(at) = element.next_wake() {
        left.extend(leave(element, at));
    }
    left
}

/// All that leaves at `at`.
pub(crate) fn leave(element: &mut impl Element, at: Instant) -> Vec<(u64, u32)> {
    core::iter::from_fn(|| element.wake(at)).map(|PacketId(id)| (at.as_nanos(), id)).collect()
}
