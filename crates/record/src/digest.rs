//! A fingerprint of all events of a run.

use core::hash::{Hash, Hasher};

use units::Instant;
use units::rng::Fnv;

use crate::{Event, EventSource, Recorder, SenderState};

/// Hashes every event into 64 bits: two runs with different events have different digests.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    hash: FnvHasher,
    events: u64,
}

impl Digest {
    /// The digest of the events so far.
    pub fn value(&self) -> u64 {
        self.hash.0.finish()
    }

    /// Events hashed so far.
    pub fn events(&self) -> u64 {
        self.events
    }
}

impl Recorder for Digest {
    const ON: bool = true;

    fn record(&mut self, at: Instant, source: EventSource, event: Event, _: Option<&SenderState>) {
        at.hash(&mut self.hash);
        source.hash(&mut self.hash);
        event.hash(&mut self.hash);
        self.events += 1;
    }
}

/// FNV as a [`Hasher`], with every integer in little-endian bytes and `usize` as 64 bits, so that
/// the value is the same on every machine.
#[derive(Debug, Clone, Copy, Default)]
struct FnvHasher(Fnv);

impl Hasher for FnvHasher {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.add(bytes);
    }

    fn write_u16(&mut self, n: u16) {
        self.0.add(&n.to_le_bytes());
    }

    fn write_u32(&mut self, n: u32) {
        self.0.add(&n.to_le_bytes());
    }

    fn write_u64(&mut self, n: u64) {
        self.0.add(&n.to_le_bytes());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        // Enum discriminants are hashed as `isize`.
        self.write_u64(n as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Offset;

    fn digest(events: &[Event]) -> u64 {
        let mut digest = Digest::default();
        for &event in events {
            digest.record(Instant::ZERO, EventSource::default(), event, None);
        }
        digest.value()
    }

    #[test]
    fn order_and_content_matter() {
        let (a, b) = (Event::Connected, Event::AppRead { bytes: 1, total: Offset(1) });
        assert_ne!(digest(&[a, b]), digest(&[b, a]));
        assert_ne!(digest(&[b]), digest(&[Event::AppRead { bytes: 2, total: Offset(1) }]));
        assert_eq!(digest(&[a, b]), digest(&[a, b]));
    }
}
