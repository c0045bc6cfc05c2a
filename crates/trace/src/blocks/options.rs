//! Options at the end of a block (draft-ietf-opsawg-pcapng section 3.5).

use super::Endianness;

/// Custom options with binary data, copyable or not.
const CUSTOM_BINARY: [u16; 2] = [2_989, 19_373];

/// Iterates over options; an error is the offset of an option that exceeds the block.
#[derive(Debug, Clone)]
pub(crate) struct BlockOptions<'a> {
    bytes: &'a [u8],
    at: usize,
    order: Endianness,
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawOption<'a> {
    /// Offset of its code, from the first option.
    pub(crate) at: usize,
    pub(crate) code: u16,
    pub(crate) value: &'a [u8],
    order: Endianness,
}

impl<'a> BlockOptions<'a> {
    pub(crate) const fn new(bytes: &'a [u8], order: Endianness) -> Self {
        Self { bytes, at: 0, order }
    }
}

impl<'a> Iterator for BlockOptions<'a> {
    type Item = Result<RawOption<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.bytes.get(at..)?;
        if rest.is_empty() {
            return None;
        }
        // A broken option is the last.
        self.at = self.bytes.len();
        if rest.len() < 4 {
            return Some(Err(at));
        }
        let (code, len) = (self.order.u16(rest, 0), usize::from(self.order.u16(rest, 2)));
        if code == 0 {
            return None;
        }
        let Some(value) = rest.get(4..4 + len) else { return Some(Err(at)) };
        self.at = at + 4 + len.next_multiple_of(4);
        Some(Ok(RawOption { at, code, value, order: self.order }))
    }
}

impl<'a> RawOption<'a> {
    /// Data of a custom option with binary data, if it has this private enterprise number.
    pub(crate) fn custom(&self, organisation: u32) -> Option<&'a [u8]> {
        if !CUSTOM_BINARY.contains(&self.code) || self.value.len() < 4 {
            return None;
        }
        (self.order.u32(self.value, 0) == organisation).then(|| &self.value[4..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_where_they_say_or_at_the_end() {
        let bytes = [1, 0, 3, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0, 9, 9];
        let all: Vec<_> =
            BlockOptions::new(&bytes, Endianness::Little).map(Result::unwrap).collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].code, all[0].value), (1, &b"abc"[..]));
        assert_eq!(BlockOptions::new(&bytes[..8], Endianness::Little).count(), 1);
    }

    #[test]
    fn an_option_over_the_end_is_an_error() {
        let bytes = [1, 0, 0, 0, 2, 0, 9, 0, 1, 2, 3, 4];
        let all: Vec<_> = BlockOptions::new(&bytes, Endianness::Little).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Err(4));
    }

    #[test]
    fn a_custom_option_has_its_number_in_the_sections_order() {
        let value = [0, 0, 0x2a, 0xc5, 2, 0, 0, 0, 7];
        let option = |order, code| RawOption { at: 0, code, value: &value, order };
        assert_eq!(option(Endianness::Big, 2_989).custom(10_949), Some(&[2, 0, 0, 0, 7][..]));
        assert_eq!(option(Endianness::Little, 2_989).custom(10_949), None);
        assert_eq!(option(Endianness::Big, 2_988).custom(10_949), None);
    }
}
