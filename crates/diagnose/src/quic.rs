//! Finds what limited a QUIC connection, from the log of one of its endpoints.
//!
//! A reader turns a log into [`record::QuicRecord`]s and pushes them into a [`QuicAnalyzer`];
//! [`QuicAnalyzer::finish`] returns the [`QuicAnalysis`], [`QuicDiagnosis::of`] its findings.
//!
//! Reading order: [`record`] (the events), `analyzer` (dispatch), `sender` and `receiver` (the two
//! directions, built on `packets` and `streams`), [`handshake`], [`budget`] (what limited it),
//! [`analysis`] (the result), [`rules`] (the findings), [`transfer`] (packets kept for a fit).
//!
//! Memory: at most 131,072 packets in flight and as many lost ones in each packet number space,
//! 16,384 streams in each direction, and as many congestion events; beyond these limits the oldest
//! are forgotten.

pub mod analysis;
mod analyzer;
pub mod budget;
pub mod bursts;
pub mod captured;
mod clock;
pub mod exchange;
pub mod handshake;
mod packets;
mod peer_view;
mod policer;
pub mod rates;
mod receiver;
pub mod record;
pub mod rhythm;
pub mod rules;
mod sender;
mod streams;
#[cfg(test)]
mod tests;
pub mod transfer;

pub use analysis::QuicAnalysis;
pub use analyzer::QuicAnalyzer;
pub use budget::{QuicBudget, QuicLimiter};
pub use clock::time;
pub use peer_view::QuicPeerView;

use units::Duration;

use crate::rules::{Finding, Severity};

/// A QUIC connection with its findings.
#[derive(Debug, Clone, PartialEq)]
pub struct QuicDiagnosis {
    /// The findings: failures first, then the costliest.
    pub findings: Vec<Finding>,
    /// Code of the finding that limited it; `None` without one.
    pub primary: Option<&'static str>,
}

impl QuicDiagnosis {
    /// Diagnoses a connection.
    pub fn of(analysis: &QuicAnalysis) -> Self {
        let findings = rules::check(analysis);
        let worst = findings.iter().find(|finding| finding.severity > Severity::Note);
        let saturated = || findings.iter().find(|finding| finding.code == rules::SATURATED);
        let primary = worst.or_else(saturated).map(|finding| finding.code);
        Self { findings, primary }
    }

    /// Cost of the costliest finding.
    pub fn cost(&self) -> Duration {
        self.findings.iter().map(|finding| finding.cost).max().unwrap_or_default()
    }

    /// Whether the connection failed.
    pub fn failed(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_failure)
    }
}
