//! The cube root of tcp_cubic.c: a table lookup of the six leading bits, then one Newton iteration.

/// Table for the six leading bits: 64 times the cube root, less 10. Entries below 8 are for small
/// numbers, which need no iteration.
const LEADING: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, //
    157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199, //
    200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229, //
    231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// `cubic_root`: the mean error is 0.2 %.
pub(super) fn cubic_root(a: u64) -> u32 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        return (u32::from(LEADING[a as usize]) + 35) >> 6;
    }
    let third = ((bits * 84) >> 8) - 1;
    let leading = LEADING[(a >> (third * 3)) as usize];
    let x = (u64::from(leading) + 10) << third >> 6;
    let x = 2 * x + a / (x * (x - 1));
    ((x * 341) >> 10) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_accurate() {
        for root in (3_u64..2_000_000).step_by(997) {
            let found = u64::from(cubic_root(root * root * root));
            assert!(found.abs_diff(root) <= 1 + root / 100, "{found}, not {root}");
        }
        assert_eq!((cubic_root(0), cubic_root(1), cubic_root(8), cubic_root(27)), (0, 1, 2, 3));
        assert!(cubic_root(u64::MAX) > 2_600_000);
    }

    #[test]
    fn three_packets_take_as_long_as_recorded() {
        // Recorded on Linux 6.18: last_max - cwnd = 3 gives K = 2003.
        assert_eq!(cubic_root((1 << 40) / 410 * 3), 2_003);
    }
}
