//! RFC 9743 section 7.3, paths with varying delay.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "7.3",
    title: "paths with varying delay",
    limits: "at least nine tenths of the worst reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        for ms in [5, 20, 60] {
            let runs = evaluation.runs(|sender| {
                SuiteWorld::new(format!("jitter-{ms}ms"), 20.0, rtt, 2.0)
                    .drawn_element(format!("{{ jitter = \"{ms}ms\" }}"))
                    .flow(WorldFlow::bulk("upload", sender, rtt))
            })?;
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "utilisation", "%", margin, |run| run.utilisation(5));
        }
        Ok(())
    },
};
