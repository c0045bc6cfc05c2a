//! The transport stack of a host: TCP, QUIC, or a real implementation of QUIC.

use quic::CongestionControl;
use quic::real::RealStack;
use tcp::profile::TcpProfile;
use units::Duration;

/// The transport stack of a host.
#[derive(Debug, Clone, PartialEq)]
pub enum StackSpec {
    /// TCP.
    Tcp(TcpStack),
    /// QUIC.
    Quic(QuicStack),
    /// A real implementation of QUIC.
    Real(RealQuicStack),
}

/// The TCP stack of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpStack {
    /// Behaviour of its system, knobs applied.
    pub profile: TcpProfile,
    /// Congestion control of its connections.
    pub cc: cc::Algorithm,
    /// Phase of the kernel clock within its tick at the start of the run.
    pub clock_phase: Duration,
    /// Initial sequence number of its connections; drawn from the seed if absent.
    pub isn: Option<u32>,
    /// Value of its timestamp clock at the start of the run; drawn from the seed if absent.
    pub timestamp: Option<u32>,
    /// The accept queue of its listening applications; without one, they take each connection at
    /// once.
    pub listen: Option<AcceptQueueSpec>,
}

/// An accept queue that all listening applications of a host share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptQueueSpec {
    /// Length of listen(2): as on Linux, the queue is full with one more (sk_acceptq_is_full).
    pub backlog: u32,
    /// The application takes one connection at each multiple of this time.
    pub accept: Duration,
}

impl TcpStack {
    /// Creates a stack whose clock starts at a tick and whose initial numbers are drawn from the
    /// seed.
    pub const fn new(profile: TcpProfile, cc: cc::Algorithm) -> Self {
        Self { profile, cc, clock_phase: Duration::ZERO, isn: None, timestamp: None, listen: None }
    }
}

/// The QUIC stack of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicStack {
    /// Behaviour of its implementation, knobs applied.
    pub profile: quic::QuicProfile,
    /// Congestion control of its connections.
    pub cc: CongestionControl,
}

/// A real implementation of QUIC on a host.
#[derive(Debug, Clone, Copy)]
pub struct RealQuicStack {
    /// The implementation.
    pub stack: &'static dyn RealStack,
    /// Congestion control of its connections, one that the implementation offers.
    pub cc: &'static str,
    /// IP bytes of the largest packet of the interface.
    pub mtu: u32,
}

impl PartialEq for RealQuicStack {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.stack.name(), one.cc, one.mtu);
        key(self) == key(other)
    }
}

impl StackSpec {
    /// Name of its profile.
    pub fn profile_name(&self) -> &'static str {
        match self {
            Self::Tcp(tcp) => tcp.profile.name,
            Self::Quic(quic) => quic.profile.name,
            Self::Real(real) => real.stack.name(),
        }
    }

    /// Name of its congestion control.
    pub fn cc_name(&self) -> &'static str {
        match self {
            Self::Tcp(tcp) => tcp.cc.name(),
            Self::Quic(quic) => quic.cc.name(),
            Self::Real(real) => real.cc,
        }
    }

    /// IP bytes of its largest packet.
    pub const fn mtu(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => tcp.profile.mtu,
            Self::Quic(quic) => quic.profile.mtu,
            Self::Real(real) => real.mtu,
        }
    }

    /// Whether its congestion control is user-defined.
    pub const fn has_external_cc(&self) -> bool {
        match self {
            Self::Tcp(tcp) => matches!(tcp.cc, cc::Algorithm::Outside(_)),
            Self::Quic(quic) => matches!(quic.cc, CongestionControl::External(_)),
            Self::Real(_) => false,
        }
    }

    /// Whether it can fail in a run: it has a user-defined congestion control, or is a real implementation.
    pub const fn may_fail(&self) -> bool {
        self.has_external_cc() || matches!(self, Self::Real(_))
    }

    /// Returns the TCP stack, if it is one.
    pub const fn tcp(&self) -> Option<&TcpStack> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) | Self::Real(_) => None,
        }
    }

    /// Returns the TCP stack for modification; see [`StackSpec::tcp`].
    pub const fn tcp_mut(&mut self) -> Option<&mut TcpStack> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) | Self::Real(_) => None,
        }
    }

    /// Returns the QUIC stack, if it is one.
    pub const fn quic(&self) -> Option<&QuicStack> {
        match self {
            Self::Tcp(_) | Self::Real(_) => None,
            Self::Quic(quic) => Some(quic),
        }
    }

    /// Returns the QUIC stack for modification; see [`StackSpec::quic`].
    pub const fn quic_mut(&mut self) -> Option<&mut QuicStack> {
        match self {
            Self::Tcp(_) | Self::Real(_) => None,
            Self::Quic(quic) => Some(quic),
        }
    }

    /// Returns the real implementation, if it is one.
    pub const fn real(&self) -> Option<&RealQuicStack> {
        match self {
            Self::Tcp(_) | Self::Quic(_) => None,
            Self::Real(real) => Some(real),
        }
    }

    /// Returns whether it can have a connection with this one: both are TCP, both models of QUIC, both the same real
    /// implementation, or both real ones with TLS.
    pub fn speaks_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(_), Self::Tcp(_)) | (Self::Quic(_), Self::Quic(_)) => true,
            (Self::Real(one), Self::Real(other)) => {
                let is_same = one.stack.name() == other.stack.name();
                is_same || (one.stack.has_tls() && other.stack.has_tls())
            }
            _ => false,
        }
    }

    /// Whether its packets are QUIC's, of a model or a real implementation.
    pub const fn is_quic(&self) -> bool {
        matches!(self, Self::Quic(_) | Self::Real(_))
    }
}
