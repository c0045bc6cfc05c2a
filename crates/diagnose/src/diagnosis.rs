//! A connection with its findings.

use units::Duration;

use crate::rules::{self, DiagnosisCase, Finding, Neighbours};
use crate::{Analysis, FlowAnalysis, Timeline};

/// The findings about the main direction of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The timeline of the transfer.
    pub course: Timeline,
    /// The findings: failures first, then the costliest.
    pub findings: Vec<Finding>,
    /// Code of the finding that limited it; `None` without one.
    pub primary: Option<&'static str>,
}

impl Diagnosis {
    /// Diagnoses a connection; `neighbours` are those of the capture, this one included.
    pub fn of(analysis: &Analysis, neighbours: &Neighbours) -> Self {
        let empty;
        let flow = match analysis.main() {
            Some(flow) => flow,
            None => {
                empty = FlowAnalysis::empty(analysis.first, analysis.last);
                &empty
            }
        };
        let course = Timeline::of(flow);
        let case = DiagnosisCase { analysis, flow, course: &course, neighbours };
        let findings = rules::check(&case);
        let primary = rules::primary(&findings).map(|finding| finding.code);
        Self { course, findings, primary }
    }

    /// Diagnoses the direction with less data, as far as the rules concern a direction; `None` if it
    /// is shorter than a few initial windows, so that nothing limits it.
    pub fn of_other_direction(analysis: &Analysis, neighbours: &Neighbours) -> Option<Self> {
        let flow = analysis.flows[analysis.main_dir().reversed() as usize].as_deref()?;
        if !flow.is_sizeable() {
            return None;
        }
        let course = Timeline::of(flow);
        let case = DiagnosisCase { analysis, flow, course: &course, neighbours };
        let mut findings = rules::check(&case);
        findings.retain(|found| !found.code.starts_with("CC0") && !found.code.starts_with("CC9"));
        let primary = rules::primary(&findings).map(|finding| finding.code);
        Some(Self { course, findings, primary })
    }

    /// Cost of the finding that limited the connection; 0 without one.
    pub fn primary_cost(&self) -> Duration {
        let limit = self.findings.iter().find(|finding| Some(finding.code) == self.primary);
        limit.map_or(Duration::ZERO, |finding| finding.cost)
    }

    /// Lost time that the findings explain: that of the costliest, since they overlap.
    pub fn cost(&self) -> Duration {
        self.findings.iter().map(|finding| finding.cost).max().unwrap_or_default()
    }

    /// Whether the connection failed.
    pub fn failed(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_failure)
    }
}
