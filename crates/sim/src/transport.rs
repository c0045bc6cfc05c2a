//! Transport of a flow: TCP or QUIC, a real implementation of QUIC, or an external stack.
//!
//! Connections take most of a world's memory. An unused one takes none, and an idle one little:
//! [`Simulation::wake_endpoint`](crate::world::Simulation::wake_endpoint) creates or wakes it
//! before any input.

use cc::external::ControllerError;
use machine::{Cx, Endpoint as _, Signal};
use quic::real::RealFailure;
use record::Recorder;
use tcp::packed::PackedEndpoint;
use units::{Bytes, Duration, Instant};

use crate::real::RealTransport;
use crate::udp::DatagramEndpoint;

/// One end of a connection of either kind.
#[derive(Debug)]
pub(crate) enum TransportEndpoint {
    Tcp(Box<tcp::TcpEndpoint>),
    Quic(Box<quic::QuicEndpoint>),
    Real(Box<RealTransport>),
    /// An end of a flow of datagrams.
    Udp(Box<DatagramEndpoint>),
    /// Endpoint of an external machine: it communicates through [`crate::live`].
    Outside,
    /// Not created yet: the scenario describes it.
    Uncreated,
    /// An endpoint of a group's connection that is over: only its counters are left. It answers nothing.
    Retired(Box<EndpointTotals>),
    /// A hibernated TCP endpoint.
    Hibernated(Box<PackedEndpoint>),
}

/// Counters of both kinds.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndpointTotals {
    pub(crate) data_packets: u64,
    pub(crate) retransmitted_packets: u64,
    pub(crate) recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) spurious: u64,
    pub(crate) max_cwnd: Bytes,
    pub(crate) mss: Bytes,
    pub(crate) min_rtt: Option<Duration>,
    /// Bytes of packets with payload received, transport headers included, each once; QUIC only.
    pub(crate) received_packet_bytes: Option<Bytes>,
}

/// Forwards a call to the endpoint; `$silence` is the result for an external one. Hibernated
/// endpoints must be woken first.
macro_rules! either {
    ($any:expr, $end:ident => $call:expr, $silence:expr) => {
        match $any {
            TransportEndpoint::Tcp($end) => $call,
            TransportEndpoint::Quic($end) => $call,
            TransportEndpoint::Real($end) => $call,
            other => {
                debug_assert!(!other.sleeps(), "called before it was woken");
                $silence
            }
        }
    };
}

impl TransportEndpoint {
    /// Returns whether it must be created or woken before use.
    #[inline]
    pub(crate) const fn sleeps(&self) -> bool {
        matches!(self, Self::Uncreated | Self::Hibernated(_))
    }

    pub(crate) fn open<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self {
            Self::Tcp(tcp) => tcp.open(),
            Self::Quic(quic) => quic.open(cx),
            Self::Real(real) => real.open(cx),
            Self::Udp(udp) => udp.open(cx.now),
            Self::Outside | Self::Uncreated | Self::Retired(_) | Self::Hibernated(_) => {}
        }
    }

    #[inline]
    pub(crate) fn write<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: u64) -> u64 {
        either!(self, end => end.write(cx, bytes), 0)
    }

    #[inline]
    pub(crate) fn read_up_to<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, most: u64) -> u64 {
        either!(self, end => end.read_up_to(cx, most), 0)
    }

    pub(crate) fn close(&mut self, now: Instant) {
        match self {
            Self::Real(real) => real.close(now),
            Self::Tcp(tcp) => tcp.close(),
            Self::Quic(quic) => quic.close(),
            other => debug_assert!(!other.sleeps(), "called before it was woken"),
        }
    }

    pub(crate) fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        either!(self, end => end.reset(cx), ());
    }

    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        either!(self, end => end.at_end(), false)
    }

    /// Does a read send an acknowledgment by itself, before the application writes?
    #[inline]
    pub(crate) fn acknowledges_in_read(&self) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.acknowledges_in_read())
    }

    #[inline]
    pub(crate) fn poll_signal<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> Option<Signal> {
        match self {
            Self::Tcp(tcp) => tcp.poll_signal(),
            Self::Quic(quic) => quic.poll_signal(),
            Self::Real(real) => real.poll_signal(cx),
            other => {
                debug_assert!(!other.sleeps(), "called before it was woken");
                None
            }
        }
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> Instant {
        match self {
            Self::Tcp(tcp) => tcp.next_deadline(),
            Self::Quic(quic) => quic.poll_timeout().map_or(Instant::MAX, |(at, _)| at),
            Self::Real(real) => real.deadline(),
            Self::Udp(udp) => udp.deadline(),
            Self::Outside | Self::Uncreated | Self::Retired(_) | Self::Hibernated(_) => {
                Instant::MAX
            }
        }
    }

    /// Is pacing by a high-resolution timer all that is due?
    pub(crate) fn only_paces(&self, now: Instant) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.only_paces(now))
    }

    #[inline]
    pub(crate) fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        either!(self, end => end.handle_timeout(cx), ());
    }

    /// Returns the failure of a user-defined congestion controller. A hibernated endpoint has none.
    pub(crate) fn controller_failure(&self) -> Option<&ControllerError> {
        match self {
            Self::Tcp(tcp) => tcp.controller_failure(),
            Self::Quic(quic) => quic.controller_failure(),
            Self::Real(_)
            | Self::Udp(_)
            | Self::Outside
            | Self::Uncreated
            | Self::Retired(_)
            | Self::Hibernated(_) => None,
        }
    }

    /// Returns the failure of a real implementation.
    pub(crate) fn stack_failure(&self) -> Option<&RealFailure> {
        match self {
            Self::Real(real) => real.failure(),
            _ => None,
        }
    }

    pub(crate) fn counted(&self) -> EndpointTotals {
        match self {
            Self::Tcp(tcp) => counted_by_tcp(tcp),
            Self::Hibernated(packed) => counted_by_tcp(&packed.wake()),
            Self::Quic(quic) => {
                let totals = quic.totals();
                EndpointTotals {
                    data_packets: totals.data_packets,
                    retransmitted_packets: totals.retransmitted_packets,
                    recoveries: totals.recoveries,
                    timeouts: totals.timeouts,
                    spurious: 0,
                    max_cwnd: totals.max_cwnd,
                    mss: quic.sender_state().mss,
                    min_rtt: totals.min_rtt,
                    received_packet_bytes: Some(Bytes(totals.received_bytes)),
                }
            }
            Self::Real(real) => real.counted(),
            Self::Udp(udp) => EndpointTotals {
                data_packets: udp.sent(),
                mss: Bytes(u64::from(udp.size)),
                ..EndpointTotals::default()
            },
            Self::Retired(totals) => (**totals).clone(),
            Self::Outside | Self::Uncreated => EndpointTotals::default(),
        }
    }
}

fn counted_by_tcp(tcp: &tcp::TcpEndpoint) -> EndpointTotals {
    let totals = tcp.totals();
    EndpointTotals {
        data_packets: totals.data_packets,
        retransmitted_packets: totals.retransmitted_packets,
        recoveries: totals.fast_recoveries,
        timeouts: totals.timeouts,
        spurious: totals.spurious,
        max_cwnd: totals.max_cwnd,
        mss: tcp.sender_state().mss,
        min_rtt: totals.min_rtt,
        received_packet_bytes: None,
    }
}
