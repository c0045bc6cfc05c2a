//! From the packets of a connection to what limited it. Floor 2.
//!
//! A reader (in `trace`) makes [`Packet`]s of a capture, sorts them into connections and pushes
//! them into a [`Connection`]; [`Connection::finish`] gives the [`Analysis`].
//!
//! What it does not do: it reads no files, knows no senders and no worlds, and simulates nothing.

mod analysis;
mod connection;
mod packet;
mod state;

pub use analysis::Analysis;
pub use connection::{Connection, Settings};
pub use packet::Packet;
pub use state::StateSample;
