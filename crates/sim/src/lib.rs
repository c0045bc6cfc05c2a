//! Simulated worlds: hosts, paths and applications from plain data, run in virtual time. Layer 5.
//!
//! Reading order: [`scenario`] (the description of a world), [`observer`] (records a run),
//! [`outcome`] (the results), `validity` (which scenarios can be run), then the run itself: `world`
//! (the event loop), `routes` (the elements of a path), `nic` (a host's network card), `transport`
//! (TCP or QUIC), `real` (a real implementation of QUIC), `datagrams` (QUIC packets on the network), `app` (the applications). In addition:
//! [`audit`] (a run checked by the verifier), [`live`] (a world with external hosts) and `erased` (one
//! engine for many observers).
//!
//! The crate reads no file, has no text form, prints nothing and never reads a clock. The same
//! scenario gives the same bytes on any machine.

pub mod audit;
pub mod live;
pub mod observer;
pub mod outcome;
pub mod scenario;

mod app;
mod datagrams;
mod erased;
mod nic;
mod real;
mod routes;
mod run_error;
mod transport;
mod udp;
mod validity;
mod world;

pub use erased::{ErasedObserver, run_shared};
pub use observer::{Observer, ObserverPair};
pub use outcome::{
    DatagramOutcome, FlowOutcome, GroupOutcome, Latency, LatencyKind, RunOutcome, VideoOutcome,
};
pub use run_error::{
    DuplicationLimit, InFlightLimit, MAX_PACKETS_IN_FLIGHT, RunError, StackFailure,
};
pub use scenario::Scenario;
pub use validity::{SetupError, validate};
pub use world::run;
#[doc(hidden)]
pub use world::run_packing;
