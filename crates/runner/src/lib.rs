//! Runs, sweeps and packet scripts, with their results as text, rows and JSON.
//!
//! Reading order: [`run_report`] (the result of a run), [`groups`] (many connections as one flow),
//! [`sharing`] (fairness and queue delays),
//! [`series`] (columns over time), [`sweep`] (many runs), [`theory_report`] (formulas compared with
//! runs), [`wire_report`] (a run with real hosts compared with one in virtual time), [`timelines`]
//! and [`wire_differences`] (its figures), [`packet_scripts`] (one host, packet by packet),
//! [`user_controllers`] (controllers in Python), [`workers`] (threads for independent work).

/// Digest of the code that results depend on, in lower-case hexadecimal: the same version may have several.
pub const MODEL: &str = env!("ACKCLOCK_MODEL");

pub mod groups;
pub mod packet_scripts;
pub mod run_report;
pub mod series;
pub mod sharing;
pub mod stop;
pub mod sweep;
pub mod theory_report;
pub mod timelines;
pub mod user_controllers;
pub mod wire_differences;
pub mod wire_report;
pub mod workers;
