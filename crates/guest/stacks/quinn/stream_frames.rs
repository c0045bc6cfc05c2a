//! Finds STREAM frames in the frames of a packet (RFC 9000 section 19).

struct Frames<'a>(&'a [u8]);

impl Frames<'_> {
    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        (1..1_u32 << (first >> 6)).try_fold(u64::from(first & 0x3f), |value, _| Some(value << 8 | u64::from(self.byte()?)))
    }

    fn varints(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
    }

    fn counted(&mut self) -> Option<()> {
        let bytes = self.varint()?;
        self.skip(bytes)
    }

    /// Reads a frame: `Some(Some(..))` of a STREAM frame, `None` at the end.
    fn next(&mut self) -> Option<Option<(u64, u64)>> {
        match self.varint()? {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            kind @ (0x02 | 0x03) => {
                self.varints(2)?;
                let ranges = self.varint()?;
                self.varints(1 + 2 * ranges + if kind == 0x03 { 3 } else { 0 })?;
            }
            0x04 => self.varints(3)?,
            0xaf => self.varints(4)?,
            0x05 | 0x11 | 0x15 => self.varints(2)?,
            0x06 => {
                self.varint()?;
                self.counted()?;
            }
            0x07 => self.counted()?,
            kind @ 0x08..=0x0f => {
                self.varint()?;
                let offset = if kind & 0x04 != 0 { self.varint()? } else { 0 };
                let length = if kind & 0x02 != 0 { self.varint()? } else { self.0.len() as u64 };
                self.skip(length)?;
                return Some(Some((offset, length)));
            }
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.varints(1)?,
            0x18 => {
                self.varints(2)?;
                let id = self.byte()?;
                self.skip(u64::from(id) + 16)?;
            }
            0x1a | 0x1b => self.skip(8)?,
            _ => return None,
        }
        Some(None)
    }
}

/// Offset and length of each STREAM frame.
pub fn stream_frames(payload: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let mut frames = Frames(payload);
    std::iter::from_fn(move || frames.next()).flatten()
}
