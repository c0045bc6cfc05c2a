//! RFC 9743 section 7.7, extreme packet reordering.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "7.7",
    title: "extreme packet reordering",
    limits: "at least nine tenths of the worst reference",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        let kinds = [
            ("late-1pc", "{ reorder = { fraction = \"1%\", by = \"8ms\" } }"),
            ("late-10pc", "{ reorder = { fraction = \"10%\", by = \"15ms\" } }"),
            ("reversed", "{ reorder = { reverse = 4, gap = \"1ms\" } }"),
        ];
        for (kind, element) in kinds {
            let runs = evaluation.runs(|sender| {
                SuiteWorld::new(format!("reordering-{kind}"), 20.0, rtt, 2.0)
                    .drawn_element(element)
                    .flow(WorldFlow::bulk("upload", sender, rtt))
            })?;
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "utilisation", "%", margin, |run| run.utilisation(5));
        }
        Ok(())
    },
};
