//! The one door: scenario text in, tables, findings and reports out. Floor 7.
//!
//! Reading order: [`units_text`] (quantities as people write them), [`scenario`] (scenario files
//! and their errors), [`run_report`] (the result of a run), [`capture`] (what tcpdump would have
//! seen of it), [`cases`] (published figures beside ours), [`curves`] and
//! [`pictures`] (charts).

pub mod capture;
pub mod cases;
pub mod curves;
pub mod digests;
pub mod pictures;
pub mod run_report;
pub mod scenario;
pub mod units_text;
