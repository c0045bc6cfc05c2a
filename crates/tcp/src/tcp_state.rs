//! The states of a connection.

/// States of RFC 9293 section 3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum TcpState {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Open in both directions.
    Established,
    /// This side has closed; its FIN is not acknowledged.
    FinWait1,
    /// This side has closed and its FIN is acknowledged; the peer has not closed.
    FinWait2,
    /// Both sides closed at once; this side's FIN is not acknowledged.
    Closing,
    /// Both have closed; old segments may still arrive.
    TimeWait,
    /// The peer has closed.
    CloseWait,
    /// The peer closed first, then this side; this side's FIN is not acknowledged.
    LastAck,
}
