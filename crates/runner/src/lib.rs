//! Runs, sweeps and packet scripts, and what came out of them as text, rows and JSON.
//!
//! Reading order: [`run_report`] (the result of a run), [`sharing`] (how flows share a link), [`series`]
//! (columns over time), [`sweep`] (many runs), [`theory_report`] (closed forms beside runs), [`wire_report`]
//! (a run with real hosts beside one in virtual time), [`courses`] and [`wire_differences`] (its figures), [`packet_scripts`] (a host, packet by packet).

pub mod courses;
pub mod packet_scripts;
pub mod run_report;
pub mod series;
pub mod sharing;
pub mod stop;
pub mod sweep;
pub mod theory_report;
pub mod wire_differences;
pub mod wire_report;
