//! Drawn traffic: flows of one transfer each.
//!
//! The sizes are of a bounded Pareto distribution with exponent 1.2, and the flows are drawn until
//! their bytes are the load; each starts at any time of the run with equal probability. So the offered
//! load is exact, as with the scaled start times of the draft, section 2.3.1. The same seed gives each
//! sender the same flows.

use units::{RandomStream, maths};

/// The exponent of the sizes.
const EXPONENT: f64 = 1.2;

/// Least and largest transfer in bytes, where a link has no other.
pub(super) const SIZES: (f64, f64) = (5e4, 2e7);

/// A transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DrawnFlow {
    /// Index of its route.
    pub(super) route: usize,
    /// Start in nanoseconds.
    pub(super) start: u64,
    /// Bytes.
    pub(super) bytes: u64,
}

/// Flows of these bytes in total over this number of seconds, in the order of their starts. Each takes one
/// of `routes` with equal probability.
pub(super) fn drawn(
    name: &str,
    total: f64,
    seconds: u64,
    (least, most): (f64, f64),
    routes: usize,
) -> Vec<DrawnFlow> {
    let mut draws = RandomStream::named(1, name, "tcpeval");
    let mut flows = Vec::new();
    let mut left = total;
    while left >= 1.0 {
        let share = draws.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let bytes = size(share, least, most).min(left).floor().max(1.0);
        left -= bytes;
        flows.push(DrawnFlow {
            route: draws.below(routes as u64) as usize,
            start: draws.below(seconds * 1_000_000_000),
            bytes: bytes as u64,
        });
    }
    flows.sort_by_key(|flow| (flow.start, flow.route, flow.bytes));
    flows
}

/// The size below which this share of the flows is.
fn size(share: f64, least: f64, most: f64) -> f64 {
    let tail = 1.0 - maths::pow(least / most, EXPONENT);
    least / maths::pow(1.0 - share * tail, 1.0 / EXPONENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offered_bytes_are_exact_and_sizes_are_in_their_bounds() {
        let flows = drawn("a", 1e8, 30, (5e4, 2e7), 9);
        assert_eq!(flows.iter().map(|flow| flow.bytes).sum::<u64>(), 100_000_000);
        // The last is what is left.
        let small = flows.iter().filter(|flow| flow.bytes < 50_000).count();
        assert!(small <= 1 && flows.iter().all(|flow| flow.bytes <= 20_000_000 && flow.route < 9));
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        assert_eq!(flows, drawn("a", 1e8, 30, (5e4, 2e7), 9));
        assert_ne!(flows, drawn("b", 1e8, 30, (5e4, 2e7), 9));
        assert!((size(0.0, 5e4, 2e7) - 5e4).abs() < 1e-6);
        assert!((size(1.0, 5e4, 2e7) / 2e7 - 1.0).abs() < 1e-9);
    }
}
