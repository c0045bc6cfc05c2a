//! Elements that change the order of packets.
//!
//! [`reverse`] turns groups around, [`displace`] moves single packets back by some places,
//! [`late`] by some time. Packets of no concern ([`crate::choice::Only`]) pass at once.

pub mod displace;
pub mod late;
pub mod reverse;
