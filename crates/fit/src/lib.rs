//! What a capture says about its path, its ends and its application, as a scenario. Layer 7.
//!
//! Reading order: [`Fitted`] (the estimates, each with what it rests on), `losses` (which packets
//! were lost, and why), `writes` (what the application did), `ends` (which systems talk), `text`
//! (the scenario file); [`guesses`] (which controller it was;
//! `peaks`: when a window shows, `rates`: what BBR is told).
//!
//! What it does not do: it runs nothing; `whatif` runs the scenario and reports how well it matches.

mod ends;
mod fitted;
mod losses;
mod peaks;
mod rates;
mod senders;
mod text;
mod writes;

pub use ends::System;
pub use fitted::{Basis, FitError, Fitted, Late};
pub use losses::Losses;
pub use senders::{Guess, TURNS, guesses};
pub use text::Chance;
pub use writes::Writes;
