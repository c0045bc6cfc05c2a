//! What is said of a connection before it begins.

use packet::IpVersion;
use units::{Duration, FlowId, SeqNum, Stream};

use crate::endpoint::Endpoint;
use crate::probes::Keepalive;
use crate::profile::SharedProfile;

/// Which side opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Side {
    /// Sends the SYN.
    Client,
    /// Waits for it.
    Server,
}

/// Everything that must be said before a connection can begin.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the system's TCP does.
    pub profile: SharedProfile,
    /// Congestion control.
    pub algorithm: cc::Algorithm,
    /// Which side opens.
    pub side: Side,
    /// Number of the connection, copied into every segment.
    pub flow: FlowId,
    /// Version of the internet protocol.
    pub ip: IpVersion,
    /// Initial sequence number.
    pub isn: SeqNum,
    /// Value of the timestamp clock when the run begins.
    pub timestamp: u32,
    /// How far into its tick the kernel clock stands when the run begins.
    pub clock_phase: Duration,
    /// The network card splits bursts.
    pub tso: bool,
    /// Nagle's algorithm is off (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Probes of a silent peer, if the application wants them.
    pub keepalive: Option<Keepalive>,
    /// Chance of the controller: in which phase BBR's cycles begin (`bbr_reset_probe_bw_mode`).
    pub draws: Stream,
}

/// What of it is asked for as long as the connection lasts.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Kept {
    #[serde(skip, default = "SharedProfile::placeholder")]
    pub(crate) profile: SharedProfile,
    pub(crate) flow: FlowId,
    pub(crate) isn: SeqNum,
    pub(crate) side: Side,
    pub(crate) ip: IpVersion,
    pub(crate) tso: bool,
    pub(crate) nodelay: bool,
    pub(crate) keepalive: Option<Box<Keepalive>>,
}

/// The rest of it, as long as the endpoint may begin anew.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) algorithm: cc::Algorithm,
    pub(crate) timestamp: u32,
    pub(crate) draws: Stream,
}

impl Endpoint {
    /// What it was made of and what was changed since; `None` once it was established.
    pub(crate) fn config(&self) -> Option<Config> {
        let (cfg, origin) = (&self.cfg, self.origin.as_ref()?);
        Some(Config {
            profile: cfg.profile.clone(),
            algorithm: origin.algorithm,
            side: cfg.side,
            flow: cfg.flow,
            ip: cfg.ip,
            isn: cfg.isn,
            timestamp: origin.timestamp,
            clock_phase: self.clock.phase(),
            tso: cfg.tso,
            nodelay: cfg.nodelay,
            keepalive: cfg.keepalive.as_deref().copied(),
            draws: origin.draws.clone(),
        })
    }
}
