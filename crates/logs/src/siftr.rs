//! Logs of FreeBSD's siftr: one line for each packet in or out, with the connection's state.
//!
//! Three versions of the format are read and written: 1.2 (with a hash, the smoothed round-trip
//! time in ticks), 1.3 (in FreeBSD) and 2 (siftr2: hexadecimal, or 72 bytes per row). The header
//! has the version; without a header, the number of columns decides.
//!
//! ```
//! use logs::siftr::{SiftrGeneration, SiftrHeader, SiftrItem, SiftrReader, SiftrRow, SiftrWriter};
//! # use ackclock_logs as logs;
//!
//! let row = SiftrRow {
//!     local: Some("10.0.0.1:49152".parse().unwrap()),
//!     remote: Some("10.0.0.2:5001".parse().unwrap()),
//!     cwnd: 14_480,
//!     ..SiftrRow::default()
//! };
//! let mut writer = SiftrWriter::new(Vec::new(), &SiftrHeader::new(SiftrGeneration::V1_3))?;
//! writer.row(&row)?;
//! let log = writer.finish()?;
//!
//! let mut reader = SiftrReader::new(&log[..]);
//! let rows: Vec<SiftrRow> = reader
//!     .by_ref()
//!     .filter_map(|item| match item.unwrap() {
//!         SiftrItem::Row(row) => Some(row),
//!         _ => None,
//!     })
//!     .collect();
//! assert_eq!(rows[0].cwnd, 14_480);
//! assert_eq!(reader.loss().problems, 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Sources: siftr_process_pkt and siftr_manage_ops of sys/netinet/siftr.c, siftr(4), siftr2.c.
//!
//! Binary rows are read, not written.

mod columns;
mod header;
mod problem;
mod read;
mod row;
mod write;

pub use header::{FlowInfo, SiftrFooter, SiftrGeneration, SiftrHeader};
pub use problem::{SiftrProblem, SiftrProblemKind, SiftrStats};
pub use read::{MAX_LINE, SiftrItem, SiftrReader};
pub use row::SiftrRow;
pub use write::SiftrWriter;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
