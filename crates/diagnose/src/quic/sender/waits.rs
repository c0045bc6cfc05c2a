//! What limited the sender since the last progress: a probe timeout takes it for a wait.

use units::{Duration, Instant};

use crate::quic::budget::QuicLimiter;

/// Most intervals that are remembered.
const MAX_INTERVALS: usize = 64;

/// An interval and its limiter.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitedInterval {
    pub(super) limiter: QuicLimiter,
    /// Index of the congestion event that the window of this time is of.
    pub(super) episode: Option<usize>,
    pub(super) from: Instant,
    pub(super) to: Instant,
}

/// Where probe timeouts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TimerSource {
    /// Silences: the log has no timers.
    #[default]
    Silence,
    /// The log.
    Log,
}

/// Limiters since the last progress, and probe timeouts.
#[derive(Debug, Default)]
pub(super) struct TimeoutMeter {
    /// Since the last progress.
    pending: Vec<LimitedInterval>,
    /// Those of the silence before it, and its end.
    silence: Vec<LimitedInterval>,
    silence_end: Option<Instant>,
    source: TimerSource,
    /// Consecutive timeouts, as logged.
    count: u64,
    last: Option<Instant>,
}

impl TimeoutMeter {
    /// Adds an interval.
    pub(super) fn push(&mut self, interval: LimitedInterval) {
        self.pending.push(interval);
        if self.pending.len() > MAX_INTERVALS {
            self.pending.remove(0);
        }
    }

    /// What limits the sender now.
    pub(super) fn limiter(&self) -> Option<QuicLimiter> {
        self.pending.last().map(|interval| interval.limiter)
    }

    /// Data are sent or acknowledged.
    pub(super) fn on_progress(&mut self, at: Instant) {
        if !self.pending.is_empty() {
            core::mem::swap(&mut self.silence, &mut self.pending);
            self.pending.clear();
            self.silence_end = Some(at);
        }
    }

    /// The log has timers.
    pub(super) const fn on_logged(&mut self) {
        self.source = TimerSource::Log;
    }

    /// Takes a logged number of consecutive timeouts; true if it has grown.
    pub(super) const fn set_count(&mut self, count: u64) -> bool {
        self.on_logged();
        let has_grown = count > self.count;
        self.count = count;
        has_grown
    }

    /// Whether the silence until now shows a timeout, if the log has no timers.
    pub(super) fn is_shown_by_silence(&self, timeout: Duration) -> bool {
        let quiet: Duration = self.pending.iter().map(|one| one.to.since(one.from)).sum();
        self.source == TimerSource::Silence && quiet >= timeout
    }

    /// A timeout at `at`: what the sender waited for it, unless it is reported a second time, as a timer
    /// and as a count.
    pub(super) fn expire(&mut self, at: Instant) -> Option<Vec<LimitedInterval>> {
        if self.last == Some(at) {
            return None;
        }
        self.last = Some(at);
        let waited = core::mem::take(&mut self.pending);
        if waited.is_empty() && self.silence_end == Some(at) {
            return Some(core::mem::take(&mut self.silence));
        }
        Some(waited)
    }
}
