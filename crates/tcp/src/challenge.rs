//! Challenge ACKs and their limit (RFC 5961 sections 3 to 7).

use units::{Duration, Instant};

/// Counts challenge ACKs in windows of time.
#[derive(Debug, Clone)]
pub(crate) struct Challenge {
    most: u32,
    window: Duration,
    began: Option<Instant>,
    sent: u32,
}

impl Challenge {
    /// At most `most` within `window`.
    pub(crate) const fn new((most, window): (u32, Duration)) -> Self {
        Self { most, window, began: None, sent: 0 }
    }

    /// May another be sent now?
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if self.began.is_none_or(|began| now.since(began) >= self.window) {
            self.began = Some(now);
            self.sent = 0;
        }
        self.sent += 1;
        self.sent <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_so_many_within_the_window() {
        let mut challenge = Challenge::new((2, Duration::from_secs(1)));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let allowed: Vec<_> = [0, 10, 20, 999, 1_000, 1_001, 1_002]
            .into_iter()
            .map(|ms| challenge.allow(at(ms)))
            .collect();
        assert_eq!(allowed, [true, true, false, false, true, true, false]);
    }
}
