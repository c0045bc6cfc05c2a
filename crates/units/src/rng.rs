//! Named random streams: one per purpose, all from one seed.
//!
//! The generator is PCG XSL RR 128/64 (O'Neill 2014), whose output is fixed by its specification.
//! The stream is selected by a hash of (seed, owner, purpose), so adding an element to a path does
//! not change the random numbers of another.

use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::Ratio;

/// A stream of random numbers for one purpose of one owner.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RandomStream(Pcg64);

impl RandomStream {
    /// The stream of `owner` (`"flow 3"`, `"forward 2"`) for `purpose` (`"loss"`) under `seed`.
    pub fn named(seed: u64, owner: &str, purpose: &str) -> Self {
        let mut hash = Fnv::new();
        hash.add(owner.as_bytes());
        hash.add(&[0xff]);
        hash.add(purpose.as_bytes());
        let name = hash.finish();
        let state = (u128::from(seed) << 64) | u128::from(name);
        Self(Pcg64::new(state, u128::from(name)))
    }

    /// 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform random number below `bound`, with a bias below 2^-64 (multiply and shift, one
    /// draw).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `p` (one draw; always false at 0, always true from 1 on).
    #[inline]
    pub fn chance(&mut self, p: Ratio) -> bool {
        self.below(p.den()) < p.num()
    }
}

/// FNV-1a, 64 bits: for names and digests, not collision-resistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv(u64);

impl Fnv {
    /// The empty hash.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of all bytes added.
    pub const fn finish(self) -> u64 {
        self.0
    }
}

impl Default for Fnv {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_gives_its_published_values() {
        // Test vectors of the FNV specification (draft-eastlake-fnv, appendix C).
        let of = |text: &str| {
            let mut hash = Fnv::new();
            hash.add(text.as_bytes());
            hash.finish()
        };
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn streams_differ_by_seed_owner_and_purpose() {
        let first = |s, o, p| RandomStream::named(s, o, p).next_u64();
        let base = first(1, "forward 0", "loss");
        assert_eq!(base, first(1, "forward 0", "loss"));
        assert_ne!(base, first(2, "forward 0", "loss"));
        assert_ne!(base, first(1, "forward 1", "loss"));
        assert_ne!(base, first(1, "forward 0", "jitter"));
    }

    #[test]
    fn chance_has_the_given_probability() {
        let mut stream = RandomStream::named(7, "test", "chance");
        let p = Ratio::new(2, 100).unwrap();
        let hits = (0..100_000).filter(|_| stream.chance(p)).count();
        // 2000 expected, standard deviation 44.
        assert!((1_820..=2_180).contains(&hits), "{hits} hits");
        assert!(!stream.chance(Ratio::new(0, 1).unwrap()));
        assert!(stream.chance(Ratio::new(1, 1).unwrap()));
    }
}
