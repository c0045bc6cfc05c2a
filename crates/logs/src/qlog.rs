//! Reads and writes qlog with the event vocabulary of QUIC.
//!
//! Two formats are written: [`QlogFormat::Current`], JSON text sequences of the drafts, and
//! [`QlogFormat::Qvis`], version 0.3, which qvis draws. Every version is read: `draft-00` to
//! `draft-02`, 0.1 to 0.4, and the drafts with a `file_schema`; as one JSON document, as lines, or
//! as a JSON text sequence.
//!
//! ```
//! # use ackclock_logs as logs;
//! use logs::qlog::{QlogData, QlogEvent, QlogFormat, QlogItem, Metrics, QlogReader, Trace, QlogWriter};
//! use units::Duration;
//!
//! let metrics = Metrics { congestion_window: Some(12_520), ..Metrics::default() };
//! let event = QlogEvent::new(Duration::from_micros(2_500), QlogData::MetricsUpdated(metrics));
//! let mut writer = QlogWriter::new(Vec::new(), &Trace::default(), QlogFormat::Qvis)?;
//! writer.event(&event)?;
//! let log = writer.finish()?;
//!
//! let mut reader = QlogReader::new(&log[..]);
//! let events: Vec<QlogEvent> = reader
//!     .by_ref()
//!     .filter_map(|item| match item.unwrap() {
//!         QlogItem::Event(event) => Some(event),
//!         _ => None,
//!     })
//!     .collect();
//! assert_eq!((&events[..], reader.loss().problems), (&[event][..], 0));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Sources: draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events (working texts
//! after 10 and 12), their versions 00 to 03 for 0.3, draft-marx-qlog-main-schema-01 and
//! draft-marx-qlog-event-definitions-quic-h3 for earlier versions.
//!
//! Security keys, HTTP/3 and paths are not modelled; such events are read as [`QlogData::Other`],
//! with their name and all their fields.

mod decode;
mod encode;
mod fields;
mod header;
mod item;
mod lean;
mod model;
mod problem;
mod read;
mod source;
mod write;

pub use item::{Container, FileInfo, QlogGeneration, QlogItem};
pub use model::{
    Metrics, PacketHeader, QlogData, QlogEvent, QlogFrame, QlogPacket, QlogParameters,
    RecoveryParameters, Trace, Vantage,
};
pub use problem::{QlogProblem, QlogProblemKind, QlogStats};
pub use read::{MAX_RECORD, QlogReader};
pub use write::{QlogFormat, QlogWriter};

const NANOS_PER_MS: f64 = 1e6;
