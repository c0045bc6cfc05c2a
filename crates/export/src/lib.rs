//! Exports of runs in the formats of other programs.
//!
//! [`capture`] (pcapng and tcpdump's text), [`kernel_log`] (BBLog, siftr, tcp_probe, ss),
//! [`mod@qlog`], `columns` (Parquet), [`curves`] (charts).

pub mod capture;
#[cfg(feature = "parquet")]
pub mod columns;
pub mod curves;
pub mod kernel_log;
pub mod qlog;
