//! What both sides of a connection read: its configuration, its clock, its state and the options
//! negotiated. Only the endpoint changes it.

use crate::clock::KernelClock;
use crate::config::{ConnectionConfig, HandshakeConfig};
use crate::tcp_state::TcpState;

/// What both sides of a connection read.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Connection {
    pub(crate) cfg: ConnectionConfig,
    /// Dropped when the connection is established.
    #[serde(skip)]
    pub(crate) handshake_cfg: Option<Box<HandshakeConfig>>,
    pub(crate) clock: KernelClock,
    pub(crate) state: TcpState,
    pub(crate) negotiated: NegotiatedOptions,
}

/// Results of the handshake.
#[derive(Debug, Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(crate) struct NegotiatedOptions {
    /// Payload of a full segment without options (`t_maxseg`).
    pub(crate) maxseg: u32,
    /// Payload of a full segment, options deducted.
    pub(crate) mss: u32,
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// Shift of the windows that the peer advertises, if scaling is on.
    pub(crate) snd_scale: Option<u8>,
}
