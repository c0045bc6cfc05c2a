//! What a host's network card and driver do to segments: split them going out, merge them
//! coming in.
//!
//! Reading order: [`tso`] (a burst becomes packets), [`rss`] (what packets of a pass are sorted
//! by), [`lro_freebsd`] (packets of one interrupt
//! pass are sorted and condensed), [`gro_linux`] (packets are merged as they come).
//!
//! A pass is what the driver takes from its ring at one interrupt. The simulator decides what
//! falls into it: it pushes the packets in order of arrival and then flushes. The buffers are
//! kept from pass to pass, so after warm-up nothing is allocated.

pub mod gro_linux;
pub mod lro_freebsd;
pub mod rss;
pub mod tso;

use packet::Segment;

pub use gro_linux::{Gro, GroParams};
pub use lro_freebsd::{Lro, LroParams};
pub use rss::{HashField, HashRule, RssHash};
pub use tso::split;

/// The receive offload of one host.
#[derive(Debug, Clone)]
pub enum Merger {
    /// None: every packet goes up as it is.
    Off,
    /// FreeBSD's software LRO.
    FreeBsd(Lro),
    /// Linux's GRO.
    Linux(Gro),
}

impl Merger {
    /// Takes the next packet of the pass; what is complete by now goes to the end of `up`.
    #[inline]
    pub fn push(&mut self, packet: &Segment, rss: RssHash, up: &mut Vec<Segment>) {
        match self {
            Self::Off => up.push(*packet),
            Self::FreeBsd(lro) => lro.push(packet, rss),
            Self::Linux(gro) => gro.push(packet, up),
        }
    }

    /// Ends the pass: what is left goes to the end of `up`, in order of delivery.
    #[inline]
    pub fn flush(&mut self, up: &mut Vec<Segment>) {
        match self {
            Self::Off => {}
            Self::FreeBsd(lro) => lro.flush(up),
            Self::Linux(gro) => gro.flush(up),
        }
    }
}
