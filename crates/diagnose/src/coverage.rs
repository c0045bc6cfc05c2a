//! Number of segments that each ACK acknowledges.
//!
//! RFC 5681 section 4.2: an ACK at least for every second full-sized segment. Receivers that merge
//! segments before TCP (LRO, GRO), or networks that filter ACKs, send fewer. Only ACKs in order are
//! counted: one after a filled hole covers the data above the hole as well.

/// ACKs by the segments they cover: 1, 2, 3-4, 5-8, ... 65 and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// ACKs in each class.
    pub acks: [u64; 8],
    /// Bytes they acknowledged.
    pub bytes: [u64; 8],
    /// Most bytes covered by one ACK.
    pub most: u64,
}

impl Coverage {
    pub(crate) fn count(&mut self, bytes: u64, mss: u64) {
        let class = match bytes.div_ceil(mss.max(1)) {
            0 | 1 => 0,
            n => ((n - 1).ilog2() as usize + 1).min(7),
        };
        self.acks[class] += 1;
        self.bytes[class] += bytes;
        self.most = self.most.max(bytes);
    }

    /// Bytes per ACK, on average.
    pub fn mean(&self) -> Option<f64> {
        let acks: u64 = self.acks.iter().sum();
        (acks > 0).then(|| self.bytes.iter().sum::<u64>() as f64 / acks as f64)
    }

    /// Fraction of the bytes acknowledged by ACKs that cover more than two segments.
    pub fn stretched(&self) -> f64 {
        let all: u64 = self.bytes.iter().sum();
        let stretched: u64 = self.bytes[2..].iter().sum();
        if all == 0 { 0.0 } else { stretched as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_end_at_powers_of_two() {
        for (segments, class) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (64, 6), (65, 7)]
        {
            let mut coverage = Coverage::default();
            coverage.count(segments * 1_448, 1_448);
            assert_eq!(coverage.acks[class], 1, "{segments}");
        }
    }
}
