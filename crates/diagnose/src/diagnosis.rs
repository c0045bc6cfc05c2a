//! A connection with its findings.

use crate::rules::{self, Case, Finding, Neighbour};
use crate::{Analysis, Course, Flow};

/// What was found about a connection: about the data of its larger direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Their course.
    pub course: Course,
    /// The findings, costliest first.
    pub findings: Vec<Finding>,
    /// Code of what limited it; `None` if nothing did.
    pub primary: Option<&'static str>,
}

impl Diagnosis {
    /// Judges a connection; `neighbours` are the transfers of the capture, this one included, as
    /// [`Neighbour::sorted`] gives them.
    pub fn of(analysis: &Analysis, neighbours: &[Neighbour]) -> Self {
        let empty;
        let flow = match analysis.main() {
            Some(flow) => flow,
            None => {
                empty = Flow::empty(analysis.first.as_nanos(), analysis.last.as_nanos());
                &empty
            }
        };
        let course = Course::of(flow);
        let case = Case { analysis, flow, course: &course, neighbours };
        let findings = rules::check(&case);
        let primary = rules::primary(&findings).map(|finding| finding.code);
        Self { course, findings, primary }
    }

    /// Lost time that the findings explain, in ns; they overlap, so it is that of the costliest.
    pub fn cost(&self) -> u64 {
        self.findings.first().map_or(0, |finding| finding.cost)
    }
}
