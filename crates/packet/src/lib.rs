//! TCP segments. Layer 1.
//!
//! [`segment`] is the compact form that travels through virtual time: no payload bytes exist in
//! it, and one `Segment` may stand for a burst that TSO will split or LRO has merged.
//! [`wire`] turns it into the bytes of RFC 9293 and RFC 791/8200 and back.
//!
//! What it does not do: nothing here keeps state from one segment to the next.

pub mod segment;
pub mod wire;

pub use segment::{
    Dir, ECN_CE, Flags, IpVersion, Options, SackBlock, SackBlocks, Segment, SynLayout, SynOptions,
    Timestamps,
};
