//! What a connection knows of Fast Open.

use packet::FastOpenOption;

/// Fast Open at a listener (tcp_try_fastopen).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOpenListener {
    /// The valid cookie of the peer, the experimental format if the peer uses it.
    pub cookie: FastOpenOption,
    /// Data is accepted without a cookie (`TFO_SERVER_COOKIE_NOT_REQD`).
    pub without_cookie: bool,
}

/// Fast Open at a client (`sendto` with `MSG_FASTOPEN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOpenClient {
    /// The server's cookie, or a request for one; `None` sends data without a cookie
    /// (`TFO_CLIENT_NO_COOKIE`).
    pub option: Option<FastOpenOption>,
    /// The server's segment size, as cached; 0 if it is unknown.
    pub mss: u16,
    /// The application waits to write more (`sk_write_pending`): the ACK of the SYN-ACK is delayed.
    pub waits: bool,
}

/// What a client learned from the SYN-ACK (tcp_rcv_fastopen_synack).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct FastOpenReply {
    /// The cookie of the SYN-ACK.
    #[serde(skip)]
    pub cookie: Option<FastOpenOption>,
    /// The segment size of the SYN-ACK.
    pub mss: u16,
    /// The SYN was retransmitted.
    pub retransmitted: bool,
}

/// State of Fast Open of a connection.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct FastOpenState {
    /// A server's connection whose SYN-ACK is not acknowledged (`fastopen_rsk`).
    pub(crate) child: bool,
    /// Its SYN-ACK is to be retransmitted.
    pub(crate) syn_ack_due: bool,
    /// The data of the SYN was accepted (`syn_data_acked`).
    pub(crate) syn_data_acked: bool,
    /// Why a client's data was not, as `tcp_fastopen_client_fail`.
    pub(crate) failure: u8,
    pub(crate) reply: Option<FastOpenReply>,
}

/// Fast Open before the handshake ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FastOpenHandshake {
    pub(super) listener: Option<FastOpenListener>,
    pub(super) client: Option<FastOpenClient>,
    /// The option of the first SYN or SYN-ACK.
    pub(super) option: Option<FastOpenOption>,
    /// Bytes of data in the SYN.
    pub(super) data: u32,
    /// The SYN was too large for the path: it is retransmitted without them.
    pub(super) too_large: bool,
}
