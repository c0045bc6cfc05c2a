//! A NAT or firewall that forgets idle connections.

use machine::{BoxAnswer, Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

/// Forgets a connection that has no packets for a time: none of its packets pass from then on,
/// until a SYN begins it anew. Packets that are dropped do not keep the state.
///
/// On the routes of both directions it sees the packets of both; on one, those of one.
#[derive(Debug, Clone)]
pub struct Forget {
    idle: Duration,
    resets: bool,
    /// For each connection, the time of its last packet that passed; `None` before the first.
    seen: Vec<Option<Instant>>,
}

impl Forget {
    /// Creates a box that forgets after `idle`; `resets`: it answers each later packet by a RST.
    pub const fn new(idle: Duration, resets: bool) -> Self {
        Self { idle, resets, seen: Vec::new() }
    }
}

impl Element for Forget {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        let flow = view.flow.0 as usize;
        if flow >= self.seen.len() {
            self.seen.resize(flow + 1, None);
        }
        let seen = &mut self.seen[flow];
        if view.syn || seen.is_none_or(|last| now < last + self.idle) {
            *seen = Some(now);
            return PacketVerdict::Forwarded;
        }
        match self.resets {
            true => PacketVerdict::Rejected(BoxAnswer::Reset),
            false => PacketVerdict::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bare_ack, data, handshake};
    use units::FlowId;

    const IDLE: Duration = Duration::from_nanos(100);

    #[test]
    fn an_idle_connection_is_forgotten_until_its_next_syn() {
        let syn = PacketView { syn: true, ..handshake() };
        let other = PacketView { flow: FlowId(7), ..data(1_500) };
        let verdicts = |resets| {
            let mut forget = Forget::new(IDLE, resets);
            let mut at =
                |ns, view: PacketView| forget.accept(Instant::from_nanos(ns), PacketId(1), &view);
            let passed = PacketVerdict::Forwarded;
            assert_eq!(at(0, syn), passed);
            // The packets of either direction keep it.
            assert_eq!([at(99, data(1_500)), at(198, bare_ack(1)), at(297, data(60))], [passed; 3]);
            assert_eq!(at(396, other), passed);
            let dropped = at(397, data(1_500));
            // A packet that does not pass is no sign of life.
            assert_eq!(at(398, bare_ack(1)), dropped);
            assert_eq!([at(399, other), at(400, syn), at(401, data(1_500))], [passed; 3]);
            dropped
        };
        assert_eq!(verdicts(false), PacketVerdict::Dropped);
        assert_eq!(verdicts(true), PacketVerdict::Rejected(BoxAnswer::Reset));
    }
}
