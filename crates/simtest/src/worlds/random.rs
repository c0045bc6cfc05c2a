//! Random numbers and quantities.

use core::ops::RangeInclusive;

use toml::{Table, Value};
use units::RandomStream;

/// A random stream that produces values of scenario files.
pub(super) struct WorldRandom(RandomStream);

impl WorldRandom {
    /// Creates the stream of world `number` for `purpose`.
    pub(super) fn new(seed: u64, number: u64, purpose: &str) -> Self {
        Self(RandomStream::named(seed, &format!("world {number}"), purpose))
    }

    /// Returns a number of the range, uniformly.
    pub(super) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (least, most) = range.into_inner();
        least + self.0.below(most - least + 1)
    }

    /// Returns a number of the range, which must not start at 0, log-uniformly by doublings.
    pub(super) fn magnitude(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (least, most) = range.into_inner();
        let doublings = u64::from((most / least).ilog2());
        let low = least << self.within(0..=doublings);
        self.within(low..=most.min(2 * low))
    }

    /// Returns true with probability 1/n.
    pub(super) fn once_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    /// Returns one of these, uniformly.
    pub(super) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.0.below(items.len() as u64) as usize].clone()
    }

    /// Returns a duration; the range is in microseconds.
    pub(super) fn span(&mut self, micros: RangeInclusive<u64>) -> Value {
        span(self.magnitude(micros))
    }

    /// Returns a size; the range is in bytes.
    pub(super) fn size(&mut self, bytes: RangeInclusive<u64>) -> Value {
        size(self.magnitude(bytes))
    }

    /// Returns a rate; the range is in kbit/s.
    pub(super) fn rate(&mut self, kbits: RangeInclusive<u64>) -> Value {
        let kbits = self.magnitude(kbits);
        match kbits % 1_000 {
            0 => format!("{}Mbit/s", kbits / 1_000).into(),
            _ => format!("{kbits}kbit/s").into(),
        }
    }

    /// Returns a fraction; the range is in hundredths of a percent.
    pub(super) fn share(&mut self, hundredths: RangeInclusive<u64>) -> Value {
        let n = self.magnitude(hundredths);
        format!("{}.{:02}%", n / 100, n % 100).into()
    }

    /// Returns a whole number.
    pub(super) fn count(&mut self, range: RangeInclusive<u64>) -> Value {
        Value::Integer(self.magnitude(range) as i64)
    }
}

/// Formats a duration in the largest unit without a remainder.
pub(super) fn span(micros: u64) -> Value {
    match micros {
        0 => "0s".into(),
        n if n.is_multiple_of(1_000) => format!("{}ms", n / 1_000).into(),
        n => format!("{n}us").into(),
    }
}

/// Formats a size in a unit without a remainder.
pub(super) fn size(bytes: u64) -> Value {
    match bytes {
        0 => "0B".into(),
        n if n.is_multiple_of(1_024) => format!("{}KiB", n / 1_024).into(),
        n if n.is_multiple_of(1_000) => format!("{}kB", n / 1_000).into(),
        n => format!("{n}B").into(),
    }
}

/// Creates a table of these entries.
pub(super) fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Table(entries.collect::<Table>())
}
