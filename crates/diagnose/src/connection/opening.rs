//! The handshake of a connection, as far as it was captured.

use packet::{Dir, Flags, Options, SynOptions};
use units::{Instant, SeqNum};

use crate::capture_point::CaptureDistances;
use crate::{CapturedPacket, ObservedSyn};

/// A captured SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syn {
    pub(crate) at: Instant,
    pub(crate) seq: SeqNum,
    pub(crate) options: SynOptions,
    flags: Flags,
    data: u32,
    pub(crate) window: u16,
    pub(crate) stamps: bool,
    /// All options were captured.
    pub(crate) complete: bool,
}

impl Syn {
    /// Its contents.
    pub(super) const fn observed(self) -> ObservedSyn {
        let Self { options, flags, window, stamps, data, complete, .. } = self;
        ObservedSyn { options, flags, window, timestamps: stamps, data, is_complete: complete }
    }
}

/// The SYNs of a connection, and what they agree on.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionOpening {
    /// The last SYN of each direction.
    pub(super) syn: [Option<Syn>; 2],
    /// When the ACK of the handshake was captured.
    pub(super) opened: Option<Instant>,
    /// SYNs without ACK.
    pub(super) syns: u32,
    /// Copies of the SYN-ACK.
    answers: u32,
    /// Whether the SYN of each host carries data.
    has_data: [bool; 2],
}

impl ConnectionOpening {
    /// Records a SYN; returns its data as a segment after it, see [`data_of`](Self::data_of).
    pub(super) fn push(&mut self, packet: &CapturedPacket) -> Option<CapturedPacket> {
        let segment = &packet.segment;
        let options = segment.syn_options().copied().unwrap_or_default();
        let syn = Syn {
            at: packet.at,
            seq: segment.seq,
            options,
            flags: segment.flags,
            data: segment.payload,
            window: segment.window,
            stamps: segment.timestamps.is_some(),
            complete: !packet.options_cut,
        };
        self.syns += u32::from(!segment.flags.has(Flags::ACK));
        self.answers += u32::from(segment.flags.has(Flags::ACK));
        let before = self.syn[segment.dir as usize].replace(syn);
        self.data_of(packet, before.is_none_or(|before| before.seq != syn.seq))
    }

    /// Takes the data of a SYN (RFC 9293 section 3.4, RFC 7413) as a segment after it, and the
    /// answer to them as an ACK. A SYN repeated with its data repeats the handshake only.
    fn data_of(&mut self, packet: &CapturedPacket, is_first: bool) -> Option<CapturedPacket> {
        let mut segment = packet.segment;
        let answers = segment.flags.has(Flags::ACK) && self.has_data[1 - segment.dir as usize];
        let carries = segment.payload > 0 && is_first;
        if !(carries || answers) {
            return None;
        }
        if carries {
            self.has_data[segment.dir as usize] = true;
        } else {
            segment.payload = 0;
        }
        // The window of a SYN is not scaled (RFC 7323 section 2.2).
        let shift = segment.syn_options().and_then(|syn| syn.window_scale).unwrap_or(0).min(14);
        segment.window >>= shift;
        segment.seq = SeqNum(segment.seq.0.wrapping_add(1));
        segment.flags = segment.flags.without(Flags::SYN);
        segment.options = Options::None;
        Some(CapturedPacket { segment, ..*packet })
    }

    /// Distances from the capture point, if this packet ends the handshake.
    pub(super) fn distances(&mut self, packet: &CapturedPacket) -> Option<CaptureDistances> {
        let [Some(syn), Some(answer)] = &self.syn else { return None };
        if packet.segment.dir != Dir::Forward || !packet.segment.flags.has(Flags::ACK) {
            return None;
        }
        self.opened.get_or_insert(packet.at);
        if self.answers > 1 {
            // Which copy this answers is unknown (Karn's algorithm, RFC 6298 section 3).
            return None;
        }
        Some(CaptureDistances {
            to_server: Some(answer.at.since(syn.at)),
            to_client: Some(packet.at.since(answer.at)),
        })
    }

    /// Whether a SYN, or its answer, was sent more than once.
    pub(super) const fn is_repeated(&self) -> bool {
        self.syns > 1 || self.answers > 1
    }

    /// Both SYNs, by direction, if all of their options were captured.
    fn both(&self) -> Option<[&Syn; 2]> {
        let [Some(one), Some(other)] = &self.syn else { return None };
        (one.complete && other.complete).then_some([one, other])
    }

    /// Window scale of the host that sends in direction `dir`; `None` if it is unknown, which it is
    /// without all options of both.
    pub(super) fn window_scale(&self, dir: Dir) -> Option<u8> {
        let both = self.both()?;
        let [own, peer] = [dir, dir.reversed()].map(|dir| both[dir as usize].options.window_scale);
        Some(own.filter(|_| peer.is_some()).map_or(0, |shift| shift.min(14)))
    }

    /// Payload of a full segment, in bytes; `None` if it is unknown.
    pub(super) fn segment_size(&self) -> Option<u32> {
        let [one, other] = self.both()?;
        let mss = one.options.mss.min(other.options.mss);
        let stamps = one.stamps && other.stamps;
        // RFC 9293 section 3.7.1: 536 without the option. The option may have any value, even
        // less than the length of the timestamps.
        let mss = u32::from(if mss == 0 { 536 } else { mss });
        Some(mss.saturating_sub(12 * u32::from(stamps)).max(1))
    }
}
