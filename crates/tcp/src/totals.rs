//! Counters of a connection.

use units::{Bytes, Duration};

/// Counters of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct TcpTotals {
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// Data packets retransmitted.
    pub retransmitted_packets: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Times the retransmission timer fired.
    pub timeouts: u64,
    /// Recoveries and timeouts that proved spurious and were undone.
    pub spurious: u64,
    /// Largest congestion window.
    pub max_cwnd: Bytes,
    /// Minimum round trip measured, in the granularity of the stack.
    pub min_rtt: Option<Duration>,
}
