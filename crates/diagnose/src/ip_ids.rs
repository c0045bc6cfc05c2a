//! IPv4 identifications as evidence that a host sent packets which the capture does not have.
//!
//! Linux counts the identification of each connection up by one per packet (`ip_select_ident_segs`,
//! `inet_id`); Windows and older systems count per destination or host. RFC 6864 leaves the field
//! of an atomic packet to the sender, and FreeBSD and OpenBSD fill it at random: such a field proves
//! nothing. So the counter counts as evidence only while most of its steps are one.

/// Fewest steps that show a counter.
const MIN_STEPS: u32 = 8;

/// Most packets that a gap in the counter may represent; a larger one is another flow's or random.
const MAX_GAP: u16 = 256;

/// The identifications of the packets of one host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IpIdCounter {
    last: Option<u16>,
    steps: u32,
    steps_of_one: u32,
}

impl IpIdCounter {
    /// Records the identification of the next packet of this host; returns the number of packets
    /// that the host sent between the previous one and this one and that were not captured. `None`
    /// if the field is no counter.
    pub(crate) fn next(&mut self, id: u16) -> Option<u16> {
        if id == 0 {
            return None;
        }
        let last = self.last.replace(id)?;
        let step = id.wrapping_sub(last);
        let counts = self.is_counter();
        self.steps += 1;
        self.steps_of_one += u32::from(step == 1);
        (counts && (1..=MAX_GAP).contains(&step)).then(|| step - 1)
    }

    /// Whether the steps so far are those of a counter of this connection.
    fn is_counter(self) -> bool {
        self.steps >= MIN_STEPS && self.steps_of_one * 8 >= self.steps * 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_shows_missing_packets() {
        let mut ids = IpIdCounter::default();
        for id in 65_530_u16..=65_535 {
            assert_eq!(ids.next(id), None);
        }
        // Linux skips no value at the wrap; 0 is not used by the field's owner.
        for id in 1_u16..8 {
            ids.next(id);
        }
        assert_eq!(ids.next(8), Some(0));
        assert_eq!(ids.next(13), Some(4));
    }

    #[test]
    fn a_random_field_shows_nothing() {
        let mut ids = IpIdCounter::default();
        for n in 1_u16..100 {
            assert_eq!(ids.next(n.wrapping_mul(40_503) | 1), None);
        }
    }
}
