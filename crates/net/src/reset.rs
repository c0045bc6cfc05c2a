//! A box that resets connections.

use machine::{BoxAnswer, Element, PacketAck, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Instant};

/// What makes the box reset a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetTrigger {
    /// This many bytes of payload have passed in one direction: the next packet does not pass.
    Bytes(Bytes),
    /// Its first packet at or after this time.
    At(Instant),
}

/// Resets connections of TCP: it replaces a packet by a RST to each end, and passes nothing of the
/// connection from then on.
#[derive(Debug, Clone)]
pub struct Reset {
    trigger: ResetTrigger,
    connections: Vec<ConnectionState>,
}

/// State of one connection.
#[derive(Debug, Clone, Copy, Default)]
struct ConnectionState {
    /// Payload passed, by direction.
    passed: [u64; 2],
    reset: bool,
}

impl Reset {
    /// Creates a box that has seen no packet.
    pub const fn new(trigger: ResetTrigger) -> Self {
        Self { trigger, connections: Vec::new() }
    }
}

impl Element for Reset {
    fn accept(&mut self, now: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        let flow = view.flow.0 as usize;
        if flow >= self.connections.len() {
            self.connections.resize(flow + 1, ConnectionState::default());
        }
        let connection = &mut self.connections[flow];
        if connection.reset {
            return PacketVerdict::Dropped;
        }
        // Only TCP has acknowledgments and SYNs here.
        let is_tcp = view.syn || !matches!(view.ack, PacketAck::None);
        let passed = &mut connection.passed[view.dir as usize];
        let due = match self.trigger {
            ResetTrigger::Bytes(bytes) => *passed >= bytes.get(),
            ResetTrigger::At(at) => now >= at,
        };
        if due && is_tcp {
            connection.reset = true;
            return PacketVerdict::Rejected(BoxAnswer::ResetBoth);
        }
        *passed += u64::from(view.payload);
        PacketVerdict::Forwarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bare_ack, data, handshake};
    use units::FlowId;

    const RESET: PacketVerdict = PacketVerdict::Rejected(BoxAnswer::ResetBoth);

    fn verdicts<const N: usize>(
        trigger: ResetTrigger,
        packets: [(u64, PacketView); N],
    ) -> [PacketVerdict; N] {
        let mut reset = Reset::new(trigger);
        packets.map(|(ns, view)| reset.accept(Instant::from_nanos(ns), PacketId(1), &view))
    }

    #[test]
    fn bytes_are_counted_by_direction() {
        use PacketVerdict::{Dropped, Forwarded};
        let other = PacketView { flow: FlowId(3), ..data(1_500) };
        let packets = [data(1_052), bare_ack(1), data(1_052), bare_ack(1), other, data(1_052)];
        let packets = packets.map(|view| (0, view));
        let trigger = ResetTrigger::Bytes(Bytes(2_000));
        assert_eq!(
            verdicts(trigger, packets),
            [Forwarded, Forwarded, Forwarded, Forwarded, Forwarded, RESET]
        );
        let packets =
            [data(2_052), bare_ack(1), data(60), bare_ack(1), other].map(|view| (0, view));
        assert_eq!(verdicts(trigger, packets), [Forwarded, Forwarded, RESET, Dropped, Forwarded]);
    }

    #[test]
    fn the_first_packet_from_its_time_on_is_replaced() {
        use PacketVerdict::{Dropped, Forwarded};
        // A packet without acknowledgment is not of TCP.
        let packets = [(9, data(60)), (10, handshake()), (11, bare_ack(1)), (12, data(60))];
        let trigger = ResetTrigger::At(Instant::from_nanos(10));
        assert_eq!(verdicts(trigger, packets), [Forwarded, Forwarded, RESET, Dropped]);
    }
}
