//! The connections that had packets lately.

/// Indices of connections, each once, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct ActiveConnections {
    listed: Vec<usize>,
    /// A bit for each index: whether it is listed.
    bits: Vec<u64>,
}

impl ActiveConnections {
    pub(super) fn add(&mut self, index: usize) {
        if self.listed.last() == Some(&index) {
            return;
        }
        let (word, bit) = (index / 64, 1 << (index % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.listed.push(index);
        }
    }

    /// Those added since the last call.
    pub(super) fn take(&mut self) -> Vec<usize> {
        let listed = core::mem::take(&mut self.listed);
        for index in &listed {
            self.bits[index / 64] &= !(1 << (index % 64));
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_listed_once() {
        let mut active = ActiveConnections::default();
        for index in [3, 3, 200, 3, 64] {
            active.add(index);
        }
        assert_eq!(active.take(), [3, 200, 64]);
        assert_eq!(active.take(), [0_usize; 0]);
        active.add(200);
        assert_eq!(active.take(), [200]);
    }
}
