//! Independent verifier of the record of a run. Layer 2.
//!
//! It follows a run (or a [`RecordedRun`] of one), moves every packet through a model of its own
//! and tracks every byte from write to read. A run without violations is physically consistent: no
//! packet is early or unsent, no rate and no buffer is exceeded, every byte is delivered once.
//!
//! Reading order: [`world`] (the description of the network), [`invariants`] (the invariants of an
//! element), [`violation`] (all possible violations), then the model: `element` (times and queue
//! capacity), `middlebox` (boxes that know connections), `traffic` (packets on their routes), `endpoint`, `sent` and `recovery` (the bytes of
//! one end of a connection), `verifier` (the recorder); [`recording`] keeps a record for later
//! verification.
//!
//! The crate shares no code with what it verifies, it does not know why a sender chose its window,
//! and it trusts the windows in a sender's state. It does not check randomness either: an element
//! that may drop packets may drop any number of them.

pub mod invariants;
pub mod recording;
pub mod violation;
pub mod world;

mod arrivals;
mod contents;
mod element;
mod endpoint;
mod listen;
mod middlebox;
mod recovery;
mod sent;
mod summary;
mod traffic;
mod verifier;

pub use invariants::{
    Answers, BucketFrame, Changes, ElementChanges, ElementInvariants, HoldTime, Line, Loss, Outage,
    PacketClass, PacketOrder, QueueCapacity, ResetCondition, Selection, Thinning, TimeQueue,
    TimedLine,
};
pub use recording::{RecordItem, RecordedRun, verify};
pub use summary::{EndpointSummary, VerifiedSummary};
pub use verifier::Verifier;
pub use violation::{Rejection, StateField, Subject, Violation, ViolationKind};
pub use world::{WorldError, WorldModel};
