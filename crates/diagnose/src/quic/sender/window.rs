//! The congestion window that the log reports, and the recovery that reduced it.

use units::Instant;

use super::round_trips::GRANULARITY;

/// The state of the controller, as the log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReportedState {
    /// The log has no states.
    #[default]
    Unknown,
    SlowStart,
    Other,
}

/// The congestion window.
#[derive(Debug, Default)]
pub(super) struct SenderWindow {
    /// In bytes; `None` without one.
    pub(super) size: Option<u64>,
    /// Size before the last change, and the time of the change.
    before: Option<(u64, Instant)>,
    /// When it was last seen full, or grew.
    pub(super) used: Option<Instant>,
    pub(super) ssthresh: Option<u64>,
    pub(super) state: ReportedState,
}

impl SenderWindow {
    pub(super) fn set(&mut self, at: Instant, size: u64) {
        if self.size.is_none_or(|old| size > old) {
            self.used = Some(at);
        }
        if let Some(old) = self.size.filter(|&old| old != size) {
            match self.before {
                Some((_, changed)) if changed == at && old < size => {}
                _ => self.before = Some((old, at)),
            }
        }
        self.size = Some(size);
    }

    /// Its size when a loss is detected: some logs report the reduced window before the loss.
    pub(super) fn before_loss(&self, at: Instant) -> Option<u64> {
        match self.before {
            Some((before, changed)) if at.since(changed) <= GRANULARITY => {
                self.size.max(Some(before))
            }
            _ => self.size,
        }
    }

    /// Whether it is that of slow start; `is_unreduced`: no loss was detected.
    pub(super) fn is_in_slow_start(&self, is_unreduced: bool) -> bool {
        match self.state {
            ReportedState::SlowStart => true,
            ReportedState::Other => false,
            ReportedState::Unknown => match self.ssthresh {
                Some(ssthresh) => self.size.is_some_and(|size| size < ssthresh),
                None => is_unreduced,
            },
        }
    }

    /// A loss ends slow start.
    pub(super) fn on_loss(&mut self) {
        if self.state != ReportedState::Unknown {
            self.state = ReportedState::Other;
        }
    }
}

/// The recovery in progress, and the congestion event whose window is not regained.
#[derive(Debug, Default)]
pub(super) struct RecoveryState {
    /// Transmission time that ends the recovery period once a later packet is acknowledged.
    since: Option<Instant>,
    /// Index of the congestion event.
    pub(super) episode: Option<usize>,
    /// Window that ends it, in bytes.
    pub(super) target: u64,
    /// The window has fallen below the target.
    has_fallen: bool,
    /// It ended slow start before the path was full, and lasts until it is.
    awaits_queue: bool,
}

impl RecoveryState {
    pub(super) const fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// Whether the loss of a packet sent at `sent_at` belongs to the recovery.
    pub(super) fn covers(&self, sent_at: Option<Instant>) -> bool {
        self.since.is_some_and(|since| sent_at.is_none_or(|sent| sent <= since))
    }

    /// Begins a recovery at `at` with the window before it, and the present one, which some logs have
    /// reduced already.
    pub(super) fn begin(
        &mut self,
        at: Instant,
        before: Option<u64>,
        window: Option<u64>,
        is_early: bool,
    ) {
        self.awaits_queue |= is_early;
        self.since = Some(at);
        let target = if self.episode.is_some() { self.target } else { 0 };
        self.target = target.max(before.unwrap_or(0));
        self.has_fallen = window.is_some_and(|window| window < self.target);
    }

    /// The window is reported; `is_later` than the loss. The event ends once the window has fallen and is
    /// regained: aioquic reports the unreduced window once more between the two. Of a controller that
    /// does not reduce it, the event ends with the recovery.
    pub(super) fn on_window(&mut self, window: u64, is_later: bool) {
        self.has_fallen |= window < self.target;
        let is_regained = self.has_fallen && !self.awaits_queue;
        let is_unreduced = !self.has_fallen && !self.is_open();
        if window >= self.target && is_later && (is_regained || is_unreduced) {
            (self.episode, self.awaits_queue) = (None, false);
        }
    }

    /// A queue shows that the window fills the path.
    pub(super) const fn on_queue(&mut self) {
        if self.awaits_queue && !self.is_open() {
            (self.awaits_queue, self.episode) = (false, None);
        }
    }

    /// A packet sent at `sent_at` is acknowledged.
    pub(super) fn on_acked(&mut self, sent_at: Instant) {
        if self.since.is_some_and(|since| sent_at > since) {
            self.since = None;
        }
    }
}
