//! Worlds: hosts, paths and applications from plain data, run in virtual time. Layer 5.
//!
//! Reading order: [`scenario`] (what a world is made of), [`observer`] (who watches),
//! [`outcome`] (what is measured), `validity` (which scenarios can be run), then the run itself: `world` (the loop), `road` (stations of
//! a path), `card` (a host's network card), `transport` (TCP or QUIC), `datagrams` (QUIC packets
//! on the network), `app` (what applications do); beside it [`audit`] (a run under the eyes of the
//! verifier) and [`live`] (a world some of whose hosts are real).
//!
//! What it does not do: it reads no file, knows no text form, prints nothing and never looks at
//! a clock. Same scenario, same bytes out, on any machine.

pub mod audit;
pub mod live;
pub mod observer;
pub mod outcome;
pub mod scenario;

mod app;
mod card;
mod datagrams;
mod road;
mod run_error;
mod transport;
mod validity;
mod world;

pub use observer::{Observer, Watch};
pub use outcome::{FlowOutcome, Latency, Outcome};
pub use run_error::{Duplicates, MOST_PACKETS, RunError};
pub use scenario::Scenario;
pub use validity::{SetupError, validate};
pub use world::run;
#[doc(hidden)]
pub use world::run_packing;
