//! Linux's GRO, as the driver's poll routine calls it.
//!
//! Sources: tcp_gro_receive (tcp_offload.c), skb_gro_receive and dev_gro_receive (gro.c), inet's
//! part of gro_receive_network_flush. Kernel 6.18, as measured (golden/linux).
//!
//! A packet joins the aggregate of its flow if the headers agree except for sequence number,
//! length, PSH and FIN: so a different acknowledgment number, window, timestamp or ECN mark starts
//! a new aggregate. PSH, FIN or a short packet joins and ends it. Pure ACKs are never merged.
//!
//! Not modelled: the limit of eight held flows per hash bucket, and IP identification.

use packet::{Flags, Segment};

/// Limits and rules. The kernel's are [`GroParams::LINUX`]; cards with a more permissive LRO check
/// fewer conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroParams {
    /// IP bytes that one aggregate, with one header, must stay below (`gro_max_size`).
    pub max_size: u32,
    /// Maximum number of packets in one aggregate.
    pub max_packets: u32,
    /// Whether PSH ends an aggregate.
    pub ends_at_push: bool,
    /// Whether all packets must have equal timestamps. If not, the aggregate carries the last ones.
    pub same_timestamps: bool,
}

impl GroParams {
    /// The kernel's GRO.
    pub const LINUX: Self =
        Self { max_size: 65_536, max_packets: u32::MAX, ends_at_push: true, same_timestamps: true };
}

/// GRO of one receive queue.
#[derive(Debug, Clone)]
pub struct Gro {
    params: GroParams,
    /// One aggregate per flow, the oldest first.
    held: Vec<Segment>,
}

impl Gro {
    /// Creates an empty queue.
    pub fn new(params: GroParams) -> Self {
        Self { params, held: Vec::new() }
    }

    /// `tcp_gro_receive`: takes the next packet of the pass and appends the aggregates it completes
    /// to `up`.
    pub fn push(&mut self, packet: &Segment, up: &mut Vec<Segment>) {
        let held = self.held.iter().position(|p| p.flow == packet.flow && p.dir == packet.dir);
        let Some(at) = held else {
            self.hold_or_pass(packet, up);
            return;
        };
        let aggregate = &mut self.held[at];
        if !joins(&self.params, aggregate, packet) {
            up.push(self.held.remove(at));
            self.hold_or_pass(packet, up);
            return;
        }
        let mss = aggregate_mss(aggregate);
        aggregate.gso_size = mss as u16;
        aggregate.payload += packet.payload;
        aggregate.flags |= packet.flags;
        aggregate.timestamps = packet.timestamps;
        if packet.payload < mss
            || self.ends(packet)
            || self.held[at].packets() >= self.params.max_packets
        {
            up.push(self.held.remove(at));
        }
    }

    /// Ends the pass: delivers the held aggregates, the oldest first.
    pub fn flush(&mut self, up: &mut Vec<Segment>) {
        up.append(&mut self.held);
    }

    fn hold_or_pass(&mut self, packet: &Segment, up: &mut Vec<Segment>) {
        if packet.payload == 0 || self.ends(packet) {
            up.push(*packet);
        } else {
            self.held.push(*packet);
        }
    }

    /// Returns whether `packet` ends its aggregate.
    fn ends(&self, packet: &Segment) -> bool {
        let closing = Flags::URG | Flags::RST | Flags::SYN | Flags::FIN;
        packet.flags.0 & closing.0 != 0
            || (self.params.ends_at_push && packet.flags.has(Flags::PSH))
    }
}

/// Returns whether `packet` may be appended to `aggregate`.
fn joins(params: &GroParams, aggregate: &Segment, packet: &Segment) -> bool {
    let closing = Flags::FIN | Flags::PSH;
    let size =
        aggregate.header_len().saturating_add(aggregate.payload).saturating_add(packet.payload);
    let timestamps_agree = if params.same_timestamps {
        packet.timestamps == aggregate.timestamps
    } else {
        packet.timestamps.is_some() == aggregate.timestamps.is_some()
    };
    packet.seq.0 == aggregate.seq.0.wrapping_add(aggregate.payload)
        && packet.payload != 0
        && packet.payload <= aggregate_mss(aggregate)
        && packet.ack == aggregate.ack
        && packet.window == aggregate.window
        && packet.flags.without(closing) == aggregate.flags.without(closing)
        && !packet.flags.has(Flags::CWR)
        && timestamps_agree
        && packet.options == aggregate.options
        && packet.ecn == aggregate.ecn
        && packet.ip == aggregate.ip
        && size < params.max_size
        && aggregate.packets() < params.max_packets
}

/// Payload of the aggregate's first packet.
fn aggregate_mss(aggregate: &Segment) -> u32 {
    match aggregate.gso_size {
        0 => aggregate.payload,
        size => u32::from(size),
    }
}

#[cfg(test)]
mod tests {
    use packet::Timestamps;
    use units::{FlowId, SeqNum};

    use super::*;

    const MSS: u32 = 1_448;

    fn data(number: u32) -> Segment {
        Segment {
            seq: SeqNum(number * MSS),
            payload: MSS,
            flags: Flags::ACK,
            window: 100,
            timestamps: Some(Timestamps { val: 7, ecr: 9 }),
            ..Segment::default()
        }
    }

    fn pushed(number: u32) -> Segment {
        Segment { flags: Flags::ACK | Flags::PSH, ..data(number) }
    }

    fn later(number: u32) -> Segment {
        Segment { timestamps: Some(Timestamps { val: 8, ecr: 9 }), ..data(number) }
    }

    /// (first segment, packets, payload) of the aggregates delivered in one pass.
    fn pass(params: GroParams, packets: &[Segment]) -> Vec<(u32, u32, u32)> {
        let mut gro = Gro::new(params);
        let mut up = Vec::new();
        packets.iter().for_each(|packet| gro.push(packet, &mut up));
        gro.flush(&mut up);
        up.iter().map(|s| (s.seq.0 / MSS, s.packets(), s.payload)).collect()
    }

    fn linux(packets: &[Segment]) -> Vec<(u32, u32, u32)> {
        pass(GroParams::LINUX, packets)
    }

    #[test]
    fn an_aggregate_stays_below_64_kib_with_its_header() {
        // 52 + 45 * 1448 = 65212; one more would be 66660.
        let packets: Vec<_> = (0..50).map(data).collect();
        assert_eq!(linux(&packets), [(0, 45, 65_160), (45, 5, 7_240)]);
    }

    #[test]
    fn push_ends_the_aggregate_it_is_in() {
        let packets = [data(0), pushed(1), pushed(2), data(3)];
        assert_eq!(linux(&packets), [(0, 2, 2 * MSS), (2, 1, MSS), (3, 1, MSS)]);
        let mut gro = Gro::new(GroParams::LINUX);
        let mut up = Vec::new();
        gro.push(&data(0), &mut up);
        gro.push(&pushed(1), &mut up);
        assert!(up[0].flags.has(Flags::PSH) && u32::from(up[0].gso_size) == MSS);
    }

    #[test]
    fn a_short_packet_joins_and_ends_a_long_one_does_not_join() {
        let short = Segment { payload: 100, ..data(1) };
        let after = Segment { seq: SeqNum(MSS + 100), ..data(0) };
        assert_eq!(linux(&[data(0), short, after]), [(0, 2, 1_548), (1, 1, MSS)]);
        let long = Segment { payload: MSS + 1, ..data(1) };
        assert_eq!(linux(&[data(0), long]), [(0, 1, MSS), (1, 1, MSS + 1)]);
    }

    #[test]
    fn a_header_change_starts_a_new_aggregate() {
        let changed = [
            later(1),
            Segment { ack: SeqNum(1), ..data(1) },
            Segment { window: 99, ..data(1) },
            Segment { ecn: 3, ..data(1) },
            Segment { flags: Flags::ACK | Flags::ECE, ..data(1) },
            Segment { timestamps: None, ..data(1) },
        ];
        for packet in changed {
            assert_eq!(linux(&[data(0), packet]), [(0, 1, MSS), (1, 1, MSS)], "{packet:?}");
        }
        // A gap, too.
        assert_eq!(linux(&[data(0), data(2)]), [(0, 1, MSS), (2, 1, MSS)]);
    }

    #[test]
    fn a_pure_ack_passes_after_the_held_aggregate() {
        let ack = Segment { payload: 0, ..data(1) };
        assert_eq!(linux(&[data(0), ack, data(1)]), [(0, 1, MSS), (1, 1, 0), (1, 1, MSS)]);
        let other = Segment { flow: FlowId(1), payload: 0, ..data(5) };
        assert_eq!(linux(&[data(0), other, data(1)]), [(5, 1, 0), (0, 2, 2 * MSS)]);
    }

    #[test]
    fn a_generous_card_ignores_push_and_timestamps_up_to_its_limit() {
        let card = GroParams {
            max_packets: 3,
            ends_at_push: false,
            same_timestamps: false,
            ..GroParams::LINUX
        };
        let packets = [data(0), pushed(1), later(2), later(3)];
        assert_eq!(pass(card, &packets), [(0, 3, 3 * MSS), (3, 1, MSS)]);
    }
}
