//! Views of packets for the tests of this crate.

use machine::{Element, PacketAck, PacketId, PacketView};
use units::{Bytes, Dir, Ecn, FlowId, Instant, SeqNum};

/// A data packet of `size` IP bytes.
pub(crate) const fn data(size: u32) -> PacketView {
    let payload = size.saturating_sub(52);
    let ack = PacketAck::Piggybacked(SeqNum(1));
    PacketView {
        size: Bytes(size as u64),
        payload,
        flow: FlowId(0),
        dir: Dir::Forward,
        ack,
        seq: SeqNum(1),
        syn: false,
        ecn_syn: false,
        ecn: Ecn::NotEct,
    }
}

/// A bare ACK of all bytes before `ack`.
pub(crate) const fn bare_ack(ack: u32) -> PacketView {
    let ack = PacketAck::Pure(SeqNum(ack));
    PacketView { size: Bytes(52), dir: Dir::Reverse, ack, ..data(52) }
}

/// A packet without payload, so that rules for data do not cover it.
pub(crate) const fn handshake() -> PacketView {
    PacketView { size: Bytes(60), ack: PacketAck::None, ..data(52) }
}

/// All departures with their times, if the element is woken at each `next_wake`.
pub(crate) fn drain(element: &mut impl Element) -> Vec<(u64, u32)> {
    let mut left = Vec::new();
    while let Some(at) = element.next_wake() {
        left.extend(leave(element, at));
    }
    left
}

/// All departures at `at`.
pub(crate) fn leave(element: &mut impl Element, at: Instant) -> Vec<(u64, u32)> {
    core::iter::from_fn(|| element.wake(at)).map(|PacketId(id)| (at.as_nanos(), id)).collect()
}
