//! What follows from a timer of the sending side.

/// What the endpoint does after the sending side has handled a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum TimerOutcome {
    /// Nothing more.
    Nothing,
    /// The next segment acknowledges, whether or not an ACK was due.
    AckNow,
    /// The peer does not answer: the connection ends (tcp_drop, tcp_write_err).
    GiveUp,
    /// Keepalive probes are not answered: the connection ends, on FreeBSD and in Linux with a RST.
    DeadPeer,
}
