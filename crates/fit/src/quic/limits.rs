//! How the peer raises its flow control limits, and whether its reader holds them back.

use diagnose::quic::transfer::QuicPeerLimit;

/// Fewest raises of a limit that show how it is raised.
const LEAST_RAISES: usize = 3;
/// Receivers whose windows do not grow, with the part of a window after whose reading they raise the limit: 2 for a half.
const RECEIVERS: [(&str, f64); 4] =
    [("quic-rfc9002", 2.0), ("msquic-2.6", 4.0), ("quinn-0.11", 8.0), ("s2n-quic-1.88", 10.0)];

/// How a limit was raised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LimitRaises {
    /// A raise is this part of the window: 2 for a half.
    pub(super) divisor: f64,
    /// The window in bytes.
    window: f64,
    /// At most raises the data that were acknowledged were read.
    pub(super) reads_at_once: bool,
    /// Bytes per second by which the limit advanced.
    pub(super) rate: f64,
}

impl LimitRaises {
    /// Measures the raises; `None` if there are too few. The first of `limits` was no raise.
    pub(super) fn of(limits: &[QuicPeerLimit]) -> Option<Self> {
        let raises = limits.get(1..).filter(|raises| raises.len() >= LEAST_RAISES)?;
        let mut window = limits[0].ahead;
        // The window may grow.
        let (mut divisors, mut unread) = (Vec::new(), Vec::new());
        for pair in limits.windows(2) {
            let [before, now] = [pair[0], pair[1]];
            window = window.max(now.ahead);
            let step = now.limit.saturating_sub(before.limit).max(1);
            divisors.push(window as f64 / step as f64);
            unread.push(window.saturating_sub(now.ahead) as f64 / window.max(1) as f64);
        }
        let divisor = median(&mut divisors)?;
        // A reader that waits for the data leaves none unread; of one that they wait for, the window is full but for what it
        // just read.
        let most_unread = (1.0 - 1.0 / divisor.max(1.0)) / 2.0;
        let reads_at_once = median(&mut unread)? <= most_unread;
        let (first, last) = (raises[0], raises[raises.len() - 1]);
        let time = last.at.saturating_sub(first.at).max(1);
        let rate = last.limit.saturating_sub(first.limit) as f64 * 1e9 / time as f64;
        Some(Self { divisor, window: window as f64, reads_at_once, rate })
    }

    /// The receiver that raises its limits most alike, with the part of a window, if it reads packets of `payload` bytes.
    pub(super) fn receiver(&self, payload: u64) -> (&'static str, f64) {
        let payload = payload.max(1) as f64;
        let off = |part: f64| {
            // It raises the limit with the packet that completes the part.
            let step = (self.window / part / payload).ceil().max(1.0) * payload;
            let divisor = self.window / step;
            (divisor / self.divisor).max(self.divisor / divisor)
        };
        let nearest = |a: &&(_, f64), b: &&(_, f64)| off(a.1).total_cmp(&off(b.1));
        RECEIVERS.iter().min_by(nearest).copied().unwrap_or(RECEIVERS[0])
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits of a window of 96 kB, raised with this part of it each 20 ms, when `unread` bytes of what was acknowledged
    /// are not read.
    fn limits(divisor: u64, unread: u64) -> Vec<QuicPeerLimit> {
        let window = 96_000;
        let mut limits = vec![QuicPeerLimit { at: 0, limit: window, ahead: window }];
        for raise in 1..=10 {
            let limit = window + raise * window / divisor;
            let at = raise * 20_000_000;
            limits.push(QuicPeerLimit { at, limit, ahead: window - unread });
        }
        limits
    }

    #[test]
    fn a_receiver_raises_its_limits_as_the_one_of_the_log() {
        for (divisor, receiver) in
            [(2, "quic-rfc9002"), (4, "msquic-2.6"), (8, "quinn-0.11"), (10, "s2n-quic-1.88")]
        {
            let found = LimitRaises::of(&limits(divisor, 2_000)).unwrap();
            assert_eq!(found.receiver(100).0, receiver);
            assert!(found.reads_at_once);
        }
        assert_eq!(LimitRaises::of(&limits(2, 0)[..3]), None);
        // A tenth, but with whole packets of 1,400 bytes: seven of them.
        let mut rounded = limits(10, 2_000);
        for (raise, one) in (0..).zip(&mut rounded) {
            one.limit = 96_000 + raise * 9_800;
        }
        let found = LimitRaises::of(&rounded).unwrap();
        assert_eq!(found.receiver(1_400), ("s2n-quic-1.88", 10.0));
    }

    #[test]
    fn a_slow_reader_leaves_its_window_full() {
        let found = LimitRaises::of(&limits(4, 72_000)).unwrap();
        assert!(!found.reads_at_once);
        // 24 kB each 20 ms.
        assert!((found.rate - 1_200_000.0).abs() < 1.0, "{found:?}");
        assert!(!LimitRaises::of(&limits(2, 48_000)).unwrap().reads_at_once);
    }
}
