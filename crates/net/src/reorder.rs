//! Elements that change the order of packets.
//!
//! [`reverse`] reverses groups, [`displace`] moves single packets back by a number of positions,
//! [`selective_delay`] by a time. Packets outside the rule's class
//! ([`crate::selection::PacketClass`]) pass at once.

pub mod displace;
pub mod reverse;
pub mod selective_delay;
