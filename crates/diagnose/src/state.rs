//! What a kernel itself said about a connection at one instant: `BBLog`, siftr, `tcp_probe`, `ss`.

use packet::Dir;
use units::{Bytes, Duration, Instant};

/// A sender's own state at an instant. What the source does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateSample {
    /// When, on the clock of the packets (`Packet::at`).
    pub at: Instant,
    /// Whose state: the end that sends in this direction.
    pub of: Dir,
    /// Congestion window.
    pub cwnd: Option<Bytes>,
    /// Slow-start threshold; a value of "infinite" is `None`.
    pub ssthresh: Option<Bytes>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Its mean deviation.
    pub rttvar: Option<Duration>,
    /// Bytes under way as the sender counts them.
    pub inflight: Option<Bytes>,
    /// The peer's window, as the sender knows it.
    pub snd_wnd: Option<Bytes>,
    /// Bytes in the send buffer.
    pub send_buffer: Option<Bytes>,
    /// The kernel's tick counter (FreeBSD's `ticks`, wrapping).
    pub ticks: Option<u32>,
    /// Ticks per second, where the log declares them (`kern.hz`).
    pub hz: Option<u32>,
    /// Is the sender in fast recovery?
    pub in_recovery: Option<bool>,
}

impl StateSample {
    /// A sample that says nothing yet.
    pub const fn new(at: Instant, of: Dir) -> Self {
        Self {
            at,
            of,
            cwnd: None,
            ssthresh: None,
            srtt: None,
            rttvar: None,
            inflight: None,
            snd_wnd: None,
            send_buffer: None,
            ticks: None,
            hz: None,
            in_recovery: None,
        }
    }
}
