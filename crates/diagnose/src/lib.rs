//! Finds what limited a TCP connection from its captured packets. Layer 2.
//!
//! A reader (in `trace`) parses a capture into [`CapturedPacket`]s, sorts them into connections and
//! pushes them into a [`ConnectionAnalyzer`]; [`ConnectionAnalyzer::finish`] returns the
//! [`Analysis`]. A [`ConnectionRecorder`] does the same in less memory: it keeps the packets
//! themselves while they are few.
//!
//! Reading order: [`capture_point`] (where the capture was taken), `half_connection` (one
//! direction: parts that own their state, as `scoreboard`, `window`, `recovery` and `round_clock`, and
//! the steps `data`, `acks` and `retransmissions`; built on `outstanding`, `ranges`, `round_trip`), its counters (`transmissions`, `reordering`, `coverage`,
//! `dispersion`), `rounds`, `episodes` and `sender_events` (the connection over time), [`exchange`]
//! (requests and responses: the time of either host and of the network), [`flow`] and
//! [`analysis`] (the result), [`timeline`] (what limited it when: [`time_budget`] and
//! [`lost_time`]), [`rules`] (the findings), [`Diagnosis`] (all of it).
//!
//! [`quic`] does the same for the log of a QUIC endpoint.
//!
//! The crate reads no files and simulates nothing; it has no profiles of senders.

pub mod analysis;
pub mod capture_point;
mod connection;
pub mod connection_events;
mod connection_record;
pub mod coverage;
mod diagnosis;
mod dispersion;
pub mod episodes;
pub mod exchange;
#[cfg(test)]
mod exchange_tests;
pub mod flow;
mod half_connection;
pub mod host_counters;
mod ip_ids;
pub mod lost_time;
pub mod negotiated;
mod outstanding;
mod packet;
mod packet_log;
pub mod path;
pub mod quic;
mod ranges;
pub mod reordering;
mod round_trip;
pub mod rounds;
pub mod rules;
pub mod sender_events;
pub mod socket;
pub mod stalls;
pub mod state;
#[cfg(test)]
mod tests;
pub mod time_budget;
pub mod timeline;
pub mod transmissions;

pub use analysis::Analysis;
pub use connection::{AnalysisSettings, ConnectionAnalyzer, ObservedSyn};
pub use connection_record::{ConnectionRecorder, RecentCourse, RecordedConnection};
pub use diagnosis::Diagnosis;
pub use dispersion::BurstRates;
pub use exchange::{ExchangeBudget, ExchangeShare};
pub use flow::FlowAnalysis;
pub use negotiated::{EcnSupport, Negotiated};
pub use packet::CapturedPacket;
pub use path::PathEstimate;
pub use state::StateSample;
pub use time_budget::{Limiter, TimeBudget};
pub use timeline::Timeline;
