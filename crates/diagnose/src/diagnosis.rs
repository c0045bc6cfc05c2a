//! A connection with its findings.

use units::Duration;

use crate::rules::{self, DiagnosisCase, Finding, LossProcess, Neighbours, Proof, Severity};
use crate::{Analysis, FlowAnalysis, PathEstimate, Timeline};

/// A path that carries at most this many times what a policer passes showed the rate of that.
const POLICED: f64 = 1.25;

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
        Self::along(Timeline::of(flow), flow, analysis, neighbours)
    }

    /// Diagnoses the main direction of a connection along this timeline of it.
    fn along(
        course: Timeline,
        flow: &FlowAnalysis,
        analysis: &Analysis,
        neighbours: &Neighbours,
    ) -> Self {
        let case = DiagnosisCase { analysis, flow, course: &course, neighbours };
        let mut findings = rules::check(&case);
        findings.extend(Self::losses_of_other_direction(&case));
        rules::merge_late_accept(&mut findings, &case);
        rules::sort(&mut findings);
        // Those of both directions cost no more together than the transfer could save.
        rules::obey_together(&mut findings, &case);
        rules::sort(&mut findings);
        let primary = rules::primary(&findings).map(|finding| finding.code);
        Self { course, findings, primary }
    }

    /// Gives its findings the costs that simulations show, of the connection of `analysis`.
    pub fn prove(&mut self, analysis: &Analysis, neighbours: &Neighbours, proof: &Proof) {
        let Some(flow) = analysis.main().filter(|_| *proof != Proof::default()) else { return };
        // Where a limit was never lifted, the capture shows its rate, not that of the path.
        let seen = self.course.path.rate;
        let losses = proof.losses.filter(|losses| !losses.is_of_link(&self.findings));
        let proof = &Proof { losses, ..proof.clone() };
        if let Some(LossProcess::Policer { rate_bps, .. }) = proof.losses
            && seen.is_some_and(|seen| seen * 8.0 <= rate_bps as f64 * POLICED)
        {
            let path = PathEstimate { rate: proof.rate, share: None, ..self.course.path };
            *self = Self::along(Timeline::on(path, flow), flow, analysis, neighbours);
        } else {
            self.course.path.rate = seen.map(|seen| proof.rate.map_or(seen, |rate| rate.max(seen)));
        }
        let case = DiagnosisCase { analysis, flow, course: &self.course, neighbours };
        rules::prove(&mut self.findings, proof, &case);
        self.primary = rules::primary(&self.findings).map(|finding| finding.code);
    }

    /// What was lost in the direction with less data and cost the connection time, however few data it has: a
    /// request that is never answered stalls all of it.
    fn losses_of_other_direction(main: &DiagnosisCase<'_>) -> Vec<Finding> {
        let other = main.analysis.flows[main.flow.dir.reversed() as usize].as_deref();
        let Some(flow) = other.filter(|_| main.flow.bytes > 0) else { return Vec::new() };
        let course = Timeline::of(flow);
        let findings = rules::check(&DiagnosisCase { flow, course: &course, ..*main });
        let active = main.course.budget.active().max(course.budget.active());
        let matters = |found: &Finding| {
            let is_of_path = ["CC2", "CC3"].iter().any(|group| found.code.starts_with(group));
            // The opening is that of both directions.
            let is_data = found.interval.1 > flow.first_data.0;
            is_of_path
                && is_data
                && found.severity > Severity::Note
                && (found.is_failure || found.cost * 10 >= active)
        };
        findings
            .into_iter()
            .filter(matters)
            .map(|found| rules::of_other_direction(found, flow))
            .collect()
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

    /// Kind of that finding; empty without one, or where its code says all.
    pub fn primary_kind(&self) -> &'static str {
        let limit = self.findings.iter().find(|finding| Some(finding.code) == self.primary);
        limit.map_or("", |finding| finding.kind)
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
