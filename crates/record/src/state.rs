//! The sender's state as a row.

use units::{Bytes, Duration, Offset, Rate};

/// What a sender knows at one moment. Offsets count from 0 at the first payload byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderState {
    /// Oldest byte not yet acknowledged.
    pub snd_una: Offset,
    /// Next byte to send.
    pub snd_nxt: Offset,
    /// End of what was ever sent.
    pub snd_max: Offset,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while unset.
    pub ssthresh: Option<Bytes>,
    /// Window the peer offers.
    pub snd_wnd: Bytes,
    /// Payload of a full segment, options deducted.
    pub mss: Bytes,
    /// Bytes in the send buffer, sent or not.
    pub buffered: Bytes,
    /// Size of the send buffer.
    pub send_buffer: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// Is a fast recovery running?
    pub in_recovery: bool,
    /// Bytes under way: of QUIC the packets in flight with their headers, against which the
    /// window is held; of TCP what is sent and not acknowledged.
    pub in_flight: Bytes,
    /// Bytes acknowledged that count towards the next step of the window, where the controller
    /// counts them (`partialBytesAcked` of INET's QUIC); else 0.
    pub partial_acked: Bytes,
    /// Bytes the stack takes to be in the network: sent, neither acknowledged nor reported, and not
    /// taken for lost (`pipe` of RFC 6675); of QUIC the packets in flight.
    pub pipe: Bytes,
    /// What the stack paces at, or would pace at if it did (`sk_pacing_rate` of Linux); `None`
    /// where it has no such rate, or none yet.
    pub pacing: Option<Rate>,
}

impl SenderState {
    /// Bytes sent and not yet acknowledged.
    pub fn flight(&self) -> Bytes {
        self.snd_max.since(self.snd_una)
    }
}
