//! Segmentation offload: a burst leaves the card as packets of `gso_size`.
//!
//! Sources: tcp_gso_segment (Linux, tcp_offload.c), and what cards do for FreeBSD's `CSUM_TSO`:
//! PSH and FIN stay with the last packet, CWR with the first, everything else is on all of them.

use core::iter::FusedIterator;

use packet::{Flags, Segment};
use units::SeqNum;

/// Splits `burst` into its packets, in order. A burst without `gso_size` is one packet.
#[inline]
pub fn split(burst: &Segment) -> Split {
    Split { rest: Some(*burst) }
}

/// Packets of a burst.
#[derive(Debug, Clone)]
pub struct Split {
    rest: Option<Segment>,
}

impl Iterator for Split {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        let mut packet = self.rest?;
        let size = u32::from(packet.gso_size);
        self.rest = None;
        if size != 0 && packet.payload > size {
            let mut rest = packet;
            rest.seq = SeqNum(rest.seq.0.wrapping_add(size));
            rest.payload -= size;
            rest.flags = rest.flags.without(Flags::CWR);
            self.rest = Some(rest);
            packet.payload = size;
            packet.flags = packet.flags.without(Flags::PSH | Flags::FIN);
        }
        packet.gso_size = 0;
        Some(packet)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest.map_or(0, |rest| rest.packets() as usize);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Split {}
impl FusedIterator for Split {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_two_and_a_half_becomes_three_packets() {
        let burst = Segment {
            seq: SeqNum(u32::MAX),
            payload: 2_500,
            gso_size: 1_000,
            flags: Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR | Flags::ECE,
            ..Segment::default()
        };
        let packets = split(&burst);
        assert_eq!(packets.len(), 3);
        let got: Vec<_> = packets.map(|p| (p.seq.0, p.payload, p.gso_size, p.flags)).collect();
        let inner = Flags::ACK | Flags::ECE;
        assert_eq!(
            got,
            [
                (u32::MAX, 1_000, 0, inner | Flags::CWR),
                (999, 1_000, 0, inner),
                (1_999, 500, 0, inner | Flags::PSH | Flags::FIN),
            ]
        );
    }

    #[test]
    fn a_lone_packet_stays_as_it_is() {
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        assert_eq!(split(&ack).collect::<Vec<_>>(), [ack]);
        let full = Segment { payload: 1_000, gso_size: 1_000, ..ack };
        let packets: Vec<_> = split(&full).collect();
        assert_eq!(packets, [Segment { gso_size: 0, ..full }]);
    }
}
