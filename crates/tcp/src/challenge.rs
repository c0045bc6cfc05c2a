//! Challenge ACKs and their limit (RFC 5961 sections 3 to 7).

use recovery::lazy::InitialValue;
use units::{Duration, Instant};

/// Counts challenge ACKs in fixed intervals.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Challenge {
    began: Option<Instant>,
    sent: u32,
}

/// No challenge ACK was sent.
static NONE: Challenge = Challenge { began: None, sent: 0 };

impl InitialValue for Challenge {
    fn initial() -> &'static Self {
        &NONE
    }
}

impl Challenge {
    /// May another be sent now, if at most `most` are allowed within `window`?
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
    fn the_number_within_the_interval_is_limited() {
        let mut challenge = Challenge::initial().clone();
        let rule = (2, Duration::from_secs(1));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let allowed: Vec<_> = [0, 10, 20, 999, 1_000, 1_001, 1_002]
            .into_iter()
            .map(|ms| challenge.allow(at(ms), rule))
            .collect();
        assert_eq!(allowed, [true, true, false, false, true, true, false]);
    }
}
