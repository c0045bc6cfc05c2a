//! RFC 9743 section 5.1.2, protection against bufferbloat.

use units::Duration;

use super::{RELATIVE, SuiteCriterion};
use crate::evaluation::Margin;
use crate::measure::RunMeasures;
use crate::world::{SuiteWorld, WorldFlow};

pub(super) const CRITERION: SuiteCriterion = SuiteCriterion {
    section: "5.1.2",
    title: "protection against bufferbloat",
    limits: "queue delay p95 at most a tenth above the worst reference, 5 ms are free, in drop-tail \
             queues and under CoDel and PIE",
    source: RELATIVE,
    not_evaluated: None,
    evaluate: |evaluation| {
        for (rate, ms) in [(10.0, 40), (50.0, 20)] {
            for bdp in [2.0, 8.0] {
                let rtt = Duration::from_millis(ms);
                let runs = evaluation.runs(|sender| {
                    SuiteWorld::new(format!("bloat-{rate}mbit-{ms}ms-{bdp}bdp"), rate, rtt, bdp)
                        .flow(WorldFlow::bulk("upload", sender, rtt))
                })?;
                let margin = Margin::AtMost { factor: 1.1, free: 5.0 };
                evaluation.figure(&runs, "queue delay p95", "ms", margin, RunMeasures::delay_p95);
                evaluation
                    .figure(&runs, "utilisation", "%", Margin::Info, |run| run.utilisation(10));
            }
        }
        // A full drop-tail queue bounds the delay of any sender; an AQM shows which respond to its signals.
        let rtt = Duration::from_millis(40);
        for queue in ["codel", "pie"] {
            let runs = evaluation.runs(|sender| {
                SuiteWorld::new(format!("bloat-{queue}-16bdp"), 10.0, rtt, 16.0)
                    .queue(queue)
                    .flow(WorldFlow::bulk("upload", sender, rtt))
            })?;
            let margin = Margin::AtMost { factor: 1.1, free: 5.0 };
            evaluation.figure(&runs, "queue delay p95", "ms", margin, RunMeasures::delay_p95);
        }
        Ok(())
    },
};
