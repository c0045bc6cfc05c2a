//! Logs of FreeBSD's siftr: one line for each packet in or out, with the connection's state.
//!
//! Three generations are read and written: 1.2 (with a hash, the smoothed round-trip time in
//! ticks), 1.3 (what FreeBSD ships) and 2 (siftr2: hexadecimal, or 72 bytes a row). Which one a
//! log is, its header tells; without a header, the number of columns.
//!
//! ```
//! use logs::siftr::{Generation, Header, Item, Reader, Row, Writer};
//! # use ackclock_logs as logs;
//!
//! let row = Row {
//!     local: Some("10.0.0.1:49152".parse().unwrap()),
//!     remote: Some("10.0.0.2:5001".parse().unwrap()),
//!     cwnd: 14_480,
//!     ..Row::default()
//! };
//! let mut writer = Writer::new(Vec::new(), &Header::new(Generation::V1_3))?;
//! writer.row(&row)?;
//! let log = writer.finish()?;
//!
//! let mut reader = Reader::new(&log[..]);
//! let rows: Vec<Row> = reader
//!     .by_ref()
//!     .filter_map(|item| match item.unwrap() {
//!         Item::Row(row) => Some(row),
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
//! What it does not do: it writes no binary rows.

mod columns;
mod header;
mod problem;
mod read;
mod row;
mod write;

pub use header::{FlowInfo, Footer, Generation, Header};
pub use problem::{Loss, SiftrProblem, SiftrProblemKind};
pub use read::{Item, MAX_LINE, Reader};
pub use row::Row;
pub use write::Writer;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
