//! The one door: scenario text in, tables, findings and reports out. Floor 7.
//!
//! Reading order: [`units_text`] (quantities as people write them), [`scenario`] (scenario files
//! and their errors), [`run_report`] (the result of a run), [`run_page`] (the
//! same as a page of plots), [`sweep`] (many runs), [`capture`]
//! (what tcpdump would have seen of a run), [`kernel_log`] (what FreeBSD's loggers would have
//! written of its sender), [`mod@qlog`] (the same as qlog), [`cases`] and [`reproduce_page`] (published figures beside
//! ours), [`series`] (columns over time), [`curves`] and [`pictures`]
//! (charts), [`log_view`]
//! (logs of a stack for reading), [`theory_report`] (closed forms beside runs), [`whatif`] (a captured
//! transfer with other senders), [`worlds`]
//! (scenarios by chance, and whether they obey), [`import_ini`]
//! (ini files of OMNeT++), [`packet_scripts`] (what a host sends, packet by packet), [`inputs`] (captures and logs, read into
//! connections), [`diagnosis`] (what they say), [`wire_report`] (a run with real hosts beside one in
//! virtual time), [`overlay`] (the windows of both), [`leave`] (ending a run early).

pub mod capture;
pub mod cases;
#[cfg(feature = "parquet")]
pub mod columns;
pub mod curves;
pub mod diagnosis;
pub mod digests;
pub mod import_ini;
pub mod inputs;
pub mod kernel_log;
pub mod leave;
pub mod log_view;
pub mod overlay;
pub mod packet_scripts;
pub mod pictures;
pub mod qlog;
pub mod reproduce_page;
pub mod run_page;
pub mod run_report;
pub mod scenario;
pub mod series;
pub mod sharing;
mod snippet;
pub mod sweep;
pub mod theory_report;
pub mod units_text;
pub mod whatif;
pub mod wire_page;
pub mod wire_report;
pub mod workloads;
pub mod worlds;
