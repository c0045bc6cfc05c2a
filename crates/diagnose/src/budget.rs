//! The time budget: each moment of a transfer belongs to one limiter, and the sum is the whole.

/// What limited the transfer at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limiter {
    /// The connection was being opened.
    Handshake,
    /// The window of slow start.
    SlowStart,
    /// The congestion window, outside slow start.
    Cwnd,
    /// The receiver's window.
    Rwnd,
    /// The application, or its send buffer.
    Application,
    /// Repair of losses.
    Recovery,
    /// Waiting for a timer.
    Timeout,
    /// Nothing: the bottleneck was busy.
    Path,
    /// Nothing was to be sent for longer than a timeout, or all was done.
    Idle,
    /// What nobody can tell who sees nothing come back.
    Unknown,
}

impl Limiter {
    /// All, in the order of a table.
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

/// Where the time went, in nanoseconds by [`Limiter`]; the sum is the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    ns: [u64; 10],
}

impl Budget {
    /// Nanoseconds that `limiter` held.
    pub const fn of(&self, limiter: Limiter) -> u64 {
        self.ns[limiter as usize]
    }

    /// All of it.
    pub fn whole(&self) -> u64 {
        self.ns.iter().sum()
    }

    /// Time in which the connection was at work: all but idling.
    pub fn active(&self) -> u64 {
        self.whole() - self.of(Limiter::Idle)
    }

    pub(crate) fn add(&mut self, limiter: Limiter, ns: u64) {
        self.ns[limiter as usize] += ns;
    }
}
