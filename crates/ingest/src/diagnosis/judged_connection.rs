//! The diagnosis of a connection, summarised.

use diagnose::Diagnosis;
use diagnose::rules::{Neighbours, Proof, is_judged};
use units::Duration;

use super::exchange::ExchangeSummary;
use super::selection::code_bit;
use super::{ConnectionReport, neighbours_at_point};
use crate::inputs::CapturedConnection;

/// A [`ConnectionReport`] without its connection.
pub(super) struct JudgedConnection {
    primary: Option<&'static str>,
    kind: &'static str,
    failed: bool,
    cost: Duration,
    noted: Duration,
    bytes: u64,
    duration: Duration,
    goodput_bps: u64,
    codes: u64,
    is_judged: bool,
    /// What its time was spent on.
    pub(super) exchange: Option<ExchangeSummary>,
}

impl JudgedConnection {
    /// Diagnoses a connection among the `neighbours` of its file.
    pub(super) fn of(stream: &CapturedConnection, neighbours: &[Neighbours]) -> Self {
        let beside = neighbours_at_point(neighbours, stream);
        let analysis = stream.analysis();
        let diagnosis = Diagnosis::of(&analysis, beside);
        let other = Diagnosis::of_other_direction(&analysis, beside);
        let findings = diagnosis.findings.iter();
        let findings = findings.chain(other.iter().flat_map(|other| &other.findings));
        Self {
            primary: diagnosis.primary,
            kind: diagnosis.primary_kind(),
            failed: diagnosis.failed(),
            cost: diagnosis.primary_cost(),
            noted: diagnosis.cost(),
            bytes: analysis.bytes(),
            duration: analysis.duration(),
            goodput_bps: (analysis.goodput() * 8.0) as u64,
            codes: findings.fold(0, |set, found| set | code_bit(found.code)),
            is_judged: is_judged(&analysis),
            exchange: ExchangeSummary::of(&analysis),
        }
    }

    /// The report of its connection.
    pub(super) fn report(self, stream: CapturedConnection) -> ConnectionReport {
        ConnectionReport {
            stream,
            primary: self.primary,
            kind: self.kind,
            failed: self.failed,
            cost: self.cost,
            noted: self.noted,
            bytes: self.bytes,
            duration: self.duration,
            goodput_bps: self.goodput_bps,
            cures: Vec::new(),
            proof: Proof::default(),
            codes: self.codes,
            is_judged: self.is_judged,
        }
    }
}
