//! Conversion of instants.

use units::Instant;

/// Conversion of virtual time to quinn's instants, relative to an arbitrary origin.
#[derive(Debug, Clone, Copy)]
pub struct QuinnClock(std::time::Instant);

impl Default for QuinnClock {
    #[expect(clippy::disallowed_methods, reason = "an origin: only differences are ever looked at")]
    fn default() -> Self {
        Self(std::time::Instant::now())
    }
}

impl QuinnClock {
    /// Converts to quinn's.
    pub fn theirs(self, at: Instant) -> std::time::Instant {
        self.0 + std::time::Duration::from_nanos(at.as_nanos())
    }

    /// Converts from quinn's.
    pub fn ours(self, at: std::time::Instant) -> Instant {
        Instant::from_nanos(at.saturating_duration_since(self.0).as_nanos() as u64)
    }
}
