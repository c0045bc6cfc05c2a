//! Selects packets by the bytes they carry, so that every run loses the same bytes, whatever else
//! is transmitted.

use machine::PacketView;
use units::{Offset, SeqNum};

/// Selects the first `times` transmissions, retransmissions included, of every packet whose first
/// payload byte is in `[from, until)` of its stream. Each direction of a connection is a stream of
/// its own, counted from 0 after the SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte of the range.
    pub from: Offset,
    /// First byte after the range.
    pub until: Offset,
    /// Transmissions of a packet that are selected.
    pub times: u32,
}

/// State of a [`ByteRange`].
#[derive(Debug, Clone)]
pub(super) struct ByteRangeSelector {
    range: ByteRange,
    /// By flow and direction; `None` before its SYN has passed.
    streams: Vec<Option<ByteStreamState>>,
}

/// State of one stream.
#[derive(Debug, Clone)]
struct ByteStreamState {
    isn: SeqNum,
    /// Highest offset seen, with the SYN at 0.
    furthest: Offset,
    /// First bytes of packets in the range, ascending, and how often each was selected.
    picked: Vec<(u64, u32)>,
}

impl ByteRangeSelector {
    pub(super) const fn new(range: ByteRange) -> Self {
        Self { range, streams: Vec::new() }
    }

    /// Returns whether this packet, the next one, is selected. All packets must be passed in, SYNs
    /// too.
    pub(super) fn picks(&mut self, view: &PacketView) -> bool {
        let stream = 2 * view.flow.0 as usize + view.dir as usize;
        if view.syn {
            self.begin(stream, view.seq);
        }
        if view.payload == 0 {
            return false;
        }
        let Some(Some(seen)) = self.streams.get_mut(stream) else { return false };
        seen.picks(&self.range, view)
    }

    /// Starts a stream at a SYN; a retransmitted SYN changes nothing.
    fn begin(&mut self, stream: usize, isn: SeqNum) {
        if self.streams.len() <= stream {
            self.streams.resize_with(stream + 1, || None);
        }
        let slot = &mut self.streams[stream];
        if slot.as_ref().is_none_or(|seen| seen.isn != isn) {
            *slot = Some(ByteStreamState { isn, furthest: Offset(0), picked: Vec::new() });
        }
    }
}

impl ByteStreamState {
    fn picks(&mut self, range: &ByteRange, view: &PacketView) -> bool {
        let Some(place) = view.seq.near(self.isn, self.furthest) else { return false };
        self.furthest = self.furthest.max(place);
        // Skip the SYN.
        let Some(first) = place.0.checked_sub(1) else { return false };
        if !(range.from.0..range.until.0).contains(&first) {
            return false;
        }
        let count = match self.picked.binary_search_by_key(&first, |&(byte, _)| byte) {
            Ok(at) => &mut self.picked[at].1,
            Err(at) => {
                self.picked.insert(at, (first, 0));
                &mut self.picked[at].1
            }
        };
        let picks = *count < range.times;
        *count += u32::from(picks);
        picks
    }
}

#[cfg(test)]
mod tests {
    use units::{Dir, FlowId, Instant};

    use super::*;
    use crate::selection::{PacketClass, PacketSelector, RandomSource, SelectionRule};
    use crate::testing::{data, handshake};

    const ISN: u32 = 0xffff_ff00;

    fn chooser(from: u64, until: u64, times: u32) -> PacketSelector {
        let range = ByteRange { from: Offset(from), until: Offset(until), times };
        let random_source = RandomSource { seed: 1, owner: "test" };
        let mut chooser =
            PacketSelector::new(&SelectionRule::Bytes(range), PacketClass::All, &random_source);
        assert!(!chooser.picks(Instant::ZERO, &syn()));
        chooser
    }

    fn syn() -> PacketView {
        PacketView { syn: true, seq: SeqNum(ISN), ..handshake() }
    }

    /// A packet whose first payload byte is `first`.
    fn at(first: u64) -> PacketView {
        PacketView { seq: Offset(first + 1).to_seq(SeqNum(ISN)), ..data(1_500) }
    }

    #[test]
    fn the_first_byte_decides() {
        let mut chooser = chooser(1_000, 2_000, 1);
        // A packet that only overlaps the range is not selected.
        let picked =
            [0, 999, 1_000, 1_999, 2_000].map(|first| chooser.picks(Instant::ZERO, &at(first)));
        assert_eq!(picked, [false, false, true, true, false]);
    }

    #[test]
    fn each_packet_is_selected_the_declared_number_of_times() {
        let mut chooser = chooser(0, 3_000, 2);
        let sent = [0, 1_448, 0, 0, 2_896, 1_448, 1_448, 700, 0, 2_896];
        let picked = sent.map(|first| chooser.picks(Instant::ZERO, &at(first)));
        assert_eq!(picked, [true, true, true, false, true, true, false, true, false, true]);
    }

    #[test]
    fn a_retransmitted_syn_keeps_the_state() {
        let mut chooser = chooser(0, 10, 1);
        assert!(chooser.picks(Instant::ZERO, &at(0)));
        assert!(!chooser.picks(Instant::ZERO, &syn()));
        assert!(!chooser.picks(Instant::ZERO, &at(0)));
        // Another connection under the same number starts from scratch.
        assert!(!chooser.picks(Instant::ZERO, &PacketView { seq: SeqNum(ISN + 5), ..syn() }));
        assert!(chooser.picks(Instant::ZERO, &PacketView { seq: SeqNum(ISN + 6), ..data(1_500) }));
    }

    #[test]
    fn wrapped_sequence_numbers_are_distinguished() {
        // The same 32-bit sequence numbers as those of the range, 4 GiB further on.
        let mut chooser = chooser(1_000, 2_000, 9);
        for first in (0..(1 << 32) + 10_000).step_by(1 << 20) {
            assert_eq!(
                chooser.picks(Instant::ZERO, &at(first)),
                (1_000..2_000).contains(&first),
                "{first}"
            );
        }
        assert!(!chooser.picks(Instant::ZERO, &at((1 << 32) + 1_500)));
    }

    #[test]
    fn each_direction_of_a_connection_is_a_stream() {
        let mut chooser = chooser(0, 10, 1);
        let back = |view: PacketView| PacketView { dir: Dir::Reverse, ..view };
        let other = |view: PacketView| PacketView { flow: FlowId(7), ..view };
        assert!(!chooser.picks(Instant::ZERO, &back(at(0))), "its SYN has not been seen");
        assert!(!chooser.picks(Instant::ZERO, &back(syn())));
        assert!(!chooser.picks(Instant::ZERO, &other(syn())));
        assert!(chooser.picks(Instant::ZERO, &at(0)));
        assert!(chooser.picks(Instant::ZERO, &back(at(0))));
        assert!(chooser.picks(Instant::ZERO, &other(at(0))));
        assert!(!chooser.picks(Instant::ZERO, &at(0)));
    }

    #[test]
    fn a_rule_for_data_sees_the_handshake_too() {
        let range = ByteRange { from: Offset(0), until: Offset(10), times: 1 };
        let random_source = RandomSource { seed: 1, owner: "test" };
        let mut chooser =
            PacketSelector::new(&SelectionRule::Bytes(range), PacketClass::Data, &random_source);
        assert!(!chooser.picks(Instant::ZERO, &syn()));
        assert!(chooser.picks(Instant::ZERO, &at(0)));
    }
}
