//! From the packets of a connection to what limited it. Layer 2.
//!
//! A reader (in `trace`) makes [`Packet`]s of a capture, sorts them into connections and pushes
//! them into a [`Connection`]; [`Connection::finish`] gives the [`Analysis`].
//!
//! Reading order: [`place`] (where the capture was taken), `half` (one direction: data in
//! `half/data`, ACKs in `half/acks`, on top of `outstanding`, `ranges`, `round_trip`), what it
//! counts (`transmissions`, `reordering`, `coverage`, `dispersion`), `rounds`, `episodes` and `turns` (the
//! course of the connection), [`flow`] and [`analysis`] (the result),
//! [`course`] (what limited it when: [`budget`], and who is to [`blame`]), [`rules`] (the findings),
//! [`Diagnosis`] (all of it).
//!
//! What it does not do: it reads no files, knows no senders and no worlds, and simulates nothing.

pub mod analysis;
pub mod blame;
pub mod budget;
mod connection;
pub mod course;
pub mod coverage;
mod diagnosis;
mod dispersion;
pub mod episodes;
pub mod flow;
mod half;
mod outstanding;
mod packet;
pub mod path;
pub mod place;
mod ranges;
pub mod reordering;
mod round_trip;
pub mod rounds;
pub mod rules;
pub mod state;
#[cfg(test)]
mod tests;
pub mod transmissions;
pub mod turns;

pub use analysis::Analysis;
pub use budget::{Budget, Limiter};
pub use connection::{Connection, Opening, Settings};
pub use course::Course;
pub use diagnosis::Diagnosis;
pub use flow::Flow;
pub use packet::Packet;
pub use path::Path;
pub use state::StateSample;
