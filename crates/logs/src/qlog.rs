//! qlog: what an endpoint knew, in the event vocabulary of QUIC.
//!
//! Two forms are written: [`Form::Current`], JSON text sequences of the drafts, and [`Form::Qvis`],
//! version 0.3, which qvis draws. Every generation is read: `draft-00` to `draft-02`, 0.1 to 0.4,
//! and the drafts with a `file_schema`; as one JSON document, as lines, or as a JSON text sequence.
//!
//! ```
//! # use ackclock_logs as logs;
//! use logs::qlog::{Data, Event, Form, Item, Metrics, Reader, Trace, Writer};
//! use units::Duration;
//!
//! let metrics = Metrics { congestion_window: Some(12_520), ..Metrics::default() };
//! let event = Event::new(Duration::from_micros(2_500), Data::MetricsUpdated(metrics));
//! let mut writer = Writer::new(Vec::new(), &Trace::default(), Form::Qvis)?;
//! writer.event(&event)?;
//! let log = writer.finish()?;
//!
//! let mut reader = Reader::new(&log[..]);
//! let events: Vec<Event> = reader
//!     .by_ref()
//!     .filter_map(|item| match item.unwrap() {
//!         Item::Event(event) => Some(event),
//!         _ => None,
//!     })
//!     .collect();
//! assert_eq!((&events[..], reader.loss().problems), (&[event][..], 0));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Sources: draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events (working texts
//! after 10 and 12), their versions 00 to 03 for 0.3, draft-marx-qlog-main-schema-01 and
//! draft-marx-qlog-event-definitions-quic-h3 for what came before.
//!
//! What it does not do: it knows no security keys, no HTTP/3 and no paths; such events are read as
//! [`Data::Other`], with their name and all their fields.

mod decode;
mod encode;
mod fields;
mod header;
mod item;
mod model;
mod problem;
mod read;
mod source;
mod write;

pub use item::{Container, FileInfo, Generation, Item};
pub use model::{
    Data, Event, Frame, Metrics, Packet, PacketHeader, Parameters, RecoveryParameters, Trace,
    Vantage,
};
pub use problem::{Loss, QlogProblem, QlogProblemKind};
pub use read::{MAX_RECORD, Reader};
pub use write::{Form, Writer};

const NANOS_PER_MS: f64 = 1e6;
