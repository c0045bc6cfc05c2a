//! What limited a QUIC sender, and the time and the delivered bytes of each limit.

/// What limited the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuicLimiter {
    /// The handshake was not complete.
    Handshake,
    /// The server had sent three times what it had received (RFC 9000 section 8.1).
    AntiAmplification,
    /// The congestion window, before the first congestion event.
    SlowStart,
    /// The congestion window.
    Window,
    /// Recovery after a loss (RFC 9002 section 7.3.2), the congestion window full.
    Recovery,
    /// Waiting for the probe timeout.
    Timeout,
    /// The peer's limit for the connection.
    ConnectionFlow,
    /// The peer's limit for a stream.
    StreamFlow,
    /// The peer's limit of the number of streams.
    StreamCount,
    /// The pacer.
    Pacing,
    /// The application had nothing to send.
    Application,
    /// Nothing: the window was full and a queue was standing.
    Path,
    /// Nothing in flight for longer than a probe timeout.
    Idle,
    /// The peer, which sends the data; this host receives them.
    Peer,
    /// The log has no congestion window or no bytes in flight.
    Unknown,
}

impl QuicLimiter {
    /// All, in the order of a table.
    pub const ALL: [Self; 15] = [
        Self::Handshake,
        Self::AntiAmplification,
        Self::SlowStart,
        Self::Window,
        Self::Recovery,
        Self::Timeout,
        Self::ConnectionFlow,
        Self::StreamFlow,
        Self::StreamCount,
        Self::Pacing,
        Self::Application,
        Self::Path,
        Self::Idle,
        Self::Peer,
        Self::Unknown,
    ];

    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::AntiAmplification => "anti_amplification",
            Self::SlowStart => "slow_start",
            Self::Window => "congestion_window",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::ConnectionFlow => "connection_flow_control",
            Self::StreamFlow => "stream_flow_control",
            Self::StreamCount => "stream_count",
            Self::Pacing => "pacing",
            Self::Application => "application",
            Self::Path => "path_saturated",
            Self::Idle => "idle",
            Self::Peer => "peer",
            Self::Unknown => "unknown",
        }
    }

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::AntiAmplification => "anti-amplification",
            Self::SlowStart => "slow start",
            Self::Window => "cwnd",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::ConnectionFlow => "connection flow control",
            Self::StreamFlow => "stream flow control",
            Self::StreamCount => "stream count",
            Self::Pacing => "pacing",
            Self::Application => "application",
            Self::Path => "path busy",
            Self::Idle => "idle",
            Self::Peer => "peer",
            Self::Unknown => "unknown",
        }
    }
}

/// Time and delivered bytes of a limiter or an episode, and where it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicSpan {
    /// Nanoseconds.
    pub ns: u64,
    /// Bytes acknowledged in them.
    pub bytes: u64,
    /// Number of separate stretches.
    pub times: u64,
    /// Begin of the first and end of the last stretch, in ns.
    pub interval: (u64, u64),
    /// First and last event.
    pub events: (u64, u64),
}

impl QuicSpan {
    pub(super) fn add(&mut self, from: u64, to: u64, event: u64) {
        if self.ns == 0 && self.times == 0 {
            self.interval.0 = from;
            self.events.0 = event.saturating_sub(1);
        }
        if self.times == 0 || self.events.1 + 1 < event {
            self.times += 1;
        }
        self.ns += to - from;
        self.interval.1 = to;
        self.events.1 = event;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.times == 0 {
            self.bytes += other.bytes;
            return;
        }
        if self.times == 0 {
            (self.interval, self.events) = (other.interval, other.events);
        }
        self.interval.0 = self.interval.0.min(other.interval.0);
        self.interval.1 = self.interval.1.max(other.interval.1);
        self.events.0 = self.events.0.min(other.events.0);
        self.events.1 = self.events.1.max(other.events.1);
        self.ns += other.ns;
        self.bytes += other.bytes;
        self.times += other.times;
    }
}

/// Spans by [`QuicLimiter`]; their sum is the duration of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicBudget {
    pub(super) spans: [QuicSpan; 15],
}

impl QuicBudget {
    /// What `limiter` limited.
    pub const fn of(&self, limiter: QuicLimiter) -> &QuicSpan {
        &self.spans[limiter as usize]
    }

    /// Charges another limiter with the time of one.
    pub(super) fn move_to(&mut self, from: QuicLimiter, to: QuicLimiter) {
        let span = core::mem::take(&mut self.spans[from as usize]);
        self.spans[to as usize].merge(&span);
    }

    /// Charges another limiter with a part of the time of one, in ns.
    pub(super) fn move_part(&mut self, from: QuicLimiter, to: QuicLimiter, ns: u64) {
        let ns = ns.min(self.of(from).ns);
        if ns == 0 {
            return;
        }
        let source = self.spans[from as usize];
        self.spans[from as usize].ns -= ns;
        self.spans[to as usize].merge(&QuicSpan { ns, bytes: 0, times: 1, ..source });
    }

    /// The sum, in ns.
    pub fn whole(&self) -> u64 {
        self.spans.iter().map(|span| span.ns).sum()
    }

    /// Active time, in ns: all but [`QuicLimiter::Idle`].
    pub fn active(&self) -> u64 {
        self.whole() - self.of(QuicLimiter::Idle).ns
    }
}
