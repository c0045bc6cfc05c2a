//! The packets around the first difference of a world, of the model and of the kernel.

use guest::compare::{ComparedPacket, FlowComparison, PacketRecord};

/// Packets shown before the first difference and after it.
const BEFORE: usize = 24;
const AFTER: usize = 10;

/// A packet with its direction and index.
type Seen<'a> = (u64, bool, usize, &'a ComparedPacket);

/// Prints the packets of a flow around its first difference, those of the model first.
pub(super) fn show(
    flow: usize,
    compared: &FlowComparison,
    model: &PacketRecord,
    real: &PacketRecord,
) {
    let Some(first) = &compared.first else { return };
    println!("flow {}: {first:?}", compared.flow);
    println!(
        "same packets {}, latest {} ns, first late {:?}, first window {:?}",
        compared.same_packets, compared.largest_time_ns, compared.first_late, compared.first_window
    );
    let at = first.at_ns();
    for (name, record) in [("model", model), ("kernel", real)] {
        let ways = [true, false].into_iter().flat_map(|way| {
            let packets = record.packets(flow, way).iter().enumerate();
            packets.map(move |(index, packet)| (packet.at_ns, way, index, packet))
        });
        let mut packets: Vec<Seen<'_>> = ways.collect();
        packets.sort_by_key(|packet| packet.0);
        // Of a burst of one instant, that packet itself.
        let differs = |packet: &Seen<'_>| (packet.1, packet.2) == (first.forward, first.index);
        let split = packets.iter().position(differs).unwrap_or(packets.len());
        println!("{name}:");
        let range = split.saturating_sub(BEFORE)..(split + AFTER).min(packets.len());
        for (at_ns, way, index, packet) in &packets[range] {
            let ComparedPacket { seq, len, ack, flags, sack, window, .. } = packet;
            let way = if *way { '>' } else { '<' };
            let mark = if *at_ns == at { '*' } else { ' ' };
            println!(
                "{mark}{way}{index:<6} {:>14.6} ms {seq}+{len} ack {ack} {flags} win {window} {sack:?}",
                *at_ns as f64 / 1e6
            );
        }
    }
}
