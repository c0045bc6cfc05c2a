//! Frames of decrypted packets (RFC 9000 section 19).

use diagnose::quic::record::QuicFrame;
use packet::quic::ConnectionId;

use super::client_hello::Fields;

/// Most ranges of an ACK frame that are read: those of an endpoint have far fewer.
const MAX_RANGES: u64 = 4_096;

/// The frames of a packet.
#[derive(Debug, Default)]
pub(super) struct PacketFrames {
    pub(super) frames: Vec<QuicFrame>,
    pub(super) acked: Vec<(u64, u64)>,
    pub(super) has_ack: bool,
    /// As encoded: without the exponent.
    pub(super) ack_delay: Option<u64>,
    pub(super) ce: Option<u64>,
    /// Code of a CONNECTION_CLOSE, whether it is of the application, and its reason.
    pub(super) close: Option<(u64, bool, String)>,
    /// Connection IDs that the sender chooses for itself.
    pub(super) new_ids: Vec<ConnectionId>,
    /// Offsets and ranges of the packet's body with the data of its CRYPTO frames.
    pub(super) crypto: Vec<(u64, core::ops::Range<usize>)>,
}

impl PacketFrames {
    /// Reads frames; what follows a frame of an unknown type is not known.
    pub(super) fn read(&mut self, body: &[u8]) {
        self.frames.clear();
        self.acked.clear();
        self.crypto.clear();
        self.new_ids.clear();
        (self.has_ack, self.ack_delay, self.ce, self.close) = (false, None, None, None);
        let mut rest = Fields(body);
        while !rest.0.is_empty() {
            if self.frame(&mut rest, body.len()).is_none() {
                self.frames.push(QuicFrame::Other);
                return;
            }
        }
    }

    fn frame(&mut self, rest: &mut Fields<'_>, len: usize) -> Option<()> {
        let kind = rest.varint()?;
        let skip = |rest: &mut Fields<'_>, count: usize| {
            (0..count).try_for_each(|_| rest.varint().map(|_| ()))
        };
        let frame = match kind {
            0 => {
                let zeros = rest.0.iter().take_while(|byte| **byte == 0).count();
                rest.take(zeros)?;
                QuicFrame::Padding
            }
            2 | 3 => return self.ack(rest, kind == 3),
            // RESET_STREAM, STOP_SENDING.
            4 => return skip(rest, 3).map(|()| self.frames.push(QuicFrame::Other)),
            5 => return skip(rest, 2).map(|()| self.frames.push(QuicFrame::Other)),
            6 => {
                let (offset, length) = (rest.varint()?, rest.varint()?);
                let at = len - rest.0.len();
                let data = rest.take(usize::try_from(length).ok()?)?;
                self.crypto.push((offset, at..at + data.len()));
                QuicFrame::Crypto { offset, length }
            }
            // NEW_TOKEN.
            7 => {
                let length = rest.varint()?;
                rest.take(usize::try_from(length).ok()?)?;
                QuicFrame::Other
            }
            8..=0x0f => {
                let id = rest.varint()?;
                let offset = if kind & 4 != 0 { rest.varint()? } else { 0 };
                let length = if kind & 2 != 0 { rest.varint()? } else { rest.0.len() as u64 };
                rest.take(usize::try_from(length).ok()?)?;
                QuicFrame::Stream { id, offset, length, fin: kind & 1 != 0 }
            }
            0x10 => QuicFrame::MaxData(rest.varint()?),
            0x11 => QuicFrame::MaxStreamData { id: rest.varint()?, limit: rest.varint()? },
            0x12 | 0x13 => {
                rest.varint()?;
                QuicFrame::MaxStreams
            }
            0x14 => {
                rest.varint()?;
                QuicFrame::DataBlocked
            }
            0x15 => {
                let id = rest.varint()?;
                rest.varint()?;
                QuicFrame::StreamDataBlocked { id }
            }
            0x16 | 0x17 => {
                rest.varint()?;
                QuicFrame::StreamsBlocked
            }
            // NEW_CONNECTION_ID.
            0x18 => {
                skip(rest, 2)?;
                let len = rest.byte()?;
                let id = rest.take(len.into())?;
                rest.take(16)?;
                self.new_ids.extend(ConnectionId::new(id));
                QuicFrame::Other
            }
            0x19 => {
                rest.varint()?;
                QuicFrame::Other
            }
            0x1a | 0x1b => {
                rest.take(8)?;
                if kind == 0x1a { QuicFrame::PathChallenge } else { QuicFrame::Other }
            }
            0x1c | 0x1d => {
                let code = rest.varint()?;
                if kind == 0x1c {
                    rest.varint()?;
                }
                let length = rest.varint()?;
                let reason = rest.take(usize::try_from(length).ok()?)?;
                let reason = String::from_utf8_lossy(reason).into_owned();
                self.close = Some((code, kind == 0x1d, reason));
                QuicFrame::ConnectionClose
            }
            0x1e => QuicFrame::HandshakeDone,
            // PING, and IMMEDIATE_ACK of draft-ietf-quic-ack-frequency.
            1 | 0x1f => QuicFrame::Other,
            // DATAGRAM (RFC 9221).
            0x30 | 0x31 => {
                let length = if kind == 0x31 { rest.varint()? } else { rest.0.len() as u64 };
                rest.take(usize::try_from(length).ok()?)?;
                QuicFrame::Other
            }
            // ACK_FREQUENCY.
            0xaf => return skip(rest, 4).map(|()| self.frames.push(QuicFrame::Other)),
            _ => return None,
        };
        self.frames.push(frame);
        Some(())
    }

    fn ack(&mut self, rest: &mut Fields<'_>, has_counts: bool) -> Option<()> {
        let mut largest = rest.varint()?;
        self.has_ack = true;
        self.ack_delay = Some(rest.varint()?);
        let ranges = rest.varint()?.min(MAX_RANGES);
        let first = rest.varint()?;
        let mut smallest = largest.checked_sub(first)?;
        self.acked.push((smallest, largest));
        for _ in 0..ranges {
            let (gap, length) = (rest.varint()?, rest.varint()?);
            largest = smallest.checked_sub(gap.checked_add(2)?)?;
            smallest = largest.checked_sub(length)?;
            self.acked.push((smallest, largest));
        }
        if has_counts {
            rest.varint()?;
            rest.varint()?;
            self.ce = Some(rest.varint()?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_of_a_packet() {
        let mut read = PacketFrames::default();
        // ACK of 9..=8 and 5..=4 with CE, STREAM 4 at 16 with the end, MAX_DATA, padding.
        let body = [
            3, 9, 2, 1, 1, 1, 1, 7, 0, 3, // ACK
            0x0f, 4, 16, 2, 0xaa, 0xbb, // STREAM
            0x10, 0x44, 0, 0, 0, // MAX_DATA, PADDING
        ];
        read.read(&body);
        assert_eq!(
            (&read.acked[..], read.ce, read.ack_delay),
            (&[(8, 9), (4, 5)][..], Some(3), Some(2))
        );
        let stream = QuicFrame::Stream { id: 4, offset: 16, length: 2, fin: true };
        assert_eq!(read.frames, [stream, QuicFrame::MaxData(1_024), QuicFrame::Padding]);
        // A frame of an unknown type, whose length is not known, ends the packet.
        read.read(&[1, 0x40, 0x42, 9, 9]);
        assert_eq!(read.frames, [QuicFrame::Other, QuicFrame::Other]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut read = PacketFrames::default();
            read.read(&body);
            for (_, range) in &read.crypto {
                prop_assert!(body.get(range.clone()).is_some());
            }
        }
    }
}
