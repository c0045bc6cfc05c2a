//! Challenge ACKs and their limit (RFC 5961 sections 3 to 7).

use recovery::apart::Beginning;
use units::{Duration, Instant};

/// Counts challenge ACKs in windows of time.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Challenge {
    began: Option<Instant>,
    sent: u32,
}

/// None was sent.
static NONE: Challenge = Challenge { began: None, sent: 0 };

impl Beginning for Challenge {
    fn beginning() -> &'static Self {
        &NONE
    }
}

impl Challenge {
    /// May another be sent now, at most `most` within `window`?
    pub(crate) fn allow(&mut self, now: Instant, (most, window): (u32, Duration)) -> bool {
        if self.began.is_none_or(|began| now.since(began) >= window) {
            self.began = Some(now);
            self.sent = 0;
        }
        self.sent += 1;
        self.sent <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_so_many_within_the_window() {
        let mut challenge = Challenge::beginning().clone();
        let rule = (2, Duration::from_secs(1));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let allowed: Vec<_> = [0, 10, 20, 999, 1_000, 1_001, 1_002]
            .into_iter()
            .map(|ms| challenge.allow(at(ms), rule))
            .collect();
        assert_eq!(allowed, [true, true, false, false, true, true, false]);
    }
}
