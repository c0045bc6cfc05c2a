//! Columns of numbers as short text: delta-encoded variable-length integers, deflated, in base64.
//! `codec.js` decodes it in the browser.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Concatenated columns.
#[derive(Debug, Default)]
pub(crate) struct Pack(Vec<u8>);

impl Pack {
    /// Adds a column: the differences of its values, the first from zero.
    pub(crate) fn column(&mut self, values: impl IntoIterator<Item = i64>) {
        let mut last = 0_i64;
        for value in values {
            self.signed(value.wrapping_sub(last));
            last = value;
        }
    }

    /// Adds a column of floating-point numbers, eight bytes each; `None` is NaN.
    pub(crate) fn floats(&mut self, values: impl IntoIterator<Item = Option<f64>>) {
        for value in values {
            self.0.extend(value.unwrap_or(f64::NAN).to_le_bytes());
        }
    }

    /// Adds a number: zigzag, then LEB128.
    fn signed(&mut self, value: i64) {
        let mut left = ((value << 1) ^ (value >> 63)) as u64;
        while left >= 0x80 {
            self.0.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.0.push(left as u8);
    }

    /// The packed text.
    pub(crate) fn text(self) -> String {
        // Writing to memory does not fail.
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::new(6));
        let bytes = deflated.write_all(&self.0).and_then(|()| deflated.finish());
        STANDARD.encode(bytes.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let deflated = STANDARD.decode(text).unwrap();
        flate2::read::DeflateDecoder::new(&deflated[..]).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn small_differences_take_one_byte() {
        let mut pack = Pack::default();
        pack.column([5, 6, 4, 4]);
        // Zigzag: 5 is 10, 1 is 2, -2 is 3, 0 is 0.
        assert_eq!(bytes(&pack.text()), [10, 2, 3, 0]);
    }

    #[test]
    fn large_ones_take_as_many_as_they_need() {
        let mut pack = Pack::default();
        pack.column([64, 64 - 8_193]);
        // 64 is 128 = 0 + 1 * 128; -8193 is 16,385 = 1 + 0 * 128 + 1 * 16,384.
        assert_eq!(bytes(&pack.text()), [0x80, 1, 0x81, 0x80, 1]);
    }

    #[test]
    fn none_is_not_a_number() {
        let mut pack = Pack::default();
        pack.floats([Some(1.5), None]);
        let bytes = bytes(&pack.text());
        assert_eq!(bytes[..8], 1.5_f64.to_le_bytes());
        assert!(f64::from_le_bytes(bytes[8..].try_into().unwrap()).is_nan());
    }
}
