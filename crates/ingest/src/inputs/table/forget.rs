//! Forgets old connections, so that a capture without end takes memory for the connections of some minutes.

use super::{ConnectionTable, NONE};

/// Fewest connections of which some are forgotten.
const LEAST: usize = 1_024;

impl ConnectionTable {
    /// Forgets the connections without a packet since `since`, in ns. It looks when there are twice as many as were left
    /// the last time: all looks together cost no more than the connections. Returns the new index of each connection,
    /// [`NONE`] for those forgotten, if it has looked.
    pub(in crate::inputs) fn forget(&mut self, since: u64) -> Option<Vec<u32>> {
        if self.live.len() < self.next_look.max(LEAST) {
            return None;
        }
        let mut left = 0;
        let renumbered: Vec<u32> = self
            .live
            .iter()
            .map(|live| {
                let last = live.record.span().map_or(0, |(_, last)| last.as_nanos());
                if last < since {
                    return NONE;
                }
                left += 1;
                left - 1
            })
            .collect();
        self.forgotten += self.live.len() as u64 - u64::from(left);
        let of = |index: u32| renumbered.get(index as usize).copied().unwrap_or(NONE);
        let mut index = 0;
        self.live.retain(|_| {
            index += 1;
            of(index - 1) != NONE
        });
        for live in &mut self.live {
            live.before = of(live.before);
        }
        self.last.retain(|_, index| {
            *index = of(*index);
            *index != NONE
        });
        self.recent = None;
        self.active = None;
        self.note_active();
        self.duplicates.renumber(of);
        self.next_look = 2 * self.live.len();
        Some(renumbered)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use diagnose::{AnalysisSettings, CapturedPacket};
    use packet::wire::Endpoints;
    use packet::{Flags, Segment};
    use units::{Instant, SeqNum};

    use super::*;
    use crate::inputs::connection_key::CaptureSource;

    const SECOND: u64 = 1_000_000_000;

    /// A connection every second, of which the first has packets to the end.
    #[test]
    fn old_connections_are_forgotten_and_others_keep_their_numbers() {
        let mut table = ConnectionTable::new(AnalysisSettings::default(), false);
        let add = |table: &mut ConnectionTable, at: u64, port: u16, flags, seq| {
            let segment = Segment { flags, seq: SeqNum(seq), ..Segment::default() };
            let packet = CapturedPacket {
                at: Instant::from_nanos(at),
                frame: 1,
                segment,
                captured: 40,
                id: 0,
                ttl: 64,
                options_cut: false,
            };
            let between = Endpoints {
                src: SocketAddr::from(([192, 0, 2, 1], port)),
                dst: SocketAddr::from(([192, 0, 2, 2], 80)),
            };
            table.note_active();
            table.packet(CaptureSource { file: 0, interface: 0 }, between, packet, 64)
        };
        let mut most = 0;
        for second in 0..20_000_u32 {
            let at = u64::from(second) * SECOND;
            let index = add(&mut table, at, 1_000 + second as u16 % 50_000, Flags::SYN, second);
            assert_eq!(table.live[index].record.stream(), second);
            if second > 0 {
                let first = add(&mut table, at, 1_000, Flags::ACK, 1);
                assert_eq!(table.live[first].record.stream(), 0, "{second}");
            }
            most = most.max(table.live.len());
            table.take_active().for_each(drop);
            if let Some(renumbered) = table.forget(at.saturating_sub(100 * SECOND)) {
                assert_eq!(renumbered[first_of(&renumbered)], 0);
                assert_eq!(table.live.len(), 102);
            }
        }
        assert_eq!(most, LEAST);
        assert_eq!(table.forgotten + table.live.len() as u64, 20_000);
    }

    fn first_of(renumbered: &[u32]) -> usize {
        renumbered.iter().position(|&index| index != NONE).unwrap()
    }
}
