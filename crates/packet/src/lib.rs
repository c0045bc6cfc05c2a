//! TCP segments. Layer 1.
//!
//! [`segment`] is the compact form used in virtual time: it has no payload bytes, and one `Segment`
//! may represent a burst that TSO will split or LRO has merged.
//! [`wire`] converts it to the bytes of RFC 9293 and RFC 791/8200 and back.
//!
//! [`quic`] reads the headers of QUIC packets.
//!
//! Nothing here keeps state from one segment to the next.

pub mod quic;
pub mod segment;
pub mod too_big;
pub mod wire;

pub use segment::{
    Dir, ECN_CE, FastOpenOption, Flags, IpVersion, Options, SackBlock, SackBlocks, Segment,
    SynExtras, SynLayout, SynOptions, Timestamps,
};
pub use too_big::PacketTooBig;
