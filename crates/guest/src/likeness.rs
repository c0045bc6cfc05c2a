//! How alike two grades of a scenario are where packet by packet is too strict: what its sender sent, how often it was
//! acknowledged, and the few figures that people read.

use units::{Duration, Instant};

use crate::compare::{ComparedPacket, PacketRecord};

/// How alike a flow is in two grades, from its packets at the host that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Likeness {
    /// Largest difference in time between the two packets of a place, in nanoseconds, less one hundredth of that time;
    /// `None` if the data packets (sequence number, length, order) or the number of packets differ in a direction.
    pub late_ns: Option<u64>,
    /// Figures of both grades.
    pub figures: [Figures; 2],
}

/// Figures of a flow in one grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Time of its last packet with new data or a FIN, in nanoseconds.
    pub end_ns: u64,
    /// Data packets that hold data sent before.
    pub retransmissions: u64,
    /// The largest window of either direction, in bytes.
    pub max_window: u64,
}

/// A period of the kernel's timer.
const TICK: Duration = Duration::from_millis(4);

impl Likeness {
    /// Compares a flow's packets in two grades.
    pub fn of(flow: usize, one: &PacketRecord, other: &PacketRecord) -> Self {
        let ends = [other.ended(), one.ended()].map(Instant::as_nanos);
        let ways = [true, false].map(|way| {
            let both = [one.packets(flow, way), other.packets(flow, way)];
            let least = both[0].len().min(both[1].len());
            // What a grade sends after the end of the other's run is no difference.
            [0, 1].map(|grade| {
                let over = |packet: &ComparedPacket| packet.at_ns >= ends[grade];
                let late = both[grade][least..].iter().position(over);
                &both[grade][..late.map_or(both[grade].len(), |late| least + late)]
            })
        });
        let late = ways.iter().map(|way| late_ns(way[0], way[1]));
        let late_ns = late.collect::<Option<Vec<_>>>().and_then(|late| late.into_iter().max());
        let figures = [0, 1].map(|grade| Figures::of(ways.map(|way| way[grade])));
        Self { late_ns, figures }
    }

    /// Same data packets and number of acknowledgments, at times within 1 % and a tick of 4 ms.
    pub fn is_identical(&self) -> bool {
        self.late_ns.is_some_and(|late| late <= TICK.as_nanos())
    }

    /// Duration, retransmissions and largest window within 1 %.
    pub fn is_near(&self) -> bool {
        self.is_within(1)
    }

    /// Duration, retransmissions and largest window within this percentage of the larger.
    pub fn is_within(&self, percent: u64) -> bool {
        let [one, other] = &self.figures;
        let near = |one: u64, other: u64| one.abs_diff(other) * 100 <= one.max(other) * percent;
        near(one.end_ns, other.end_ns)
            && near(one.retransmissions, other.retransmissions)
            && near(one.max_window, other.max_window)
    }
}

impl Figures {
    fn of(ways: [&[ComparedPacket]; 2]) -> Self {
        let mut figures = Self::default();
        for packets in ways {
            let mut sent = 0;
            for packet in packets {
                figures.max_window = figures.max_window.max(packet.window);
                let end = packet.seq.wrapping_add(packet.len);
                if packet.len > 0 && packet.seq < sent {
                    figures.retransmissions += 1;
                } else if packet.len > 0 || packet.flags.contains('F') {
                    figures.end_ns = figures.end_ns.max(packet.at_ns);
                }
                if packet.len > 0 {
                    sent = sent.max(end);
                }
            }
        }
        figures
    }
}

/// By how much the packets of a direction differ in time at most, less one hundredth of the time; `None` if their data
/// or their number differ.
fn late_ns(one: &[ComparedPacket], other: &[ComparedPacket]) -> Option<u64> {
    let data = |packets: &[ComparedPacket]| -> Vec<(u32, u32)> {
        let data = packets.iter().filter(|packet| packet.len > 0);
        data.map(|packet| (packet.seq, packet.len)).collect()
    };
    if one.len() != other.len() || data(one) != data(other) {
        return None;
    }
    let late = |(one, other): (&ComparedPacket, &ComparedPacket)| {
        one.at_ns.abs_diff(other.at_ns).saturating_sub(one.at_ns / 100)
    };
    Some(one.iter().zip(other).map(late).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(at_ns: u64, seq: u32, len: u32, ack: u32) -> ComparedPacket {
        let flags = ".".into();
        ComparedPacket { at_ns, seq, len, ack, flags, sack: Vec::new(), window: 65_536 }
    }

    #[test]
    fn acknowledgment_numbers_do_not_count_but_data_number_of_packets_and_times_do() {
        let data = [packet(10, 1, 100, 1), packet(20, 101, 100, 1)];
        assert_eq!(late_ns(&data, &data), Some(0));
        let mut other = data.clone();
        other[1].ack = 7;
        other[1].at_ns = 1_020;
        assert_eq!(late_ns(&data, &other), Some(1_000));
        other[1].len = 99;
        assert_eq!(late_ns(&data, &other), None);
        assert_eq!(late_ns(&data, &data[..1]), None);
        assert_eq!(
            late_ns(&[packet(1_000_000, 1, 0, 5)], &[packet(1_011_000, 1, 0, 6)]),
            Some(1_000)
        );
    }

    #[test]
    fn figures_of_a_transfer() {
        let data = [packet(10, 1, 100, 1), packet(20, 101, 100, 1), packet(50, 1, 100, 1)];
        let figures = Figures::of([&data, &[]]);
        assert_eq!(figures, Figures { end_ns: 20, retransmissions: 1, max_window: 65_536 });
        let near = |end_ns| {
            let figures = [figures, Figures { end_ns, ..figures }];
            Likeness { late_ns: None, figures }
        };
        assert!(near(20).is_near() && !near(21).is_near());
        assert!(near(21).is_within(5) && !near(22).is_within(5));
    }
}
