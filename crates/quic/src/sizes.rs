//! Sizes of headers and frames (RFC 9000 sections 16, 17 and 19).

use crate::packet::{AckFrame, AckFrequency, Chunk, EcnCounts, QuicPacket, Space};

/// Bytes of a packet that are neither frames nor padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Bytes of a connection id.
    pub connection_id: u32,
    /// Bytes of a packet number; `None`: the shortest encoding (RFC 9000 section 17.1).
    pub packet_number: Option<u32>,
    /// Fewest bytes of the shortest encoding of a packet number.
    pub least_number: u32,
    /// Fields of STREAM frames.
    pub stream: StreamFrameFields,
    /// Bytes of the AEAD tag (RFC 9001 section 5.3).
    pub tag: u32,
}

/// The optional fields of STREAM frames (RFC 9000 section 19.8), of which a packet has one, its last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFrameFields {
    /// Offset and Length are always present, the Length with two bytes.
    All,
    /// The Length is absent, and so is an Offset of 0 (quic-go, `AppendStreamFrames`).
    NoLength,
}

/// Bytes of a variable-length integer (section 16).
pub const fn varint(n: u64) -> u32 {
    match n {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

impl Overhead {
    /// Bytes of header and tag of a packet; `acked` is the largest number that the peer has
    /// acknowledged.
    pub(crate) fn of(&self, space: Space, number: u64, acked: Option<u64>) -> u32 {
        let shortest = || number_len(number, acked).max(self.least_number);
        let number = self.packet_number.unwrap_or_else(shortest);
        let header = match space {
            // Flags, version, two ids with their lengths, the length of a token, Length.
            Space::Initial => 1 + 4 + 2 * (1 + self.connection_id) + 1 + 2,
            Space::Handshake => 1 + 4 + 2 * (1 + self.connection_id) + 2,
            Space::Application => 1 + self.connection_id,
        };
        header + number + self.tag
    }

    /// Header bytes of a STREAM frame of stream 0.
    pub(crate) const fn stream_header(&self, offset: u64) -> u32 {
        match self.stream {
            StreamFrameFields::All => 1 + varint(0) + varint(offset) + 2,
            StreamFrameFields::NoLength if offset == 0 => 1 + varint(0),
            StreamFrameFields::NoLength => 1 + varint(0) + varint(offset),
        }
    }
}

/// Appendix A.2: twice the numbers that may be outstanding must fit.
const fn number_len(number: u64, acked: Option<u64>) -> u32 {
    let unacked = match acked {
        Some(acked) => number - acked,
        None => number + 1,
    };
    match unacked {
        0..=0x80 => 1,
        0x81..=0x8000 => 2,
        0x8001..=0x80_0000 => 3,
        _ => 4,
    }
}

pub(crate) const fn crypto_header(offset: u64) -> u32 {
    1 + varint(offset) + 2
}

pub(crate) fn ack(ack: &AckFrame) -> u32 {
    let Some(&(first, last)) = ack.ranges.first() else { return 0 };
    let more = ack.ranges.windows(2).map(|pair| {
        let gap = pair[0].0 - pair[1].1 - 2;
        varint(gap) + varint(pair[1].1 - pair[1].0)
    });
    let count = varint(ack.ranges.len() as u64 - 1);
    // ECT(0), ECT(1), CE.
    let ecn = match ack.ecn {
        EcnCounts::NONE => 0,
        EcnCounts { ect0, ce } => varint(ect0) + 1 + varint(ce),
    };
    1 + varint(last) + varint(ack.delay) + count + varint(last - first) + more.sum::<u32>() + ecn
}

const fn ack_frequency(frame: &AckFrequency) -> u32 {
    // Type 0xaf takes two bytes; the sequence number is below 64.
    let reordering = varint(frame.reordering as u64);
    2 + 1 + varint(frame.threshold as u64) + varint(frame.max_delay_us) + reordering
}

const fn chunk(frame: Option<Chunk>, header: u32) -> u32 {
    match frame {
        Some(chunk) => header + chunk.len,
        None => 0,
    }
}

/// Bytes of all frames of a packet.
pub(crate) fn frames(packet: &QuicPacket, overhead: &Overhead) -> u32 {
    let stream = packet.stream.map_or(0, |chunk| overhead.stream_header(chunk.offset));
    let crypto = packet.crypto.map_or(0, |chunk| crypto_header(chunk.offset));
    let stream_id = varint(0);
    ack(&packet.ack)
        + chunk(packet.stream, stream)
        + chunk(packet.crypto, crypto)
        + packet.max_data.map_or(0, |max| 1 + varint(max))
        + packet.max_stream_data.map_or(0, |max| 1 + stream_id + varint(max))
        + packet.ack_frequency.as_ref().map_or(0, ack_frequency)
        + u32::from(packet.handshake_done)
        + packet.connection_ids
        + u32::from(packet.ping)
        + 2 * u32::from(packet.immediate_ack)
        // Type, error code, frame type, length of the reason.
        + 4 * u32::from(packet.close)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AEAD: Overhead = Overhead {
        connection_id: 8,
        packet_number: None,
        least_number: 1,
        stream: StreamFrameFields::All,
        tag: 16,
    };
    const INET: Overhead = Overhead { packet_number: Some(4), tag: 0, ..AEAD };

    #[test]
    fn varint_lengths_follow_section_16() {
        assert_eq!([varint(63), varint(64), varint(16_383), varint(16_384)], [1, 2, 2, 4]);
        assert_eq!([varint((1 << 30) - 1), varint(1 << 30)], [4, 8]);
    }

    #[test]
    fn inets_full_packet_carries_1231_bytes() {
        let header = INET.of(Space::Application, 40, None) + INET.stream_header(20_000);
        assert_eq!((header, 1_252 - header), (21, 1_231));
    }

    #[test]
    fn packet_numbers_are_as_short_as_appendix_a_2_allows() {
        // The example of the appendix: 0xac5c02 with 0xabe8b3 acknowledged needs 16 bits, 0xace8fe
        // 18 bits.
        assert_eq!(number_len(0xac_5c02, Some(0xab_e8b3)), 2);
        assert_eq!(number_len(0xac_e8fe, Some(0xab_e8b3)), 3);
        assert_eq!(AEAD.of(Space::Application, 5, None), 1 + 8 + 1 + 16);
    }

    /// `PacketNumberLengthForHeader` never chooses one byte; the last STREAM frame has no Length.
    #[test]
    fn a_full_packet_of_quic_go_carries_1251_bytes() {
        let overhead = Overhead {
            connection_id: 4,
            least_number: 2,
            stream: StreamFrameFields::NoLength,
            ..AEAD
        };
        let header =
            |offset| overhead.of(Space::Application, 40, Some(39)) + overhead.stream_header(offset);
        assert_eq!([0, 2_000, 20_000].map(|offset| 1_280 - header(offset)), [1_255, 1_253, 1_251]);
    }

    #[test]
    fn an_ack_frame_grows_by_its_ranges() {
        let one = AckFrame { ranges: vec![(0, 9)], delay: 3, ..AckFrame::default() };
        assert_eq!(ack(&one), 5);
        // Gaps and lengths are written less one (section 19.3.1).
        let three = AckFrame { ranges: vec![(200, 299), (100, 198), (0, 33)], ..one };
        assert_eq!(ack(&three), 1 + 2 + 1 + 1 + 2 + (1 + 2) + (2 + 1));
        assert_eq!(ack(&AckFrame { ecn: EcnCounts { ect0: 64, ce: 0 }, ..three }), 13 + 4);
        assert_eq!(ack(&AckFrame::default()), 0);
    }
}
