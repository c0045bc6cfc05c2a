//! Segment processing in a host's network card and driver: splits segments on output, merges them
//! on input.
//!
//! Reading order: [`tso`] (splits a burst into packets), [`rss`] (the sort key of the packets of a
//! pass), [`lro_freebsd`] (sorts and condenses the packets of one interrupt pass), [`gro_linux`]
//! (merges packets on arrival).
//!
//! A pass is the set of packets that the driver takes from its ring at one interrupt. The simulator
//! decides its extent: it pushes the packets in order of arrival and then flushes. The buffers are
//! reused between passes, so after warm-up nothing is allocated.

pub mod gro_linux;
pub mod lro_freebsd;
pub mod rss;
pub mod tso;

use packet::Segment;

pub use gro_linux::{Gro, GroParams};
pub use lro_freebsd::{Lro, LroParams};
pub use rss::{HashField, HashRule, RssHash};
pub use tso::split;

/// Receive offload of one host.
#[derive(Debug, Clone)]
pub enum RxOffload {
    /// None: every packet is delivered as it is.
    Off,
    /// FreeBSD's software LRO.
    FreeBsd(Lro),
    /// Linux's GRO.
    Linux(Gro),
}

impl RxOffload {
    /// Takes the next packet of the pass; appends completed aggregates to `up`.
    #[inline]
    pub fn push(&mut self, packet: &Segment, rss: RssHash, up: &mut Vec<Segment>) {
        match self {
            Self::Off => up.push(*packet),
            Self::FreeBsd(lro) => lro.push(packet, rss),
            Self::Linux(gro) => gro.push(packet, up),
        }
    }

    /// Ends the pass: appends the remaining aggregates to `up`, in order of delivery.
    #[inline]
    pub fn flush(&mut self, up: &mut Vec<Segment>) {
        match self {
            Self::Off => {}
            Self::FreeBsd(lro) => lro.flush(up),
            Self::Linux(gro) => gro.flush(up),
        }
    }
}
