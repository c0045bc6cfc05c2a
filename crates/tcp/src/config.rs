//! Configuration of a connection.

use packet::IpVersion;
use units::{Duration, FlowId, Instant, RandomStream, SeqNum};

use crate::fast_open::state::FastOpenHandshake;
use crate::profile::{Keepalive, SharedProfile};

/// Role of an endpoint in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum TcpSide {
    /// Sends the SYN.
    Client,
    /// Waits for the SYN.
    Server,
}

/// Configuration of a connection before it is opened.
#[derive(Debug, Clone)]
pub struct TcpConfig {
    /// Profile of the system's TCP.
    pub profile: SharedProfile,
    /// Congestion control.
    pub algorithm: cc::Algorithm,
    /// Client or server.
    pub side: TcpSide,
    /// Number of the connection, copied into every segment.
    pub flow: FlowId,
    /// IP version.
    pub ip: IpVersion,
    /// Initial sequence number.
    pub isn: SeqNum,
    /// Value of the timestamp clock when the run begins.
    pub timestamp: u32,
    /// Phase of the kernel clock within its tick when the run begins.
    pub clock_phase: Duration,
    /// The network card has TCP segmentation offload.
    pub tso: bool,
    /// Nagle's algorithm is off (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Keepalive, if the application enables it.
    pub keepalive: Option<Keepalive>,
    /// Random stream of the controller: the phase in which BBR's cycles begin
    /// (`bbr_reset_probe_bw_mode`).
    pub draws: RandomStream,
}

/// The part of the configuration that is used as long as the connection lasts.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct ConnectionConfig {
    #[serde(skip, default = "SharedProfile::placeholder")]
    pub(crate) profile: SharedProfile,
    pub(crate) flow: FlowId,
    pub(crate) isn: SeqNum,
    pub(crate) side: TcpSide,
    pub(crate) ip: IpVersion,
    pub(crate) tso: bool,
    pub(crate) nodelay: bool,
    pub(crate) keepalive: Option<Box<Keepalive>>,
}

/// The part of the configuration that is needed only to restart the handshake.
#[derive(Debug, Clone)]
pub(crate) struct HandshakeConfig {
    pub(crate) algorithm: cc::Algorithm,
    pub(crate) timestamp: u32,
    pub(crate) draws: RandomStream,
    /// Time of the first SYN of an active opening.
    pub(crate) opened: Option<Instant>,
    /// Time of the first SYN-ACK of a listener.
    pub(crate) answered: Option<Instant>,
    /// SYN-ACKs sent after the first, by timeouts and as answers to SYNs (`num_retrans`).
    pub(crate) syn_acks_again: u32,
    pub(crate) fast_open: FastOpenHandshake,
}
