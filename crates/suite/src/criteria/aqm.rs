//! RFC 9743 section 7.1, active queue management.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "7.1",
    title: "active queue management",
    limits: "queue delay p95 at most a tenth above the worst reference, 5 ms are free; utilisation at \
             least nine tenths of it",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        let rtt = Duration::from_millis(40);
        for queue in ["codel", "fq_codel", "pie", "red"] {
            let runs = evaluation.phases(|sender| {
                SuiteWorld::new(format!("aqm-{queue}"), 20.0, rtt, 8.0)
                    .queue(queue)
                    .flow(WorldFlow::bulk("one", sender, rtt))
                    .flow(WorldFlow::bulk("two", sender, rtt))
            })?;
            let margin = Margin::AtMost { factor: 1.1, free: 5.0 };
            evaluation.figure(&runs, "queue delay p95", "ms", margin, RunMeasures::delay_p95);
            let margin = Margin::AtLeast { factor: 0.9 };
            evaluation.figure(&runs, "utilisation", "%", margin, |run| run.utilisation(10));
        }
        // With ECN CoDel marks, and drops only when the queue is full.
        let runs = evaluation.phases(|sender| {
            let sender = &sender.with_ecn();
            SuiteWorld::new("aqm-codel-ecn", 20.0, rtt, 8.0)
                .queue("{ codel = { ecn = true } }")
                .flow(WorldFlow::bulk("one", sender, rtt))
                .flow(WorldFlow::bulk("two", sender, rtt))
        })?;
        let margin = Margin::AtMost { factor: 1.1, free: 5.0 };
        evaluation.figure(&runs, "queue delay p95", "ms", margin, RunMeasures::delay_p95);
        Ok(())
    },
};
