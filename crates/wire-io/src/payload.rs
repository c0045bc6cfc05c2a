//! Payload of streams: output of SplitMix64 (Steele, Lea and Flood 2014), which differs at every
//! offset and can be generated from any offset.

/// Payload of one direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadGenerator {
    seed: u64,
}

impl PayloadGenerator {
    /// Creates the payload of a flow, towards the listener or reverse (`back`).
    pub fn new(flow: usize, back: bool) -> Self {
        Self { seed: mix(2 * flow as u64 + u64::from(back)) }
    }

    /// Writes the bytes from offset `at`.
    pub fn fill(self, at: u64, out: &mut [u8]) {
        let mut word = at / 8;
        let mut skip = (at % 8) as usize;
        let mut rest = out;
        while !rest.is_empty() {
            let bytes = mix(self.seed.wrapping_add(word)).to_le_bytes();
            let len = (8 - skip).min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&bytes[skip..skip + len]);
            rest = later;
            skip = 0;
            word += 1;
        }
    }
}

const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_matches_the_whole() {
        let payload = PayloadGenerator::new(3, false);
        let mut whole = [0; 100];
        payload.fill(0, &mut whole);
        for from in 0..40 {
            for to in from..60 {
                let mut part = [0; 100];
                payload.fill(from as u64, &mut part[..to - from]);
                assert_eq!(part[..to - from], whole[from..to]);
            }
        }
    }

    #[test]
    fn streams_differ() {
        let first = |payload: PayloadGenerator| {
            let mut bytes = [0; 8];
            payload.fill(0, &mut bytes);
            bytes
        };
        let here = first(PayloadGenerator::new(0, false));
        assert_ne!(here, first(PayloadGenerator::new(0, true)));
        assert_ne!(here, first(PayloadGenerator::new(1, false)));
        // SplitMix64 of seed 1234567: the first output of the authors' program.
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }
}
