//! Fast formatting of decimal numbers into a buffer, without `core::fmt`.

/// The two digits of every number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Digits of the largest `u64`.
const MOST: usize = 20;

/// A growing output buffer.
#[derive(Debug)]
pub(crate) struct Text {
    /// Bytes beyond `len` are unused.
    bytes: Vec<u8>,
    len: usize,
}

impl Text {
    /// A buffer with an initial capacity of `room` bytes.
    pub(crate) fn new(room: usize) -> Self {
        Self { bytes: vec![0; room], len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Ensures that `bytes` more bytes fit.
    #[inline(always)]
    fn reserve(&mut self, bytes: usize) {
        if self.bytes.len() - self.len < bytes {
            self.grow(bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, bytes: usize) {
        self.bytes.resize(2 * self.bytes.len() + bytes, 0);
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.reserve(1);
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn word(&mut self, word: &str) {
        let len = word.len();
        self.reserve(len);
        self.bytes[self.len..self.len + len].copy_from_slice(word.as_bytes());
        self.len += len;
    }

    /// Appends an integer.
    #[inline]
    pub(crate) fn whole(&mut self, mut value: u64) {
        if value < 10 {
            return self.byte(b'0' + value as u8);
        }
        // The digits end at the middle of the buffer; a constant number of bytes is copied, which
        // needs no loop.
        let mut digits = [0; 2 * MOST];
        let mut from = MOST;
        while value >= 100 {
            from -= 2;
            digits[from..from + 2].copy_from_slice(&PAIRS[(value % 100) as usize]);
            value /= 100;
        }
        from -= 2;
        let [ten, one] = PAIRS[value as usize];
        digits[from + 1] = one;
        match ten {
            b'0' => from += 1,
            _ => digits[from] = ten,
        }
        self.reserve(MOST);
        self.bytes[self.len..self.len + MOST].copy_from_slice(&digits[from..from + MOST]);
        self.len += MOST - from;
    }

    /// Appends a fixed-point number of `10^-DECIMALS` units; `DECIMALS` is at least 1.
    #[inline(always)]
    pub(crate) fn fixed<const DECIMALS: usize>(&mut self, value: u64) {
        let one = const { 10_u64.pow(DECIMALS as u32) };
        self.whole(value / one);
        let mut rest = value % one;
        let mut digits = [b'.'; MOST];
        for place in (1..=DECIMALS).rev() {
            digits[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.reserve(1 + DECIMALS);
        let end = self.len + 1 + DECIMALS;
        self.bytes[self.len..end].copy_from_slice(&digits[..=DECIMALS]);
        self.len = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::new(1);
        write(&mut text);
        String::from_utf8(text.bytes().to_vec()).unwrap()
    }

    #[test]
    fn numbers_match_core_fmt() {
        let around = |n: u32| {
            let power = 10_u64.pow(n);
            [power - 1, power, power + 1, 7 * (power / 9)]
        };
        let numbers = (0..=19).flat_map(around).chain([u64::MAX, u64::MAX - 9, 1 << 32]);
        for n in numbers.chain(0..1_000) {
            assert_eq!(text(|text| text.whole(n)), n.to_string());
            let micros = format!("{}.{:03}", n / 1_000, n % 1_000);
            assert_eq!(text(|text| text.fixed::<3>(n)), micros);
            let seconds = format!("{}.{:09}", n / 1_000_000_000, n % 1_000_000_000);
            assert_eq!(text(|text| text.fixed::<9>(n)), seconds);
        }
    }

    #[test]
    fn a_text_grows_and_is_reused() {
        let mut row = Text::new(0);
        for n in 0..100 {
            row.whole(n);
            row.byte(b',');
        }
        assert_eq!(row.len(), 290);
        row.clear();
        row.word("again");
        assert_eq!(row.bytes(), b"again");
    }
}
