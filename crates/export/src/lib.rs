//! Exports of runs in the formats of other programs.
//!
//! [`capture`] (pcapng and tcpdump's text), [`kernel_log`] (BBLog, siftr, tcp_probe, ss),
//! [`mod@qlog`], `columns` (Parquet), [`curves`] (charts), [`emulator`]
//! (tc/netem and dummynet), [`mod@flent`].

pub mod capture;
#[cfg(feature = "parquet")]
pub mod columns;
pub mod curves;
pub mod emulator;
pub mod flent;
pub mod kernel_log;
pub mod qlog;
