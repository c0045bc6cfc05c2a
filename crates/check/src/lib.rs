//! The independent verifier over the record of a run. Layer 2.
//!
//! It listens to a run (or to a [`Tape`] of one), moves every packet through a model of its own
//! and follows every byte from write to read. What it has seen at the end obeyed physics: nothing
//! early, nothing from thin air, no rate and no buffer exceeded, every byte once.
//!
//! Reading order: [`world`] (the plain description it is given), [`law`] (what a station may do),
//! [`violation`] (all that can be wrong), then the model: `station` (times and room), `traffic`
//! (packets on their roads), `end`, `sent` and `recovery` (the bytes of one end of a connection), `verifier`
//! (the listener); [`tape`] keeps a record to be verified later.
//!
//! What it does not do: it shares no code with what it verifies, it does not know why a sender
//! chose its window, and it takes the windows that a sender's state names at their word. Chance is
//! not judged either: a station that may lose packets may lose any number of them.

pub mod law;
pub mod tape;
pub mod violation;
pub mod world;

mod arrivals;
mod end;
mod recovery;
mod sent;
mod station;
mod summary;
mod traffic;
mod verifier;

pub use law::{Hold, Law, Line, Loss, Order, Outage, Room, Thinning};
pub use summary::{EndSummary, Summary};
pub use tape::{Item, Tape, verify};
pub use verifier::Verifier;
pub use violation::{Breach, Field, Rejection, Subject, Violation};
pub use world::{World, WorldError};
