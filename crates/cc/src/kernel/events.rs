//! What Linux's stack reports to a controller in C beyond the events of the contract.

use units::{Duration, Instant, Offset};

/// The connection as the stack sees it before an operation: the fields of `struct tcp_sock` that the stack owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackView {
    /// Current time (`tcp_mstamp`).
    pub now: Instant,
    /// The kernel's tick counter.
    pub ticks: u64,
    /// `snd_una`, and the first byte not yet sent.
    pub una: Offset,
    /// See `una`.
    pub snd_nxt: Offset,
    /// Receive window of the peer, in bytes.
    pub snd_wnd: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Packets in the retransmission queue, and those of them SACKed, marked lost, and retransmitted.
    pub packets_out: u64,
    /// See `packets_out`.
    pub sacked_out: u64,
    /// See `packets_out`.
    pub lost_out: u64,
    /// See `packets_out`.
    pub retrans_out: u64,
    /// Packets marked lost in total.
    pub lost: u64,
    /// The smoothed RTT in eighths of a microsecond; 0 before the first sample.
    pub srtt_eighths: u32,
    /// Minimum RTT.
    pub min_rtt: Option<Duration>,
    /// The stack's pacing rate, in bytes per second; 0 while unknown.
    pub pacing_rate: u64,
    /// The window limited the last flight (`is_cwnd_limited`).
    pub window_limited: bool,
    /// Largest flight of the current window, in packets.
    pub max_packets_out: u64,
    /// The tick of the last transmission of data.
    pub last_sent: u64,
}

/// An acknowledgment was applied to the retransmission queue (the end of tcp_clean_rtx_queue).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckApplied {
    /// Packets that left the queue.
    pub acked: u32,
    /// Packets newly delivered: acknowledged or SACKed.
    pub delivered: u32,
    /// `tp->delivered` when the newest packet that it delivered was sent, where the stack measures rates.
    pub prior_delivered: Option<u64>,
    /// It advances `snd_una` or changes the window.
    pub updates_window: bool,
    /// It carries more than an acknowledgment of new data in order.
    pub slow_path: bool,
    /// It echoes congestion.
    pub ece: bool,
    /// Its timestamps: value and echo.
    pub timestamps: Option<(u32, u32)>,
}
