//! The stream data of a datagram: readable, as the packets are not encrypted (RFC 9000 sections 12.4 and 19).

use crate::null_crypto::TAG;

/// A position in a packet.
struct FrameReader<'a>(&'a [u8]);

impl FrameReader<'_> {
    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Reads a variable-length integer (RFC 9000 section 16).
    fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        (1..1_u32 << (first >> 6)).try_fold(u64::from(first & 0x3f), |value, _| {
            Some(value << 8 | u64::from(self.byte()?))
        })
    }

    fn varints(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
    }

    /// Skips a length and that number of bytes.
    fn counted(&mut self) -> Option<()> {
        let bytes = self.varint()?;
        self.skip(bytes)
    }

    /// Reads the rest of a frame of this type; offset and length of the data of a STREAM frame.
    fn frame(&mut self, kind: u64) -> Option<Option<(u64, u64)>> {
        match kind {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            // ACK.
            0x02 | 0x03 => {
                self.varints(2)?;
                let ranges = self.varint()?;
                self.varints(1 + 2 * ranges + if kind == 0x03 { 3 } else { 0 })?;
            }
            // RESET_STREAM, ACK_FREQUENCY.
            0x04 => self.varints(3)?,
            0xaf => self.varints(4)?,
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
            0x05 | 0x11 | 0x15 => self.varints(2)?,
            // CRYPTO, NEW_TOKEN.
            0x06 => {
                self.varint()?;
                self.counted()?;
            }
            0x07 => self.counted()?,
            // STREAM.
            0x08..=0x0f => {
                self.varint()?;
                let offset = if kind & 0x04 != 0 { self.varint()? } else { 0 };
                let length = match kind & 0x02 != 0 {
                    true => self.varint()?,
                    false => self.0.len() as u64,
                };
                self.skip(length)?;
                return Some(Some((offset, length)));
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.varints(1)?,
            // NEW_CONNECTION_ID, with a reset token of 16 bytes.
            0x18 => {
                self.varints(2)?;
                let id = self.byte()?;
                self.skip(u64::from(id) + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.skip(8)?,
            // CONNECTION_CLOSE.
            0x1c => {
                self.varints(2)?;
                self.counted()?;
            }
            0x1d => {
                self.varint()?;
                self.counted()?;
            }
            _ => return None,
        }
        Some(None)
    }
}

/// Offset and length of the data of each STREAM frame in a datagram whose 1-RTT packet has a connection ID of
/// `id` bytes. Stops at what it does not know.
pub(crate) fn stream_frames(datagram: &[u8], id: usize) -> impl Iterator<Item = (u64, u64)> {
    let payload = short_packet(datagram, id).unwrap_or_default();
    let mut reader = FrameReader(payload);
    core::iter::from_fn(move || {
        let kind = reader.varint()?;
        reader.frame(kind)
    })
    .flatten()
}

/// Returns the frames of the 1-RTT packet, which is the last of a datagram.
fn short_packet(datagram: &[u8], id: usize) -> Option<&[u8]> {
    let mut reader = FrameReader(datagram);
    loop {
        let first = reader.byte()?;
        if first & 0x80 == 0 {
            reader.skip(id as u64 + u64::from(first & 0x03) + 1)?;
            return reader.0.get(..reader.0.len().checked_sub(TAG)?);
        }
        // A long header: version, two connection IDs, the token of an Initial, the length.
        reader.skip(4)?;
        for _ in 0..2 {
            let bytes = reader.byte()?;
            reader.skip(u64::from(bytes))?;
        }
        if first & 0x30 == 0 {
            reader.counted()?;
        }
        reader.counted()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with an ACK of two ranges, MAX_DATA, and a STREAM frame without a length (RFC 9000 section 19.8).
    #[test]
    fn the_stream_frame_after_others_is_found() {
        let mut datagram = vec![0x41];
        datagram.extend([9; 8]);
        datagram.extend([0, 7]);
        datagram.extend([0x02, 0x05, 0x00, 0x01, 0x00, 0x01, 0x02]);
        datagram.extend([0x10, 0x40, 0x80]);
        datagram.extend([0x0c, 0x00, 0x80, 0x01, 0x00, 0x00]);
        datagram.extend([7; 100]);
        datagram.extend([0; TAG]);
        let found: Vec<_> = stream_frames(&datagram, 8).collect();
        assert_eq!(found, [(65_536, 100)]);
        // Cut anywhere, it finds that or less, and ends.
        for length in 0..datagram.len() {
            assert!(stream_frames(&datagram[..length], 8).count() <= 1);
        }
    }

    #[test]
    fn a_coalesced_packet_is_found_after_a_long_header() {
        let mut datagram = vec![0xe0, 0, 0, 0, 1, 1, 5, 1, 6, 3, 1, 2, 3];
        datagram.push(0x40);
        datagram.extend([9; 8]);
        datagram.extend([1, 0x0a, 0x00, 0x02, 7, 7]);
        datagram.extend([0; TAG]);
        assert_eq!(stream_frames(&datagram, 8).collect::<Vec<_>>(), [(0, 2)]);
    }
}
