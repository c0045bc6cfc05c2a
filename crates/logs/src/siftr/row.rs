//! A row: a packet and the state of its connection before it.

use std::net::SocketAddr;

use units::Duration;

use trace::pcapng::PacketDirection;

/// One row. Windows and buffers are in bytes; fields that a version lacks are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiftrRow {
    /// Direction of the packet.
    pub way: PacketDirection,
    /// Time since 1970: in microseconds, in siftr2 in milliseconds.
    pub at: Duration,
    /// Address and port of the logging host (1).
    pub local: Option<SocketAddr>,
    /// Address and port of its peer (1).
    pub remote: Option<SocketAddr>,
    /// Flow id (RSS hash).
    pub flow_id: Option<u32>,
    /// Hash type of the flow id (1.3).
    pub flow_type: Option<u32>,
    /// Hash of the packet (1.2).
    pub hash: Option<u32>,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Window limited by bandwidth (1.2).
    pub bwnd: Option<u32>,
    /// Window advertised by the peer.
    pub snd_wnd: u32,
    /// Advertised window.
    pub rcv_wnd: u32,
    /// Shift of the windows that the peer advertises (1).
    pub snd_scale: Option<u8>,
    /// Shift of the windows advertised to the peer (1).
    pub rcv_scale: Option<u8>,
    /// State of the connection, TCPS_... (1).
    pub state: Option<u32>,
    /// Largest segment, options not deducted (1).
    pub mss: Option<u32>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Whether SACK is in use (1).
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
    /// Segments in the reassembly queue.
    pub segqlen: u32,
    /// Payload bytes of the packet (2).
    pub payload: Option<u32>,
}

impl Default for SiftrRow {
    fn default() -> Self {
        Self {
            way: PacketDirection::In,
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
