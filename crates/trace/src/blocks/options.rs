//! Options at the end of a block (draft-ietf-opsawg-pcapng section 3.5).

use super::Order;

/// Custom options with binary data, copyable or not.
const CUSTOM_BINARY: [u16; 2] = [2_989, 19_373];

/// Walks options; an error is the place of one that runs over the end, counted from the first.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
    order: Order,
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawOption<'a> {
    /// Place of its code, counted from the first option.
    pub(crate) at: usize,
    pub(crate) code: u16,
    pub(crate) value: &'a [u8],
    order: Order,
}

impl<'a> Options<'a> {
    pub(crate) const fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, at: 0, order }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<RawOption<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.bytes.get(at..)?;
        if rest.is_empty() {
            return None;
        }
        // Whatever comes of it, a broken option is the last.
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
    /// Data of a custom option with binary data, if it is of the organisation with this number.
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
        let all: Vec<_> = Options::new(&bytes, Order::Little).map(Result::unwrap).collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].code, all[0].value), (1, &b"abc"[..]));
        assert_eq!(Options::new(&bytes[..8], Order::Little).count(), 1);
    }

    #[test]
    fn an_option_over_the_end_is_an_error() {
        let bytes = [1, 0, 0, 0, 2, 0, 9, 0, 1, 2, 3, 4];
        let all: Vec<_> = Options::new(&bytes, Order::Little).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Err(4));
    }

    #[test]
    fn a_custom_option_has_its_number_in_the_sections_order() {
        let value = [0, 0, 0x2a, 0xc5, 2, 0, 0, 0, 7];
        let option = |order, code| RawOption { at: 0, code, value: &value, order };
        assert_eq!(option(Order::Big, 2_989).custom(10_949), Some(&[2, 0, 0, 0, 7][..]));
        assert_eq!(option(Order::Little, 2_989).custom(10_949), None);
        assert_eq!(option(Order::Big, 2_988).custom(10_949), None);
    }
}
