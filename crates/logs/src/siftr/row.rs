//! A row: a packet and the state of its connection before it.

use std::net::SocketAddr;

use units::Duration;

use trace::pcapng::Way;

/// One row. Windows and buffers are in bytes; what a generation does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Did the packet come in or go out?
    pub way: Way,
    /// When, since 1970: in microseconds, in siftr2 in milliseconds.
    pub at: Duration,
    /// Address and port of the host that logs (1).
    pub local: Option<SocketAddr>,
    /// Those of its peer (1).
    pub remote: Option<SocketAddr>,
    /// Number of the flow (RSS hash).
    pub flow_id: Option<u32>,
    /// What kind of hash that number is (1.3).
    pub flow_type: Option<u32>,
    /// Hash of the packet (1.2).
    pub hash: Option<u32>,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Window limited by bandwidth (1.2).
    pub bwnd: Option<u32>,
    /// Window the peer offers.
    pub snd_wnd: u32,
    /// Window offered.
    pub rcv_wnd: u32,
    /// Shift of the windows the peer announces (1).
    pub snd_scale: Option<u8>,
    /// Shift of the windows announced to the peer (1).
    pub rcv_scale: Option<u8>,
    /// State of the connection, TCPS_... (1).
    pub state: Option<u32>,
    /// Largest segment, options not deducted (1).
    pub mss: Option<u32>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Is SACK on (1)?
    pub sack: Option<bool>,
    /// Flags of the connection (TF_...).
    pub t_flags: u32,
    /// More flags of the connection (1.3, 2).
    pub t_flags2: Option<u32>,
    /// Retransmission timeout.
    pub rto: Option<Duration>,
    /// Size of the send buffer.
    pub snd_hiwat: u32,
    /// Bytes in the send buffer.
    pub snd_cc: u32,
    /// Size of the receive buffer.
    pub rcv_hiwat: u32,
    /// Bytes in the receive buffer.
    pub rcv_cc: u32,
    /// Bytes in flight: `snd_max - snd_una`, in siftr2 tcp_compute_pipe.
    pub in_flight: u32,
    /// Segments waiting for their order.
    pub segqlen: u32,
    /// Payload bytes of the packet (2).
    pub payload: Option<u32>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            way: Way::In,
            at: Duration::ZERO,
            local: None,
            remote: None,
            flow_id: None,
            flow_type: None,
            hash: None,
            ssthresh: 0,
            cwnd: 0,
            bwnd: None,
            snd_wnd: 0,
            rcv_wnd: 0,
            snd_scale: None,
            rcv_scale: None,
            state: None,
            mss: None,
            srtt: None,
            sack: None,
            t_flags: 0,
            t_flags2: None,
            rto: None,
            snd_hiwat: 0,
            snd_cc: 0,
            rcv_hiwat: 0,
            rcv_cc: 0,
            in_flight: 0,
            segqlen: 0,
            payload: None,
        }
    }
}
