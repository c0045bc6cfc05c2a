//! What carries a flow: TCP or QUIC, or a stack outside this program.
//!
//! Most of what a world knows are its connections. One that nothing has happened to takes no room, and
//! one at rest little: [`World::rouse`](crate::world::World::rouse) makes or wakes it before anything is
//! said to it.

use cc::outside::Gone;
use machine::{Cx, Endpoint as _, Signal};
use record::Recorder;
use tcp::packed::Packed;
use units::{Bytes, Duration, Instant};

/// One end of a connection of either kind.
#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(Box<tcp::Endpoint>),
    Quic(Box<quic::Endpoint>),
    /// That of a machine outside: it hears through [`crate::live`], and nobody asks it anything.
    Outside,
    /// Nothing has happened to it: the scenario tells what it is.
    NotYet,
    /// One of TCP at rest.
    Asleep(Box<Packed>),
}

/// What both kinds have counted.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) data_packets: u64,
    pub(crate) retransmitted_packets: u64,
    pub(crate) recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) spurious: u64,
    pub(crate) max_cwnd: Bytes,
    pub(crate) mss: Bytes,
    pub(crate) min_rtt: Option<Duration>,
    /// Bytes of packets with payload that came, transport headers included, each once; QUIC only.
    pub(crate) received_packet_bytes: Option<Bytes>,
}

/// Hands a call to whichever it is; a stack outside answers with `$silence`. Nobody asks one that sleeps.
macro_rules! either {
    ($any:expr, $end:ident => $call:expr, $silence:expr) => {
        match $any {
            Transport::Tcp($end) => $call,
            Transport::Quic($end) => $call,
            other => {
                debug_assert!(!other.sleeps(), "asked something before it was roused");
                $silence
            }
        }
    };
}

impl Transport {
    /// Must it be made or woken before it can be asked anything?
    #[inline]
    pub(crate) const fn sleeps(&self) -> bool {
        matches!(self, Self::NotYet | Self::Asleep(_))
    }

    pub(crate) fn open<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self {
            Self::Tcp(tcp) => tcp.open(),
            Self::Quic(quic) => quic.open(cx),
            Self::Outside | Self::NotYet | Self::Asleep(_) => {}
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

    pub(crate) fn close(&mut self) {
        either!(self, end => end.close(), ());
    }

    pub(crate) fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        either!(self, end => end.reset(cx), ());
    }

    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        either!(self, end => end.at_end(), false)
    }

    #[inline]
    pub(crate) fn poll_signal(&mut self) -> Option<Signal> {
        either!(self, end => end.poll_signal(), None)
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> Instant {
        match self {
            Self::Tcp(tcp) => tcp.next_deadline(),
            Self::Quic(quic) => quic.poll_timeout().map_or(Instant::MAX, |(at, _)| at),
            Self::Outside | Self::NotYet | Self::Asleep(_) => Instant::MAX,
        }
    }

    #[inline]
    pub(crate) fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        either!(self, end => end.handle_timeout(cx), ());
    }

    /// What a user-defined congestion controller failed with. One at rest has none of those.
    pub(crate) fn controller_failure(&self) -> Option<&Gone> {
        match self {
            Self::Tcp(tcp) => tcp.controller_failure(),
            Self::Quic(quic) => quic.controller_failure(),
            Self::Outside | Self::NotYet | Self::Asleep(_) => None,
        }
    }

    pub(crate) fn counted(&self) -> Counted {
        match self {
            Self::Tcp(tcp) => counted_by_tcp(tcp),
            Self::Asleep(packed) => counted_by_tcp(&packed.wake()),
            Self::Quic(quic) => {
                let totals = quic.totals();
                Counted {
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
            Self::Outside | Self::NotYet => Counted::default(),
        }
    }
}

fn counted_by_tcp(tcp: &tcp::Endpoint) -> Counted {
    let totals = tcp.totals();
    Counted {
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
