//! The transport stack of a host: TCP or QUIC, never both.

use quic::CongestionControl;
use tcp::profile::Profile;
use units::Duration;

/// The transport stack of a host.
#[expect(clippy::large_enum_variant, reason = "there is one for each host")]
#[derive(Debug, Clone, PartialEq)]
pub enum Stack {
    /// Its connections are of TCP.
    Tcp(TcpStack),
    /// Its connections are of QUIC.
    Quic(QuicStack),
}

/// The TCP of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpStack {
    /// The behaviour of its system, knobs applied.
    pub profile: Profile,
    /// Congestion control of its connections.
    pub cc: cc::Algorithm,
    /// Phase of the kernel clock within its tick when the run begins.
    pub clock_phase: Duration,
    /// Initial sequence number of its connections; drawn from the seed if absent.
    pub isn: Option<u32>,
    /// Value of its timestamp clock when the run begins; drawn from the seed if absent.
    pub timestamp: Option<u32>,
}

impl TcpStack {
    /// A stack whose clock begins at a tick and whose first numbers are drawn from the seed.
    pub const fn new(profile: Profile, cc: cc::Algorithm) -> Self {
        Self { profile, cc, clock_phase: Duration::ZERO, isn: None, timestamp: None }
    }
}

/// The QUIC of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicStack {
    /// The behaviour of its implementation, knobs applied.
    pub profile: quic::Profile,
    /// Congestion control of its connections.
    pub cc: CongestionControl,
}

impl Stack {
    /// Name of its profile.
    pub const fn profile_name(&self) -> &'static str {
        match self {
            Self::Tcp(tcp) => tcp.profile.name,
            Self::Quic(quic) => quic.profile.name,
        }
    }

    /// Name of its congestion control.
    pub fn cc_name(&self) -> &'static str {
        match self {
            Self::Tcp(tcp) => tcp.cc.name(),
            Self::Quic(quic) => quic.cc.name(),
        }
    }

    /// IP bytes of its largest packet.
    pub const fn mtu(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => tcp.profile.mtu,
            Self::Quic(quic) => quic.profile.mtu,
        }
    }

    /// Whether its congestion control is user-defined.
    pub const fn has_external_cc(&self) -> bool {
        match self {
            Self::Tcp(tcp) => matches!(tcp.cc, cc::Algorithm::Outside(_)),
            Self::Quic(quic) => matches!(quic.cc, CongestionControl::External(_)),
        }
    }

    /// Its TCP, if that is what it is.
    pub const fn tcp(&self) -> Option<&TcpStack> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) => None,
        }
    }

    /// As [`Stack::tcp`], to be changed.
    pub const fn tcp_mut(&mut self) -> Option<&mut TcpStack> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) => None,
        }
    }

    /// Its QUIC, if that is what it is.
    pub const fn quic(&self) -> Option<&QuicStack> {
        match self {
            Self::Tcp(_) => None,
            Self::Quic(quic) => Some(quic),
        }
    }

    /// As [`Stack::quic`], to be changed.
    pub const fn quic_mut(&mut self) -> Option<&mut QuicStack> {
        match self {
            Self::Tcp(_) => None,
            Self::Quic(quic) => Some(quic),
        }
    }
}
