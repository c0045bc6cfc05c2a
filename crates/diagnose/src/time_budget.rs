//! The time budget of a transfer: every moment belongs to one limiter.

use units::Duration;

/// What limited the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limiter {
    /// The handshake.
    Handshake,
    /// The congestion window, in slow start.
    SlowStart,
    /// The congestion window, outside slow start.
    Cwnd,
    /// The receive window.
    Rwnd,
    /// The application, or its send buffer.
    Application,
    /// Loss recovery.
    Recovery,
    /// Waiting for the retransmission timer.
    Timeout,
    /// Nothing: the bottleneck was busy.
    Path,
    /// No data in flight for longer than a timeout, or after the last data.
    Idle,
    /// Unknown: the capture has no packets from the receiver.
    Unknown,
}

impl Limiter {
    /// All limiters, in the order of a table.
    pub const ALL: [Self; 10] = [
        Self::Handshake,
        Self::SlowStart,
        Self::Cwnd,
        Self::Rwnd,
        Self::Application,
        Self::Recovery,
        Self::Timeout,
        Self::Path,
        Self::Idle,
        Self::Unknown,
    ];

    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SlowStart => "slow_start",
            Self::Cwnd => "congestion_window",
            Self::Rwnd => "receive_window",
            Self::Application => "application",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Path => "path_saturated",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SlowStart => "slow start",
            Self::Cwnd => "cwnd",
            Self::Rwnd => "rwnd",
            Self::Application => "application",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Path => "path busy",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }
}

/// Time by [`Limiter`]; the sum is the duration of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeBudget {
    times: [Duration; 10],
}

impl TimeBudget {
    /// Time in which `limiter` limited the transfer.
    pub const fn of(&self, limiter: Limiter) -> Duration {
        self.times[limiter as usize]
    }

    /// The sum.
    pub fn whole(&self) -> Duration {
        self.times.into_iter().sum()
    }

    /// Active time: all but [`Limiter::Idle`].
    pub fn active(&self) -> Duration {
        self.whole() - self.of(Limiter::Idle)
    }

    /// The time since `earlier`, an earlier budget of the same transfer.
    pub fn less(&self, earlier: &Self) -> Self {
        let mut times = self.times;
        for (time, before) in times.iter_mut().zip(earlier.times) {
            *time = time.saturating_sub(before);
        }
        Self { times }
    }

    pub(crate) fn add(&mut self, limiter: Limiter, time: Duration) {
        self.times[limiter as usize] += time;
    }
}
